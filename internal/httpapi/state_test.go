package httpapi_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// The slots of an agent are typed and updated by revision. Extensions are stored unchanged.
func TestL12_AgentState(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		a := h.Agent("coach")
		at := "/api/agents/coach/state"
		s := decode[reeve.AgentState](t, h.Want(200, nil, "GET", at, nil))
		if s.AgentID != a.ID || s.Revision != 0 || s.Slots.SchemaVersion != 1 {
			t.Fatalf("initial state: %+v", s)
		}
		task := "task_" + strings.Repeat("0", 26)
		const ours = `"org.example.gym":{"a":[12345678901234567890.10,{"x":null}],"b":"<&>"}`
		full := `{"schema_version":1,"primary_goal":"Three a week","active_task_id":"` + task + `","open_loop_ids":["` +
			task + `"],"preferences":{"tone":"dry"},"extension":{` + ours + `}}`
		r := h.Want(200, nil, "PUT", at, `{"revision":0,"slots":`+full+`}`)
		if !strings.Contains(string(r.Body), ours) || decode[reeve.AgentState](t, r).Revision != 1 {
			t.Errorf("%s", r.Body)
		}
		before := h.Want(200, nil, "GET", at, nil).Body
		for bad, path := range map[string]string{
			`{"slots":{}}`: "", `{"revision":1}`: "", `{"revision":-1,"slots":{}}`: "/revision",
			`{"revision":1,"slots":{"goal":"x"}}`:                                                       "/slots/goal",
			`{"revision":1,"slots":{},"other":1}`:                                                       "/other",
			`{"revision":1,"slots":{"schema_version":2}}`:                                               "/slots/schema_version",
			`{"revision":1,"slots":{"primary_goal":5}}`:                                                 "/slots/primary_goal",
			`{"revision":1,"slots":{"active_task_id":"gym"}}`:                                           "/slots/active_task_id",
			`{"revision":1,"slots":{"open_loop_ids":["x"]}}`:                                            "/slots/open_loop_ids/0",
			`{"revision":1,"slots":{"open_loop_ids":["` + task + `","` + task + `"]}}`:                  "/slots/open_loop_ids/1",
			`{"revision":1,"slots":{"preferences":{"tone":1}}}`:                                         "/slots/preferences/tone",
			`{"revision":1,"slots":{"preferences":{"":"x"}}}`:                                           "/slots/preferences/",
			`{"revision":1,"slots":{"extension":{"Not A Name":{}}}}`:                                    "/slots/extension/Not A Name",
			`{"revision":1,"slots":{"extension":{"a/b":{}}}}`:                                           "/slots/extension/a~1b",
			`{"revision":1,"slots":{"extension":{"org.gym":[1]}}}`:                                      "/slots/extension/org.gym",
			`{"revision":1,"slots":{"primary_goal":"` + strings.Repeat("x", 8001) + `"}}`:               "/slots/primary_goal",
			`{"revision":1,"slots":{"extension":{"big":{"x":"` + strings.Repeat("x", 300<<10) + `"}}}}`: "/slots",
		} {
			wantFieldError(t, h.Do("PUT", at, bad), path)
		}
		wantProblem(t, h.Do("PUT", at, `{"revision":0,"slots":{}}`), 409, reeve.Stale)
		wantProblem(t, h.Do("PUT", at, `{"revision":7,"slots":{}}`), 409, reeve.Stale)
		if after := h.Want(200, nil, "GET", at, nil).Body; string(after) != string(before) {
			t.Errorf("a refused update changed the state: %s", after)
		}
		// A client repeats the update after it lost the response.
		h.Want(200, nil, "PUT", at, `{"revision":0,"slots":`+full+`}`)
		h.Want(200, nil, "PATCH", "/api/agents/coach", object{"lifecycle": "destroyed"})
		wantProblem(t, h.Do("PUT", at, `{"revision":1,"slots":{}}`), 409, reeve.Conflict)
	})
}

