package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A policy for a tool that does not exist is refused. A typo would leave the intended tool unguarded.
func TestBadInput_PolicyForAnUnknownToolIsRefused(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_delete")
	policy := func(tools kit.Object) kit.Object { return kit.Object{"policy": kit.Object{"tools": tools}} }
	for method, path := range map[string]string{"PATCH": "/api/agents/" + a.ID, "POST": "/api/agents"} {
		body := policy(kit.Object{"file_delet": "ask"})
		body["name"] = "b"
		if r := h.Want(http.StatusBadRequest, nil, method, path, body); !strings.Contains(string(r.Body),
			"/policy/tools/file_delet") {
			t.Errorf("%s says %s", method, r.Body)
		}
	}
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID, policy(kit.Object{"file_delete": "ask"}))
	var is reeve.Agent
	h.Want(http.StatusOK, &is, "GET", "/api/agents/"+a.ID, nil)
	kit.Equal(t, is.Policy.Tools["file_delete"], reeve.Ask, "the policy")
	kit.Equal(t, is.Name, "a", "the name")
}
