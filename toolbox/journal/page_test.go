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

// readPages reads a list to its end and returns its ids. A page is truncated only if it has a single entry. The cursor
// of a truncated page comes first. cut counts the truncated pages.
func (fx *fixture) readPages(agent, tool, list string, args map[string]any) (ids []string, cut int) {
	fx.T.Helper()
	for range 200 {
		res := fx.Call(agent, tool, args)
		if res.IsError {
			fx.T.Fatalf("%+v", res)
		}
		if res.Truncated {
			rest, ok := strings.CutPrefix(res.Content, `{"next_cursor":"`)
			next, rest, _ := strings.Cut(rest, `"`)
			_, rest, one := strings.Cut(rest, `[{"id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			if !ok || !one {
				fx.T.Fatalf("%.200s", res.Content)
			}
			ids, cut, args["cursor"] = append(ids, id), cut+1, next
			continue
		}
		var page map[string]json.RawMessage
		var things []struct{ ID string }
		var next string
		if err := json.Unmarshal([]byte(res.Content), &page); err != nil {
			fx.T.Fatal(err)
		}
		if err := json.Unmarshal(page[list], &things); err != nil {
			fx.T.Fatal(err)
		}
		for _, v := range things {
			ids = append(ids, v.ID)
		}
		if page["next_cursor"] == nil {
			return ids, cut
		}
		if err := json.Unmarshal(page["next_cursor"], &next); err != nil || len(things) == 0 {
			fx.T.Fatalf("%s: %v", res.Content, err)
		}
		args["cursor"] = next
	}
	fx.T.Fatal("the list does not end")
	return nil, 0
}

// wantAll checks that got contains each id of want once.
func wantAll(t *testing.T, got []string, want map[string]bool) {
	t.Helper()
	for _, id := range got {
		if !want[id] {
			t.Errorf("%s is listed twice", id)
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("%d ids are not listed", len(want))
	}
}

// TestO13_JournalPagesFitOutput checks that pages of tasks and of time entries fit the output limit and have a cursor.
func TestO13_JournalPagesFitOutput(t *testing.T) {
	for _, most := range []int{0, 1024} {
		fx := newFixture(t, host.Config{OutputCap: most})
		a := fx.createAgent("coach", fx.home)
		want, size := map[string]bool{}, 290
		if most > 0 {
			size = 90
		}
		for i := range 130 {
			want[fx.createTask(fx.home, fmt.Sprint(i, strings.Repeat("題", size))).ID] = true
		}
		var long reeve.Task
		fx.Want(http.StatusCreated, &long, "POST", "/api/journal/tasks",
			reeve.TaskDraft{CategoryID: fx.home, Title: "long", Description: strings.Repeat("é", 20_000)})
		want[long.ID] = true
		fx.createChecklist(long.ID, "steps", "one", "two")
		ids, cut := fx.readPages(a, "list_tasks_in_scope", "tasks",
			map[string]any{"limit": 100, "include_checklists": true})
		if wantAll(t, ids, want); cut != 1 {
			t.Errorf("%d pages of tasks were truncated; want 1", cut)
		}
		spent := map[string]bool{}
		for i := range 40 {
			note, at := strings.Repeat("\u2028", size/3), time.Date(2020, 1, 1, i, 0, 0, 0, time.UTC)
			if i == 20 {
				note = strings.Repeat("字", 9000)
			}
			var e reeve.TimeEntry
			fx.Want(http.StatusCreated, &e, "POST", "/api/journal/time-entries",
				map[string]any{"task_id": long.ID, "started_at": at.Format(time.RFC3339), "ended_at": at.Add(time.Hour).
					Format(time.RFC3339), "description": note})
			spent[e.ID] = true
		}
		ids, cut = fx.readPages(a, "list_time_entries", "time_entries", map[string]any{"limit": 100})
		if wantAll(t, ids, spent); cut != 1 {
			t.Errorf("%d pages of time entries were truncated; want 1", cut)
		}
	}
}
