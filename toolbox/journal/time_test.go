package journal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
)

// TestL19_RetrospectiveTime checks that a time entry requires a task, an end after the start, no future time and no
// overlap. Entries may span midnight and changes to and from daylight saving time.
func TestL19_RetrospectiveTime(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("scribe", fx.home)
		task := fx.createTask(fx.home, "Migrate")
		entry := func(from, to string) map[string]any {
			return map[string]any{"task_id": task.ID, "started_at": from, "ended_at": to}
		}
		const tool = "create_retrospective_time_entry"
		args := entry("2026-02-17T16:00:00-05:00", "2026-02-17T18:00:00-05:00")
		args["description"], args["source_entry_id"] = "Fixed the test", "audio-1"
		first := fx.mustChange(a, tool, args, "TIME_ENTRY", fx.home, task.ID)
		if e := first.TimeEntry; e.StartedAt.Format(time.RFC3339) != "2026-02-17T16:00:00-05:00" ||
			e.Note != "Fixed the test" || e.SourceID != "audio-1" {
			t.Errorf("got %+v", e)
		}
		for _, bad := range []struct{ from, to, path string }{
			{"2026-02-17T10:00:00Z", "2026-02-17T10:00:00Z", "/ended_at"},
			{"2026-02-17T10:00:00Z", "2026-02-17T09:00:00Z", "/ended_at"},
			{"2026-02-17T10:00:00", "2026-02-17T11:00:00Z", "/started_at"},
			{"yesterday", "2026-02-17T11:00:00Z", "/started_at"},
			{"2026-02-17T10:00:00Z", reeve.Now().Add(time.Hour).Format(time.RFC3339), "/ended_at"},
			{reeve.Now().Add(time.Hour).Format(time.RFC3339), reeve.Now().Add(2 * time.Hour).Format(time.RFC3339),
				"/ended_at"},
		} {
			fx.wantField(fx.wantError(reeve.Validation, a, tool, entry(bad.from, bad.to)), bad.path)
		}
		fx.wantField(fx.wantError(reeve.Validation, a, tool, map[string]any{"started_at": "2026-02-17T10:00:00Z",
			"ended_at": "2026-02-17T11:00:00Z"}), "")
		for _, span := range [][2]string{{"2026-02-17T22:59:59Z", "2026-02-17T23:30:00Z"},
			{"2026-02-17T20:00:00Z", "2026-02-18T03:00:00Z"},
			{"2026-02-17T17:00:00-05:00", "2026-02-17T17:01:00-05:00"}} {
			r := fx.wantError(reeve.Conflict, a, tool, entry(span[0], span[1]))
			if fx.wantField(r, "/started_at"); !strings.Contains(r.Message, first.TimeEntry.ID) {
				t.Errorf("does not name the other entry: %s", r.Message)
			}
		}
		for name, span := range map[string][2]string{
			"right after":     {"2026-02-17T18:00:00-05:00", "2026-02-17T18:30:00-05:00"},
			"across midnight": {"2026-02-18T23:30:00+01:00", "2026-02-19T00:45:00+01:00"},
			// 40 minutes
			"clocks went back":    {"2025-11-02T01:30:00-04:00", "2025-11-02T01:10:00-05:00"},
			"clocks went forward": {"2026-03-08T01:50:00-05:00", "2026-03-08T03:10:00-04:00"}, // 20 minutes
		} {
			e := fx.mustCall(a, tool, entry(span[0], span[1])).TimeEntry
			if e.StartedAt.Format(time.RFC3339) != span[0] || e.EndedAt.Format(time.RFC3339) != span[1] {
				t.Errorf("%s: got %v to %v", name, e.StartedAt, e.EndedAt)
			}
		}
		var list reeve.TimeEntryList
		fx.Want(http.StatusOK, &list, "GET", "/api/journal/time-entries?task="+task.ID, nil)
		if len(list.TimeEntries) != 5 {
			t.Errorf("%d entries", len(list.TimeEntries))
		}
		note := fx.mustChange(a, "annotate_time_entry", map[string]any{"time_entry_id": first.TimeEntry.ID,
			"description": "else"}, "TIME_ENTRY", fx.home)
		fx.undo(note)
		var back reeve.TimeEntry
		fx.Want(http.StatusOK, &back, "GET", "/api/journal/time-entries/"+first.TimeEntry.ID, nil)
		if back.Note != "Fixed the test" {
			t.Errorf("note %q", back.Note)
		}
	})
}

