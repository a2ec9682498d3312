package httpapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// newToolWithRequiredSetting returns the tool confined, which needs the setting root.
func newToolWithRequiredSetting() reeve.Tool {
	t := newTool("confined", reeve.Read, reeve.ReadOnly, alwaysReturn("seen", nil))
	t.ConfigSchema = json.RawMessage(
		`{"type":"object","properties":{"root":{"type":"string","minLength":1}},` +
			`"required":["root"],"additionalProperties":false}`)
	return t
}

// The settings of a tool must match its schema, however the agent gets the tool. A tool without a schema accepts no
// settings.
func TestG32_SettingsMustMatchSchema(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, append(testTools(), newToolWithRequiredSetting())...)
		defineTool(t, h, nil) // weather has no schema for settings
		h.Want(201, nil, "POST", "/api/agents", object{"name": "clerk"})
		attach := func(tool string, config any) object { return object{"tool_id": tool, "config": config} }
		const at = "/api/agents/clerk/tools"
		for _, id := range []string{"look", "weather", "list_files"} {
			p := wantProblem(t, h.Do("POST", at, attach(id, object{"root": "/safe", "deep": object{"a": 1}})), 400,
				reeve.Validation)
			if len(p.Errors) != 2 || p.Errors[1].Path != "/config/root" {
				t.Errorf("%s: %+v", id, p.Errors)
			}
		}
		h.Want(201, nil, "POST", at, attach("look", object{}))
		h.Want(201, nil, "POST", at, attach("weather", nil))
		for _, config := range []any{nil, object{}, object{"root": ""}, object{"root": 1},
			object{"root": "/a", "other": 1}} {
			wantProblem(t, h.Do("POST", at, attach("confined", config)), 400, reeve.Validation)
		}
		wantProblem(t, h.Do("POST", at, object{"tool_id": "confined"}), 400, reeve.Validation)
		call := object{"tool": "confined", "args": object{}}
		wantProblem(t, h.Do("POST", "/api/agents/clerk/calls", call), 404, reeve.NotFound)
		h.Want(201, nil, "POST", at, attach("confined", object{"root": "/safe"}))
		h.Want(200, nil, "POST", "/api/agents/clerk/calls", call)

		// The tools of an automation and the tool list of a call have no settings.
		auto := object{"name": "sweeper", "language": "js", "source": "1", "tools": []string{"look", "confined"}}
		wantProblem(t, h.Do("POST", "/api/automations", auto), 400, reeve.Validation)
		wantProblem(t, h.Do("GET", "/api/agents/sweeper", nil), 404, reeve.NotFound)
		h.Want(201, nil, "POST", "/api/agents", object{"name": "other"})
		call["tools"] = []string{"confined"}
		if p := wantProblem(t, h.Do("POST", "/api/agents/other/calls", call), 501, reeve.Unsupported); !strings.Contains(p.Detail, "needs settings") {
			t.Errorf("%+v", p)
		}
		h.Want(200, nil, "POST", "/api/agents/clerk/calls", call) // clerk has the tool with settings

		// A setting that a new version of a tool requires is also required of agents that have the tool. Settings
		// stored before the check existed are refused.
		schema := object{"type": "object", "properties": object{"key": object{"type": "string"}},
			"required": []string{"key"}}
		h.Want(200, nil, "PUT", "/api/tools/weather", weatherTool(object{"config_schema": schema}))
		env.exec(t, `UPDATE agent_tools SET config = '{"root":"/safe"}' WHERE tool_id = 'look'`)
		h.Want(200, nil, "PATCH", "/api/agents/clerk", object{"kind": "assistant"})
		for _, id := range []string{"weather", "look"} {
			r := h.Do("POST", "/api/agents/clerk/calls", object{"tool": id, "args": object{"place": "x"}})
			if p := wantProblem(t, r, 501, reeve.Unsupported); !strings.Contains(p.Detail, "settings") ||
				strings.Contains(string(r.Body), "/safe") {
				t.Errorf("%s: %+v", id, p)
			}
			for _, c := range decode[api.DoctorReport](t, h.Want(200, nil, "GET", "/api/doctor", nil)).Checks {
				if c.Name == "agents" && (!strings.Contains(c.Hint, "reeve agents detach clerk "+id) ||
					strings.Contains(c.Hint, "damaged")) {
					t.Errorf("%s: the doctor's hint is %q", id, c.Hint)
				}
			}
			if problems := getDoctorProblems(t, h, "agents"); !slices.ContainsFunc(problems,
				func(s string) bool { return strings.HasPrefix(s, "clerk: tool "+id) }) {
				t.Errorf("%s: doctor reports %q", id, problems)
			}
			h.Want(204, nil, "DELETE", at+"/"+id, nil)
		}
		if problems := getDoctorProblems(t, h, "agents"); len(problems) > 0 {
			t.Errorf("doctor reports %q", problems)
		}
		wantProblem(t, h.Do("POST", at, attach("weather", nil)), 400, reeve.Validation)
		h.Want(201, nil, "POST", at, attach("weather", object{"key": "k"}))
		wantFieldError(t, h.Do("POST", "/api/tools",
			weatherTool(object{"id": "odd", "config_schema": object{"type": "string"}})), "/config_schema/type")
	})
}

