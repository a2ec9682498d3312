package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// deskAgent is an agent with two tools, one that calls the witness and one that writes to the journal.
type deskAgent struct {
	*reevetest.Host
	agent, category string
}

// newDeskAgent creates the agent, its tools at the witness and its category.
func newDeskAgent(h *reevetest.Host, w *kit.Witness) deskAgent {
	h.T.Helper()
	kit.DefineHTTPTool(h, "send", reeve.Keyed, kit.Object{"method": "POST", "url": w.URL}, nil)
	h.Want(http.StatusOK, nil, "PUT", "/api/profiles/clerk", api.ProfileRequest{Capabilities: []string{"task.write"}})
	var c reeve.Category
	h.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Gym"})
	a := h.Agent("clerk", "send", "create_task")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/clerk", kit.Object{"kind": "clerk", "categories": []string{c.ID}})
	return deskAgent{h, a.ID, c.ID}
}

func (d deskAgent) on(h *reevetest.Host) deskAgent { return deskAgent{h, d.agent, d.category} }

// makeCalls makes both calls with idempotency keys and returns their results.
func (d deskAgent) makeCalls(key string) [2]reeve.Result {
	d.T.Helper()
	return [2]reeve.Result{
		d.Call(d.agent, "send", kit.Object{"n": key}, "Idempotency-Key", "send-"+key),
		d.Call(d.agent, "create_task", kit.Object{"category_id": d.category, "title": "Task " + key}, "Idempotency-Key",
			"task-"+key),
	}
}

// listTasks returns the ids of all tasks, newest first.
func (d deskAgent) listTasks() string {
	d.T.Helper()
	var list api.TaskList
	d.Want(http.StatusOK, &list, "GET", "/api/journal/tasks", nil)
	var ids []string
	for _, t := range list.Tasks {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}

// checkSame checks that repeated calls have the ids and results of the first ones.
func checkSame(t *testing.T, first, again [2]reeve.Result, replayed bool) {
	t.Helper()
	for i := range first {
		if again[i].OperationID != first[i].OperationID || again[i].Replayed != replayed || again[i].IsError ||
			again[i].State != reeve.Committed {
			t.Errorf("first %+v\nagain %+v", first[i], again[i])
		}
		if replayed && again[i].Content != first[i].Content {
			t.Errorf("it says %q, and said %q", again[i].Content, first[i].Content)
		}
	}
}

// startSecondDevice restores a backup of a host into another directory and starts a host there.
func startSecondDevice(h *reevetest.Host) *reevetest.Host {
	h.T.Helper()
	dir, file := h.T.TempDir(), filepath.Join(h.T.TempDir(), "copy.db")
	if err := h.Backup(h.T.Context(), file); err != nil {
		h.T.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(h.Dir(), "secret.key"))
	if err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), key, 0o600); err != nil {
		h.T.Fatal(err)
	}
	cfg := h.Config
	cfg.Dir = dir
	if _, err := host.Restore(h.T.Context(), cfg, file); err != nil {
		h.T.Fatal(err)
	}
	next := reevetest.StartWith(h.T, cfg)
	next.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{}) // a restored server starts held
	return next
}

// The same key on a second server of the database, and on either after a restart, is one effect.
func TestL25_TheSameKeyOnAnotherServer(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	one := newDeskAgent(reevetest.StartWith(t, cfg), w)
	other := cfg
	other.Dir = t.TempDir()
	two := one.on(reevetest.StartWith(t, other))
	first := one.makeCalls("k")
	checkSame(t, first, two.makeCalls("k"), true)
	one.Stop()
	one = one.on(reevetest.StartWith(t, cfg))
	checkSame(t, first, one.makeCalls("k"), true)
	if _, p, status := kit.TryCall(two.Host, two.agent, kit.Call{"tool": "send", "args": kit.Object{"n": "other"}},
		"Idempotency-Key",
		"send-k"); status != http.StatusConflict {
		t.Errorf("the key for another call: %d %+v", status, p)
	}
	if effects, requests := w.Count(); effects != 1 || requests != 1 || strings.Contains(one.listTasks(), " ") ||
		one.listTasks() == "" || one.listTasks() != two.listTasks() {
		t.Errorf("%d effects of %d requests, tasks %s and %s", effects, requests, one.listTasks(), two.listTasks())
	}
}

// A backup that continues on a second device knows what was done before it. What was done after it is done again under
// the same operation id, so that the receiver sees the same key and the row is the same.
func TestL25_ABackupOnASecondDevice(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	one := newDeskAgent(reevetest.StartWith(t, kit.FastConfig(t)), w)
	before := one.makeCalls("before")
	two := one.on(startSecondDevice(one.Host))
	checkSame(t, before, two.makeCalls("before"), true)
	after := one.makeCalls("after")
	made := two.makeCalls("after")
	checkSame(t, after, made, false)
	checkSame(t, made, two.makeCalls("after"), true)
	if one.listTasks() != two.listTasks() || len(strings.Fields(one.listTasks())) != 2 {
		t.Errorf("tasks %q and %q", one.listTasks(), two.listTasks())
	}
	if effects, requests := w.Count(); effects != 2 || requests != 3 {
		t.Errorf("%d effects of %d requests", effects, requests)
	}
	for _, d := range []deskAgent{one, two} {
		if n := len(kit.ListOperations(d.Host)); n != 4 {
			t.Errorf("%d operations", n)
		}
	}
}

// A wake that two devices serve is one run by its key: each call of its plan has the same operation id on both.
func TestL25_APlanOnASecondDevice(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	one := newDeskAgent(reevetest.StartWith(t, kit.FastConfig(t)), w)
	kit.SetRehearsal(one.Host, one.agent, "done", kit.Object{"tool": "send", "args": kit.Object{"n": 1}},
		kit.Object{"tool": "create_task", "args": kit.Object{"category_id": one.category, "title": "Next"}},
		kit.Object{"tool": "send", "args": kit.Object{"n": 2}})
	one.Want(http.StatusCreated, nil, "POST", "/api/agents/clerk/wake", kit.Object{}, "Idempotency-Key", "go")
	two := one.on(startSecondDevice(one.Host)) // the wake waits in both
	done := map[string]int{}
	for _, d := range []deskAgent{one, two} {
		kit.WaitUntilIdle(d.Host)
		// and is not served again
		d.Want(http.StatusCreated, nil, "POST", "/api/agents/clerk/wake", kit.Object{}, "Idempotency-Key", "go")
		kit.WaitUntilIdle(d.Host)
		runs := kit.ListRuns(d.Host, "")
		if len(runs) != 1 || runs[0].State != reeve.RunCompleted {
			t.Fatalf("%+v", runs)
		}
		done[runs[0].Key]++
		for _, op := range kit.ListOperations(d.Host) {
			done[op.ID]++
		}
	}
	if len(done) != 4 {
		t.Errorf("a run and three operations have %d ids on two devices: %v", len(done), done)
	}
	if one.listTasks() != two.listTasks() || len(strings.Fields(one.listTasks())) != 1 {
		t.Errorf("tasks %q and %q", one.listTasks(), two.listTasks())
	}
	if effects, requests := w.Count(); effects != 2 || requests != 4 {
		t.Errorf("%d effects of %d requests", effects, requests)
	}
}