// A change of an agent's slots wakes a subscribed agent. The runtime of an agent reports its status.
func TestL12_StateChangeWakesSubscriberAndRuntimeIsReported(t *testing.T) {
	t.Parallel()
	h := startServer(t, testTools()...)
	coach, clerk := h.Agent("coach", "erase"), h.Agent("clerk")
	h.Want(201, nil, "POST", "/api/agents/clerk/subscriptions", object{"class": "id", "name": coach.ID})
	h.Want(200, nil, "PUT", "/api/agents/coach/state", object{"revision": 0, "slots": object{"primary_goal": "x"}})
	if l := decode[api.WakeList](t, h.Want(200, nil, "GET", "/api/agents/clerk/wakes", nil)); len(l.Wakes) != 1 {
		t.Errorf("%+v", l)
	} else {
		key := strings.ReplaceAll(l.Wakes[0].RunKey, "/", "%2F")
		if got := decode[reeve.Wake](t, h.Want(200, nil, "GET", "/api/wakes/"+key, nil)); got.RunKey != l.Wakes[0].RunKey || got.AgentID != clerk.ID {
			t.Errorf("%+v", got)
		}
	}
	getRuntime := func(name string) reeve.AgentRuntime {
		return decode[reeve.AgentRuntime](t, h.Want(200, nil, "GET", "/api/agents/"+name+"/runtime", nil))
	}
	if r := getRuntime("clerk"); r.Status != reeve.AgentQueued || r.QueuedWakes != 1 {
		t.Errorf("%+v", r)
	}
	h.Want(200, nil, "PATCH", "/api/agents/coach",
		object{"config": object{"rehearsal": object{"steps": []any{object{"tool": "erase"}}}}})
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	h.RunUntilIdle(t.Context())
	if r := getRuntime("coach"); r.Status != reeve.AgentParked || r.ActiveRun == "" || r.OpenRuns != 1 {
		t.Errorf("%+v", r)
	}
}

// The config of an agent is checked when it is stored, before the agent runs.
func TestL09_ConfigIsCheckedOnUpdate(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Agent("coach")
	good := `{"schema_version":1,"rehearsal":{"steps":[{"tool":"file_list","args":{"path":"/"},"delay_ms":5},{"fail":"no"}],` +
		`"output":"x","notify":true},"extension":{"org.gym":{"n":1}}}`
	h.Want(200, nil, "PATCH", "/api/agents/coach", `{"config":`+good+`}`)
	for bad, path := range map[string]string{
		`{"rehersal":{}}`:                                      "/config/rehersal",
		`{"schema_version":9}`:                                 "/config/schema_version",
		`{"rehearsal":[]}`:                                     "/config/rehearsal",
		`{"rehearsal":{"steps":{}}}`:                           "/config/rehearsal/steps",
		`{"rehearsal":{"steps":[{"tool":"x"},{}]}}`:            "/config/rehearsal/steps/1",
		`{"rehearsal":{"steps":[{"tool":"x","fail":"y"}]}}`:    "/config/rehearsal/steps/0",
		`{"rehearsal":{"steps":[{"tool":"x","args":[1]}]}}`:    "/config/rehearsal/steps/0/args",
		`{"rehearsal":{"steps":[{"tool":5}]}}`:                 "/config/rehearsal/steps/0/tool",
		`{"rehearsal":{"steps":[{"tool":"x","arg":{}}]}}`:      "/config/rehearsal/steps/0/arg",
		`{"rehearsal":{"steps":[{"fail":"x","must":"y"}]}}`:    "/config/rehearsal/steps/0/must",
		`{"rehearsal":{"steps":[{"tool":"x","delay_ms":-1}]}}`: "/config/rehearsal/steps/0/delay_ms",
		`{"rehearsal":{"steps":[` + strings.Repeat(`{"fail":"x"},`, 1000) +
			`{"fail":"x"}]}}`: "/config/rehearsal/steps",
		`{"extension":{"Org":{}}}`: "/config/extension/Org",
		`{"extension":{"org":1}}`:  "/config/extension/org",
		`[]`:                       "/config",
	} {
		wantFieldError(t, h.Do("PATCH", "/api/agents/coach", `{"config":`+bad+`}`), path)
		wantFieldError(t, h.Do("POST", "/api/agents", `{"name":"new","config":`+bad+`}`), path)
	}
	if a := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/coach", nil)); string(a.Config) != good {
		t.Errorf("%s", a.Config)
	}
	wantProblem(t, h.Do("GET", "/api/agents/new", nil), 404, reeve.NotFound)
}
