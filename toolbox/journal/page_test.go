package journal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
)

// pages reads a list to its end and gives its ids. No page is cut but one of a single thing, which says first how to go
// on.
func (w *world) pages(agent, tool, list string, args map[string]any) (ids []string, cut int) {
	w.T.Helper()
	for range 200 {
		res := w.Call(agent, tool, args)
		if res.IsError {
			w.T.Fatalf("%+v", res)
		}
		if res.Truncated {
			rest, ok := strings.CutPrefix(res.Content, `{"next_cursor":"`)
			next, rest, _ := strings.Cut(rest, `"`)
			_, rest, one := strings.Cut(rest, `[{"id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			if !ok || !one {
				w.T.Fatalf("%.200s", res.Content)
			}
			ids, cut, args["cursor"] = append(ids, id), cut+1, next
			continue
		}
		var page map[string]json.RawMessage
		var things []struct{ ID string }
		var next string
		if err := json.Unmarshal([]byte(res.Content), &page); err != nil {
			w.T.Fatal(err)
		}
		if err := json.Unmarshal(page[list], &things); err != nil {
			w.T.Fatal(err)
		}
		for _, v := range things {
			ids = append(ids, v.ID)
		}
		if page["next_cursor"] == nil {
			return ids, cut
		}
		if err := json.Unmarshal(page["next_cursor"], &next); err != nil || len(things) == 0 {
			w.T.Fatalf("%s: %v", res.Content, err)
		}
		args["cursor"] = next
	}
	w.T.Fatal("it has no end")
	return nil, 0
}

// wantAll tells whether all of these are there, each once.
func wantAll(t *testing.T, got []string, want map[string]bool) {
	t.Helper()
	for _, id := range got {
		if !want[id] {
			t.Errorf("%s is given twice", id)
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("%d are never given", len(want))
	}
}

// A page of tasks, or of time, ends before it is longer than what callers are shown, and says how to go on.
func TestO13_JournalInPages(t *testing.T) {
	for _, most := range []int{0, 1024} {
		w := start(t, host.Config{OutputCap: most})
		a := w.agent("coach", w.home)
		want, size := map[string]bool{}, 290
		if most > 0 {
			size = 90
		}
		for i := range 130 {
			want[w.task(w.home, fmt.Sprint(i, strings.Repeat("題", size))).ID] = true
		}
		var long reeve.Task
		w.Want(http.StatusCreated, &long, "POST", "/api/journal/tasks",
			reeve.TaskDraft{CategoryID: w.home, Title: "long", Description: strings.Repeat("é", 20_000)})
		want[long.ID] = true
		w.checklist(long.ID, "steps", "one", "two")
		ids, cut := w.pages(a, "list_tasks_in_scope", "tasks", map[string]any{"limit": 100, "include_checklists": true})
		if wantAll(t, ids, want); cut != 1 {
			t.Errorf("%d pages of tasks were cut", cut)
		}
		spent := map[string]bool{}
		for i := range 40 {
			note, at := strings.Repeat("\u2028", size/3), time.Date(2020, 1, 1, i, 0, 0, 0, time.UTC)
			if i == 20 {
				note = strings.Repeat("字", 9000)
			}
			var e reeve.TimeEntry
			w.Want(http.StatusCreated, &e, "POST", "/api/journal/time-entries",
				map[string]any{"task_id": long.ID, "started_at": at.Format(time.RFC3339), "ended_at": at.Add(time.Hour).
					Format(time.RFC3339), "description": note})
			spent[e.ID] = true
		}
		ids, cut = w.pages(a, "list_time_entries", "time_entries", map[string]any{"limit": 100})
		if wantAll(t, ids, spent); cut != 1 {
			t.Errorf("%d pages of time were cut", cut)
		}
	}
}