// An agent whose last tool is detached has no tools. Only agents that never had a tool attached have the default tools.
func TestG32_DetachingTheLastToolLeavesNone(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		defineTool(t, h, nil)
		for _, name := range []string{"fresh", "detached", "deleted"} {
			h.Want(201, nil, "POST", "/api/agents", object{"name": name})
		}
		h.Want(201, nil, "POST", "/api/agents/detached/tools", object{"tool_id": "look"})
		h.Want(201, nil, "POST", "/api/agents/deleted/tools", object{"tool_id": "weather"})
		h.Want(204, nil, "DELETE", "/api/agents/detached/tools/look", nil)
		h.Want(204, nil, "DELETE", "/api/tools/weather", nil)
		for range 2 {
			for _, name := range []string{"detached", "deleted"} {
				if got := listAttached(t, h, name); len(got) > 0 {
					t.Errorf("%s has %v", name, got)
				}
				for _, id := range []string{"list_files", "read_file", "write_file", "look", "weather"} {
					call := object{"tool": id, "args": object{"path": "/a", "content": "x"}}
					wantProblem(t, h.Do("POST", "/api/agents/"+name+"/calls", call), 404, reeve.NotFound)
				}
			}
			h.Want(200, nil, "POST", "/api/agents/fresh/calls", object{"tool": "list_files", "args": object{}})
			h.Stop()
			h = env.start(t, testTools()...)
		}
		h.Want(201, nil, "POST", "/api/agents/detached/tools", object{"tool_id": "list_files"})
		h.Want(200, nil, "POST", "/api/agents/detached/calls", object{"tool": "list_files", "args": object{}})
	})
}

// Calls without a session use a session of the user. A session with a name is shared by all users who name it.
func TestI06_DefaultSessionBelongsToUser(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		id := h.Agent("clerk", "write_file", "read_file", "list_files", "scratchpad_write", "scratchpad_read").ID
		ann, bob := createUserToken(t, h, "ann", reeve.Member), createUserToken(t, h, "bob", reeve.Member)
		again, boss := createUserToken(t, h, "ann", reeve.Member), createUserToken(t, h, "boss", reeve.Owner)
		const calls = "/api/agents/clerk/calls"
		call := func(who []string, session, tool string, args object) (string, int) {
			t.Helper()
			r := h.Do("POST", calls, object{"tool": tool, "args": args, "session": session}, who...)
			return string(r.Body), r.Status
		}
		write := func(who []string, session, text string) {
			t.Helper()
			for tool, args := range map[string]object{"write_file": {"path": "/diary", "content": text},
				"scratchpad_write": {"items": []string{text}}} {
				if body, status := call(who, session, tool, args); status != 200 {
					t.Fatalf("%s: %d %s", tool, status, body)
				}
			}
		}
		readAll := func(who []string, session string) string {
			t.Helper()
			var all strings.Builder
			for tool, args := range map[string]object{"read_file": {"path": "/diary"}, "list_files": {},
				"scratchpad_read": {}} {
				body, _ := call(who, session, tool, args)
				all.WriteString(body)
			}
			all.Write(h.Do("GET", "/api/agents/clerk/messages?limit=500&session="+session, nil, who...).Body)
			return all.String()
		}
		write(nil, "", "the owner's words")
		write(ann, "", "the words of ann")
		for name, c := range map[string]struct {
			who     []string
			session string
			visible string
		}{
			"the owner": {nil, "", "the owner's words"}, "the owner, by name": {nil, "default", "the owner's words"},
			"ann": {ann, "", "the words of ann"}, "ann by another token": {again, "", "the words of ann"},
			"ann, by name": {ann, "default", "the words of ann"}, "ann, by her own": {ann, "default:ann",
				"the words of ann"},
			"bob": {bob, "", ""}, "bob, by name": {bob, "default", ""}, "bob, by ann's": {bob, "default:ann", ""},
			"bob, by the owner's": {bob, "default:owner", ""}, "another owner": {boss, "", ""},
			"another owner, by name": {boss, "default", "the owner's words"},
		} {
			got := readAll(c.who, c.session)
			for _, text := range []string{"the owner's words", "the words of ann"} {
				if strings.Contains(got, text) != (text == c.visible) {
					t.Errorf("%s: sees %q: %v: %s", name, text, text != c.visible, got)
				}
			}
		}
		for _, session := range []string{"default:ann", "default:", "default:nobody", "default:owner"} {
			call := object{"tool": "list_files", "args": object{}, "session": session}
			wantProblem(t, h.Do("POST", calls, call, bob...), 404, reeve.NotFound)
			wantProblem(t, h.Do("POST", calls+"/batch", object{"calls": []any{call}}, bob...), 404, reeve.NotFound)
			wantProblem(t, h.Do("POST", calls+"/explain", call, bob...), 404, reeve.NotFound)
		}
		write(ann, "work", "ann's own work")
		if got := readAll(ann, "work") + readAll(ann, "user:ann:work"); strings.Count(got, "ann's own work") < 2 {
			t.Errorf("ann does not see the session that she named: %s", got)
		}
		if got := readAll(bob, "work") + readAll(bob, "user:ann:work"); strings.Contains(got, "ann's own work") {
			t.Errorf("bob sees the session that ann named: %s", got)
		}
		write(ann, "shared:team", "what the team shares")
		if got := readAll(bob, "shared:team"); !strings.Contains(got, "what the team shares") {
			t.Errorf("bob does not see the shared session: %s", got)
		}
		messages := decode[api.MessageList](t, h.Want(200, nil, "GET", "/api/agents/clerk/messages", nil)).Messages
		if thread := messages[0].ThreadID; thread != id+":session:default" { // the name from before each user had a session
			t.Errorf("the owner's default session is %s", thread)
		}
	})
}
