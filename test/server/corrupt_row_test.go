package server_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A row that cannot be read wakes no agent whose predicate would read it, and does not keep others from waking.
func TestL06_CorruptEntityBlocksNoOther(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	picky, easy := h.Agent("picky"), h.Agent("easy")
	kit.SetRehearsal(h, picky.ID, "seen")
	kit.SetRehearsal(h, easy.ID, "seen")
	kit.Subscribe(h, picky.ID, "key", "TASK", `entity.title != ""`)
	kit.Subscribe(h, easy.ID, "key", "TASK", "")
	var c reeve.Category
	h.Want(201, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Gym"})
	kit.UpdateAgent(h, picky, kit.Object{"categories": []string{c.ID}})
	var bad reeve.Task
	h.Want(201, &bad, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: c.ID, Title: "corrupt"})
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.Dir(), "reeve.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE tasks SET clock = '{' WHERE id = $1`, bad.ID); err != nil {
		t.Fatal(err)
	}
	var good reeve.Task
	h.Want(201, &good, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: c.ID, Title: "good"})
	kit.StepInBackground(t, h)
	kit.Eventually(t, "both to have run", func() bool {
		return len(kit.ListRuns(h, "agent=picky&state=completed")) > 0 &&
			len(kit.ListRuns(h, "agent=easy&state=completed")) > 0
	})
	kit.Eventually(t, "the wake that cannot be judged to be skipped", func() bool {
		waits, skipped := 0, 0
		for _, w := range kit.ListWakes(h, picky.ID) {
			switch {
			case w.State == reeve.WakeQueued:
				waits++
			case w.State == reeve.WakeSkipped && strings.Contains(w.Why, "could not be read"):
				skipped++
			}
		}
		return waits == 0 && skipped == 1
	})
	for _, w := range kit.ListWakes(h, easy.ID) {
		if w.State != reeve.WakeTaken {
			t.Errorf("%+v", w)
		}
	}
}
