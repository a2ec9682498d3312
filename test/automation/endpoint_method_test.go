package automation_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An argument of an endpoint names the method. Reading methods may be called anywhere, also in a dry run; the others
// only inside an item.
func TestK10_EndpointWithMethods(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Method, Which string }
		_ = json.NewDecoder(r.Body).Decode(&in) // an invalid body leaves the fields empty
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, strings.TrimSpace(in.Method+" "+in.Which))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`["a","b"]`)) // the client may have disconnected
	}))
	defer far.Close()
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		s := strings.Join(asked, ", ")
		asked = nil
		return s
	}
	h := reevetest.StartWith(t, kit.FastConfig(t))
	rpc := func(reads any) kit.Call {
		return kit.Call{"id": "box_call", "kind": "http", "description": "Does things with a box.", "effect": "keyed",
			"category": "box",
			"parameters": kit.Call{"type": "object", "properties": kit.Call{"method": kit.Call{"type": "string"},
				"which": kit.Call{"type": "string"}, "deep": kit.Call{"type": "boolean"}},
				"required": []string{"method"}, "additionalProperties": false},
			"spec": kit.Call{"method": "POST", "url": far.URL, "reads": reads}}
	}
	for path, reads := range map[string]any{"/spec/reads/verb": kit.Call{"verb": []string{"list"}},
		"/spec/reads/deep": kit.Call{"deep": []string{"true"}}, "/spec/reads/method": kit.Call{"method": []string{}},
		"/spec/reads": "list"} {
		if r := h.Want(400, nil, "POST", "/api/tools", rpc(reads)); !strings.Contains(string(r.Body), `"`+path+`"`) {
			t.Errorf("%v: %s", reads, r.Body)
		}
	}
	h.Want(201, nil, "POST", "/api/tools", rpc(kit.Call{"method": []string{"list", "get"}}))
	a := &kit.Automation{Host: h, T: t, Name: "boxer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"box_call"}, "source": `
		for (const id of await Box.call({ method: 'list' })) await Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) await Box.call({ method: 'open', which: id }) })`})
	plan := a.StartRun(kit.Call{"type": "dry"})
	kit.Equal(t, kit.JoinValues(plan.Run.State, plan.Script.Progress.Planned, said()), "completed 2 list", "a dry run")
	a.MustComplete()
	kit.Equal(t, said(), "list, open a, open b", "a run")
	a.MustComplete()
	kit.Equal(t, said(), "list", "another")
	for _, source := range []string{`Box.call({ method: 'open' })`, `Box.call({ method: 'List' })`,
		`Box.call({ method: 'list ' })`} {
		a.SaveVersion("try { await "+source+" } catch (e) {}", false)
		a.MustFail(reeve.LogicFailure, "outside Items.withItem")
	}
	kit.Equal(t, said(), "", "what was asked for outside an item")
}