// TestL19_Timers checks that a user has at most one running timer, started by the user or an agent.
func TestL19_Timers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("scribe", fx.home)
		task := fx.createTask(fx.home, "Write")
		run := fx.mustChange(a, "start_task_timer", map[string]any{"task_id": task.ID}, "TIME_ENTRY", fx.home, task.ID).
			TimeEntry
		r := fx.wantError(reeve.Conflict, a, "start_task_timer", map[string]any{"task_id": task.ID})
		if !strings.Contains(r.Message, run.ID) {
			t.Errorf("does not name the running one: %s", r.Message)
		}
		var p api.Problem
		fx.Want(http.StatusConflict, &p, "POST", "/api/journal/timers", reeve.TimerStart{TaskID: task.ID})
		stop := map[string]any{"tool": "stop_task_timer", "args": map[string]any{"description": "done"}}
		var done, again reeve.Result
		fx.Want(http.StatusOK, &done, "POST", "/api/agents/"+a+"/calls", stop, "Idempotency-Key", "s")
		fx.Want(http.StatusOK, &again, "POST", "/api/agents/"+a+"/calls", stop, "Idempotency-Key", "s")
		if done.IsError || !again.Replayed {
			t.Fatalf("got %+v, %+v", done, again)
		}
		var e reeve.TimeEntry
		fx.Want(http.StatusOK, &e, "GET", "/api/journal/time-entries/"+run.ID, nil)
		if e.EndedAt == nil || !e.EndedAt.After(e.StartedAt) || e.Note != "done" {
			t.Errorf("got %+v", e)
		}
		fx.wantError(reeve.Conflict, a, "stop_task_timer", map[string]any{})
		fx.mustCall(a, "start_task_timer", map[string]any{"task_id": task.ID})
		// Another user can start a timer and does not see this one.
		var token api.NewToken
		fx.Want(http.StatusCreated, &token, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob",
			Role: reeve.Member})
		bob := []string{"Authorization", "Bearer " + token.Token}
		fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/time-entries/"+run.ID, nil, bob...)
		fx.Want(http.StatusNotFound, nil, "PATCH", "/api/journal/time-entries/"+run.ID,
			map[string]any{"description": "x"}, bob...)
		fx.Want(http.StatusCreated, nil, "POST", "/api/journal/timers", reeve.TimerStart{TaskID: task.ID}, bob...)
		var list reeve.TimeEntryList
		fx.Want(http.StatusOK, &list, "GET", "/api/journal/time-entries", nil, bob...)
		if len(list.TimeEntries) != 1 || list.TimeEntries[0].UserID != "bob" {
			t.Errorf("got %+v", list)
		}
		// A call for bob works on bob's entries only.
		fx.wantError(reeve.NotFound, a, "annotate_time_entry", map[string]any{"time_entry_id": run.ID,
			"description": "x"},
			bob...)
	})
}

