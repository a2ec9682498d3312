package host_test

import (
	"os"
	"strings"
	"testing"
)

// TestO20_NoNetworkItsParentLacks: what the settings of a tool grant to one agent it does not have on behalf of another
// that is not granted it.
func TestO20_NoNetworkItsParentLacks(t *testing.T) {
	t.Parallel()
	const look = `{name: shell_exec, args: {command: "readlink /proc/self/ns/net"}}`
	h, _ := hearing(t, `- {when: {tool: delegate}, text: "asked"}
- {when: {tool: shell_exec}, text: "looked"}
- {when: {system: I am poor}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am granted}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am rich}, calls: [`+look+`]}
`)
	free := object{"kind": "engineer", "policy": object{"tools": object{"shell_exec": "allow"}}}
	persona(h, "rich", free, "shell_exec", object{"network": true})
	persona(h, "poor", free, "delegate", "shell_exec")
	persona(h, "granted", free, "delegate", "shell_exec", object{"network": true})
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	network := func(agent string) string {
		t.Helper()
		turn := speak(h, h.StartConversation(agent).ID, "go")
		over(h, turn.ID)
		child := children(h, turn.ID)
		if len(child) != 1 {
			t.Fatalf("%s led to %+v", agent, child)
		}
		_, said := results(h, child[0].ID, "shell_exec")
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
