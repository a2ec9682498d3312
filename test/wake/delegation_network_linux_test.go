package wake_test

import (
	"os"
	"strings"
	"testing"

	"reeve/test/kit"
)

// An agent does not have the network access of its own tool settings on behalf of an agent that lacks it.
func TestO20_NoNetworkItsParentLacks(t *testing.T) {
	t.Parallel()
	const look = `{name: shell_exec, args: {command: "readlink /proc/self/ns/net"}}`
	h, _ := kit.RunWithRecordingModel(t, `- {when: {tool: delegate}, text: "asked"}
- {when: {tool: shell_exec}, text: "looked"}
- {when: {system: I am poor}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am granted}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am rich}, calls: [`+look+`]}
`)
	free := kit.Object{"kind": "engineer", "policy": kit.Object{"tools": kit.Object{"shell_exec": "allow"}}}
	kit.NewPersona(h, "rich", free, "shell_exec", kit.Object{"network": true})
	kit.NewPersona(h, "poor", free, "delegate", "shell_exec")
	kit.NewPersona(h, "granted", free, "delegate", "shell_exec", kit.Object{"network": true})
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	network := func(agent string) string {
		t.Helper()
		turn := kit.StartTurn(h, h.StartConversation(agent).ID, "go")
		kit.WaitForTurn(h, turn.ID)
		child := kit.ListChildren(h, turn.ID)
		if len(child) != 1 {
			t.Fatalf("%s led to %+v", agent, child)
		}
		_, said := kit.ListResults(h, child[0].ID, "shell_exec")
		if len(said) != 1 {
			t.Fatalf("%s: %q", agent, said)
		}
		return said[0]
	}
	if got := network("poor"); strings.Contains(got, here) || !strings.Contains(got, "net:[") {
		t.Errorf("on behalf of one without network it was in %s; the machine's is %s", got, here)
	}
	if got := network("granted"); !strings.Contains(got, here) {
		t.Errorf("on behalf of one with network it was in %s; the machine's is %s", got, here)
	}
}