// TestL19_Ambiguous checks that words that match several tasks return ranked candidates in a stable order and change
// nothing.
func TestL19_Ambiguous(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("scribe", fx.home, fx.gym)
		exact := fx.createTask(fx.home, "Tax return")
		begins := fx.createTask(fx.home, "Tax return 2026 for the farm")
		inside := fx.createTask(fx.gym, "Ask Ann about the tax return")
		apart := fx.createTask(fx.home, "Return the book on tax")
		fx.createTask(fx.home, "Water the plants")
		closed := fx.createTask(fx.home, "Tax return 2024")
		fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/tasks/"+closed.ID, map[string]any{"status": "done"})
		resolve := func(words string) reeve.TaskCandidates {
			t.Helper()
			res := fx.Call(a, "resolve_task_reference", map[string]any{"reference": words})
			var c reeve.TaskCandidates
			if err := json.Unmarshal([]byte(res.Content), &c); err != nil {
				t.Fatalf("%v in %s", err, res.Content)
			}
			if res.OperationID != "" || len(res.Changed) != 0 {
				t.Errorf("resolving changed something: %+v", res)
			}
			return c
		}
		ids := func(c reeve.TaskCandidates) (s []string) {
			for _, v := range c.Candidates {
				s = append(s, v.TaskID)
			}
			return s
		}
		got := resolve("  TAX   return ")
		if want := strings.Join([]string{exact.ID, begins.ID, inside.ID, apart.ID}, " "); strings.Join(ids(got),
			" ") != want || got.Ambiguous {
			t.Errorf("got %+v", got)
		}
		part := resolve("the tax")
		if !part.Ambiguous || len(part.Candidates) < 3 {
			t.Errorf("got %+v", part)
		}
		if again := resolve("the tax"); strings.Join(ids(again), " ") != strings.Join(ids(part), " ") {
			t.Errorf("the order changed: %v, then %v", ids(part), ids(again))
		}
		if one := resolve(inside.ID); len(one.Candidates) != 1 || one.Ambiguous || one.Candidates[0].Score != 1000 {
			t.Errorf("got %+v", one)
		}
		if twice := fx.createTask(fx.gym, "tax RETURN"); !resolve("tax return").Ambiguous {
			t.Errorf("two tasks of one title, %s and %s, are not ambiguous", exact.ID, twice.ID)
		}
		if none := resolve("100% \\ _"); len(none.Candidates) != 0 || !none.Ambiguous {
			t.Errorf("got %+v", none)
		}
		// Tools that write accept only an id.
		fx.wantError(reeve.Validation, a, "create_retrospective_time_entry", map[string]any{"task_id": "the tax",
			"started_at": "2026-02-17T10:00:00Z", "ended_at": "2026-02-17T11:00:00Z"})
		fx.wantError(reeve.Validation, a, "start_task_timer", map[string]any{"task_id": "Tax return"})
		fx.wantError(reeve.NotFound, a, "start_task_timer", map[string]any{"task_id": "task_return"})
		var list reeve.TimeEntryList
		if fx.Want(http.StatusOK, &list, "GET", "/api/journal/time-entries", nil); len(list.TimeEntries) != 0 {
			t.Errorf("created: %+v", list)
		}
	})
}

// TestL19_NoOverlapWithRunningTimer checks that an entry cannot overlap a running timer.
func TestL19_NoOverlapWithRunningTimer(t *testing.T) {
	fx := newFixture(t, host.Config{})
	task := fx.createTask(fx.home, "Write")
	var run reeve.TimeEntry
	fx.Want(http.StatusCreated, &run, "POST", "/api/journal/timers", reeve.TimerStart{TaskID: task.ID})
	fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/time-entries/"+run.ID, map[string]any{"started_at": reeve.Now().
		Add(-time.Hour).Format(time.RFC3339)})
	var p api.Problem
	fx.Want(http.StatusConflict, &p, "POST", "/api/journal/time-entries", reeve.TimeDraft{TaskID: task.ID,
		StartedAt: reeve.Now().Add(-30 * time.Minute).Format(time.RFC3339), EndedAt: reeve.Now().Add(-20 * time.Minute).
				Format(time.RFC3339)})
	if len(p.Errors) == 0 || p.Errors[0].Path != "/started_at" {
		t.Errorf("got %+v", p)
	}
}

