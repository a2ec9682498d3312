package wake_test

import (
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
	tools "reeve/toolbox/journal"
)

// watchedKeys are the keys that a subscription can name.
var watchedKeys = []string{"TASK", "CATEGORY", "LABEL", "CHECKLIST", "TIME_ENTRY", "DAY_PLAN", "RATING", "AGENT_STATE",
	"AGENT", "AGENT_MESSAGE", "SCHEDULE", "SCHEDULE_FIRED", "SCHEDULE_ENDED", "FILE", "SESSION_FILE", "SCRATCHPAD",
	"MEDIA", "NOTIFICATION"}

// changeEverything causes a change of each watched key.
func changeEverything(h *reevetest.Host) {
	h.T.Helper()
	gym, task := newGym(h)
	post := func(path string, body kit.Object) { h.T.Helper(); h.Want(201, nil, "POST", path, body) }
	post("/api/journal/labels", kit.Object{"name": "heavy"})
	post("/api/journal/checklists", kit.Object{"task_id": task.ID, "title": "sets"})
	post("/api/journal/time-entries", kit.Object{"task_id": task.ID, "started_at": "2026-02-17T16:00:00-05:00",
		"ended_at": "2026-02-17T17:00:00-05:00"})
	h.Want(200, nil, "POST", "/api/journal/plans/2026-02-17/blocks", kit.Object{"upserts": []kit.Object{{
		"category_id": gym.ID, "start_time": "2026-02-17T16:00:00Z", "end_time": "2026-02-17T17:00:00Z"}}})
	h.Want(200, nil, "PUT", "/api/journal/ratings", kit.Object{"target_kind": "task", "target_id": task.ID,
		"scores": kit.Object{"focus": 80}})
	h.Agent("scribe", "write_file", "file_write", "scratchpad_write")
	h.Want(200, nil, "PUT", "/api/agents/scribe/state", kit.Object{"revision": 0,
		"slots": kit.Object{"primary_goal": "Write"}})
	h.Call("scribe", "write_file", kit.Object{"path": "/a", "content": "x"})
	h.Call("scribe", "file_write", kit.Object{"path": "/shared/b.txt", "content": "x"})
	h.Call("scribe", "scratchpad_write", kit.Object{"items": []string{"x"}})
	kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "the picture").ID)
	var s reeve.Timer
	h.Want(201, &s, "POST", "/api/schedules", kit.Object{"agent": "scribe", "goal": "the report", "notification": "always",
		"cadence_type": "cron", "cadence_value": "0 7 1 1 *"})
	post("/api/schedules/"+s.ID+"/run", kit.Object{})
}

// Every change that wakes an agent can be looked up by the id that its run is given.
func TestL29_EveryChangeIDCanBeLookedUp(t *testing.T) {
	t.Parallel()
	h := kit.RunMediaAgent(t, "- {when: {said: /./}, text: fine}\n")
	h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{
		Capabilities: append(tools.Capabilities(), "files.write", "files.read")})
	for _, key := range watchedKeys {
		h.Agent("on-" + strings.ToLower(strings.ReplaceAll(key, "_", "-")))
		kit.Subscribe(h, "on-"+strings.ToLower(strings.ReplaceAll(key, "_", "-")), "key", key, "")
	}
	changeEverything(h)
	for _, key := range watchedKeys {
		watcher := "on-" + strings.ToLower(strings.ReplaceAll(key, "_", "-"))
		var wakes []reeve.Wake
		kit.Eventually(t, "a wake of "+watcher, func() bool {
			wakes = kit.ListWakes(h, watcher)
			return len(wakes) > 0
		})
		for _, w := range wakes {
			var c reeve.ChangeRecord
			if r := h.Do("GET", "/api/changes/"+w.OperationID, nil); r.Status != 200 {
				t.Errorf("%s: change %s: %d %s", key, w.OperationID, r.Status, r.Body)
			} else if r.Decode(t, &c); c.ID != w.OperationID || time.Since(c.CreatedAt) > time.Hour {
				t.Errorf("%s: %+v", key, c)
			}
		}
	}
}

// The name of a file in a user's own session is shown to nobody else whom the change wakes or who looks it up.
func TestL29_FilesOfOwnSessionsArePrivate(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: fine}\n")}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		h.Agent("scribe", "write_file")
		kit.NewPersona(h, "watcher", kit.Object{"mode": "hybrid", "config": kit.Object{"instructions": "I am watcher."}})
		h.Want(201, nil, "POST", "/api/agents/watcher/subscriptions", kit.Object{"class": "key", "name": "SESSION_FILE"},
			ben...)
		h.Want(200, nil, "POST", "/api/agents/scribe/calls", kit.Object{"tool": "write_file",
			"args": kit.Object{"path": "/divorce.md", "content": "x"}}, ann...)
		kit.Eventually(t, "the watcher is asked", func() bool { return heard.LastPrompt("I am watcher") != "" })
		if got := heard.LastPrompt("I am watcher"); strings.Contains(got, "divorce") ||
			!strings.Contains(got, "1 that you may not read") {
			t.Errorf("the watcher is told %s", got)
		}
	})
}
