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

// desk is an agent with an effect far away and one in the journal, on one device or another.
type desk struct {
	*reevetest.Host
	agent, category string
}

// furnish gives a Reeve the agent, its tools at the witness and its category.
func furnish(h *reevetest.Host, w *kit.Witness) desk {
	h.T.Helper()
	kit.DefineHTTPTool(h, "send", reeve.Keyed, kit.Object{"method": "POST", "url": w.URL}, nil)
	h.Want(http.StatusOK, nil, "PUT", "/api/profiles/clerk", api.ProfileRequest{Capabilities: []string{"task.write"}})
	var c reeve.Category
	h.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Gym"})
	a := h.Agent("clerk", "send", "create_task")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/clerk", kit.Object{"kind": "clerk", "categories": []string{c.ID}})
	return desk{h, a.ID, c.ID}
}

func (d desk) with(h *reevetest.Host) desk { return desk{h, d.agent, d.category} }

// act makes both calls under keys of the caller's, and gives what they were.
func (d desk) act(key string) [2]reeve.Result {
	d.T.Helper()
	return [2]reeve.Result{
		d.Call(d.agent, "send", kit.Object{"n": key}, "Idempotency-Key", "send-"+key),
		d.Call(d.agent, "create_task", kit.Object{"category_id": d.category, "title": "Task " + key}, "Idempotency-Key",
			"task-"+key),
	}
}

// tasks lists the ids of all tasks, newest first.
func (d desk) tasks() string {
	d.T.Helper()
	var list api.TaskList
	d.Want(http.StatusOK, &list, "GET", "/api/journal/tasks", nil)
	var ids []string
	for _, t := range list.Tasks {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}

// same checks that calls made again are the calls that were made, with their results.
func same(t *testing.T, first, again [2]reeve.Result, replayed bool) {
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

// second restores a backup of a Reeve into another directory and starts it there.
func second(h *reevetest.Host) *reevetest.Host {
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
	one := furnish(reevetest.StartWith(t, cfg), w)
	other := cfg
	other.Dir = t.TempDir()
	two := one.with(reevetest.StartWith(t, other))
	first := one.act("k")
	same(t, first, two.act("k"), true)
	one.Stop()
	one = one.with(reevetest.StartWith(t, cfg))
	same(t, first, one.act("k"), true)
	if _, p, status := kit.TryCall(two.Host, two.agent, kit.Call{"tool": "send", "args": kit.Object{"n": "other"}},
		"Idempotency-Key",
		"send-k"); status != http.StatusConflict {
		t.Errorf("the key for another call: %d %+v", status, p)
	}
	if effects, requests := w.Count(); effects != 1 || requests != 1 || strings.Contains(one.tasks(), " ") ||
		one.tasks() == "" || one.tasks() != two.tasks() {
		t.Errorf("%d effects of %d requests, tasks %s and %s", effects, requests, one.tasks(), two.tasks())
	}
}

// A backup that continues on a second device knows what was done before it. What was done after it is done again under
// the same operation id, so that the receiver sees the same key and the row is the same.
func TestL25_ABackupOnASecondDevice(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	one := furnish(reevetest.StartWith(t, kit.FastConfig(t)), w)
	before := one.act("before")
	two := one.with(second(one.Host))
	same(t, before, two.act("before"), true)
	after := one.act("after")
	made := two.act("after")
	same(t, after, made, false)
	same(t, made, two.act("after"), true)
	if one.tasks() != two.tasks() || len(strings.Fields(one.tasks())) != 2 {
		t.Errorf("tasks %q and %q", one.tasks(), two.tasks())
	}
	if effects, requests := w.Count(); effects != 2 || requests != 3 {
		t.Errorf("%d effects of %d requests", effects, requests)
	}
	for _, d := range []desk{one, two} {
		if n := len(kit.ListOperations(d.Host)); n != 4 {
			t.Errorf("%d operations", n)
		}
	}
}

// A wake that two devices serve is one run by its key: each call of its plan has the same operation id on both.
func TestL25_APlanOnASecondDevice(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	one := furnish(reevetest.StartWith(t, kit.FastConfig(t)), w)
	kit.SetRehearsal(one.Host, one.agent, "done", kit.Object{"tool": "send", "args": kit.Object{"n": 1}},
		kit.Object{"tool": "create_task", "args": kit.Object{"category_id": one.category, "title": "Next"}},
		kit.Object{"tool": "send", "args": kit.Object{"n": 2}})
	one.Want(http.StatusCreated, nil, "POST", "/api/agents/clerk/wake", kit.Object{}, "Idempotency-Key", "go")
	two := one.with(second(one.Host)) // the wake waits in both
	done := map[string]int{}
	for _, d := range []desk{one, two} {
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
	if one.tasks() != two.tasks() || len(strings.Fields(one.tasks())) != 1 {
		t.Errorf("tasks %q and %q", one.tasks(), two.tasks())
	}
	if effects, requests := w.Count(); effects != 2 || requests != 4 {
		t.Errorf("%d effects of %d requests", effects, requests)
	}
}