// TestL19_ListTime checks that an agent lists only the time entries of its user in its categories, in pages.
func TestL19_ListTime(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		mine, other := fx.createTask(fx.gym, "Row"), fx.createTask(fx.home, "Hedges")
		a := fx.createAgent("coach", fx.gym)
		var made []string
		for i := range 5 {
			e := fx.mustCall(a, "create_retrospective_time_entry",
				map[string]any{"task_id": mine.ID, "started_at": fmt.Sprintf("2026-02-1%dT08:00:00Z", i),
					"ended_at": fmt.Sprintf("2026-02-1%dT09:00:00Z", i)})
			made = append([]string{e.TimeEntry.ID}, made...)
		}
		fx.Want(http.StatusCreated, nil, "POST", "/api/journal/time-entries",
			reeve.TimeDraft{TaskID: other.ID, StartedAt: "2026-02-10T10:00:00Z", EndedAt: "2026-02-10T11:00:00Z"})
		list := func(args map[string]any) (ids []string, next string) {
			got := fx.mustCall(a, "list_time_entries", args)
			for _, e := range got.Times {
				ids = append(ids, e.ID)
			}
			return ids, got.Next
		}
		if got, next := list(map[string]any{}); !slices.Equal(got, made) || next != "" {
			t.Errorf("got %v %q, want %v", got, next, made)
		}
		first, next := list(map[string]any{"limit": 3})
		rest, end := list(map[string]any{"limit": 3, "cursor": next})
		if !slices.Equal(append(first, rest...), made) || end != "" {
			t.Errorf("in pages: %v and %v", first, rest)
		}
		if got, _ := list(map[string]any{"from": "2026-02-12T09:00:00Z", "to": "2026-02-14T08:00:00Z"}); !slices.Equal(
			got, made[1:2]) {
			t.Errorf("within a span: %v", got)
		}
		running := fx.mustCall(a, "start_task_timer", map[string]any{"task_id": mine.ID}).TimeEntry
		if got, _ := list(map[string]any{"running": true, "task_id": mine.ID}); !slices.Equal(got,
			[]string{running.ID}) {
			t.Errorf("running: %v", got)
		}
		for path, args := range map[string]map[string]any{"/from": {"from": "yesterday"},
			"/to": {"to": "2026-02-30T00:00:00Z"}, "/cursor": {"cursor": "x"}} {
			if r := fx.wantError(reeve.Validation, a, "list_time_entries", args); len(r.Fields) != 1 ||
				r.Fields[0].Path != path {
				t.Errorf("%s: %+v", path, r)
			}
		}
		fx.wantError(reeve.OutOfScope, a, "list_time_entries", map[string]any{"task_id": other.ID})
	})
}

// TestL19_SameValuesAreNoChange checks that an update with the same values changes nothing.
func TestL19_SameValuesAreNoChange(t *testing.T) {
	fx := newFixture(t, host.Config{})
	task := fx.createTask(fx.home, "Write")
	var same reeve.Task
	if fx.Want(http.StatusOK, &same, "PATCH", "/api/journal/tasks/"+task.ID, map[string]any{"title": " Write "}); !same.UpdatedAt.Equal(task.UpdatedAt) || same.Title != "Write" {
		t.Errorf("from %+v to %+v", task, same)
	}
	span := map[string]any{"started_at": "2026-02-17T10:00:00+01:00", "ended_at": "2026-02-17T11:00:00+01:00"}
	var entry, again reeve.TimeEntry
	fx.Want(http.StatusCreated, &entry, "POST", "/api/journal/time-entries",
		reeve.TimeDraft{TaskID: task.ID, StartedAt: span["started_at"].(string), EndedAt: span["ended_at"].(string)})
	if fx.Want(http.StatusOK, &again, "PATCH", "/api/journal/time-entries/"+entry.ID, span); !again.UpdatedAt.Equal(entry.UpdatedAt) {
		t.Errorf("from %+v to %+v", entry, again)
	}
	span["ended_at"] = "2026-02-17T12:00:00+02:00" // the same time in another zone
	if fx.Want(http.StatusOK, &again, "PATCH", "/api/journal/time-entries/"+entry.ID, span); again.EndedAt.Format(time.RFC3339) != span["ended_at"] {
		t.Errorf("from %+v to %+v", entry, again)
	}
	rating := reeve.RatingDraft{Target: reeve.RatedTask, TargetID: task.ID, Scores: map[string]int64{"energy": 50},
		Note: "fine"}
	var first, second reeve.Rating
	fx.Want(http.StatusOK, &first, "PUT", "/api/journal/ratings", rating)
	if fx.Want(http.StatusOK, &second, "PUT", "/api/journal/ratings", rating); !second.UpdatedAt.Equal(first.UpdatedAt) || second.Note != "fine" {
		t.Errorf("from %+v to %+v", first, second)
	}
	rating.Note = "better"
	if fx.Want(http.StatusOK, &second, "PUT", "/api/journal/ratings", rating); second.Note != "better" {
		t.Errorf("from %+v to %+v", first, second)
	}
}
