package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

var scheduleTools = []string{"schedule_create", "schedule_search", "schedule_edit", "schedule_delete", "schedule_runs",
	"schedule_run_output"}

func (b *bubble) attach(agent string, tools ...string) {
	b.t.Helper()
	for _, id := range tools {
		b.want(201, nil, "POST", "/api/agents/"+agent+"/tools", object{"tool_id": id})
	}
}

// in reads a result's content.
func in[T any](t testing.TB, res reeve.Result) (v T) {
	t.Helper()
	if res.IsError {
		t.Fatalf("%+v", res)
	}
	if err := json.Unmarshal([]byte(res.Content), &v); err != nil {
		t.Fatalf("%s: %v", res.Content, err)
	}
	return v
}

// Another user's schedule or run is like one that does not exist, to every tool, to the letter.
func TestO11_AnothersIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		a := b.agent("aide", nil)
		b.attach("aide", scheduleTools...)
		mine := in[api.Schedule](t, b.call("ann", a.ID, "schedule_create",
			object{"goal": "g", "cadence_type": "interval", "cadence_value": "1h"}))
		b.pass(90*time.Minute, 30*time.Minute)
		run := b.runs("")[0]
		if run.UserID != "ann" || run.State != reeve.RunCompleted {
			t.Fatalf("%+v", run)
		}
		for tool, args := range map[string]func(id string) object{
			"schedule_edit":       func(id string) object { return object{"schedule_id": id, "name": "x"} },
			"schedule_delete":     func(id string) object { return object{"schedule_id": id} },
			"schedule_runs":       func(id string) object { return object{"schedule_id": id} },
			"schedule_run_output": func(id string) object { return object{"run_id": id} },
		} {
			real, none := mine.ID, "sch_none"
			if tool == "schedule_run_output" {
				real, none = run.ID, "run_none"
			}
			theirs, nobodys := b.call("bob", a.ID, tool, args(real)), b.call("bob", a.ID, tool, args(none))
			if !theirs.IsError || theirs.Code != nobodys.Code || strings.ReplaceAll(theirs.Message, real,
				none) != nobodys.Message || theirs.Hint != nobodys.Hint {
				t.Errorf("%s: %+v\nand of nobody's: %+v", tool, theirs, nobodys)
			}
			if res := b.call("", a.ID, tool, args(real)); !res.IsError {
				t.Errorf("%s on nobody's behalf: %+v", tool, res)
			}
		}
		if got := in[object](t, b.call("bob", a.ID, "schedule_search", object{})); got["total"] != 0.0 {
			t.Errorf("bob finds %v", got)
		}
		if got := b.getSchedule(mine.ID); got.Name != mine.Name || got.State != reeve.TimerActive {
			t.Errorf("it was changed: %+v", got)
		}
	})
}

func TestO12_Scratchpad(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("aide", "scratchpad_read", "scratchpad_write", "scratchpad_clear")
	read := func(session string) []string {
		t.Helper()
		res, p, status := do(h, a.ID, call{"tool": "scratchpad_read", "args": object{}, "session": session})
		if status != 200 {
			t.Fatalf("%d %+v", status, p)
		}
		return in[struct{ Items []string }](t, res).Items
	}
	put := func(session string, items any) (reeve.Result, int) {
		t.Helper()
		res, _, status := do(h, a.ID, call{"tool": "scratchpad_write", "args": object{"items": items},
			"session": session})
		return res, status
	}
	if got := read("s1"); len(got) != 0 {
		t.Errorf("a new one holds %v", got)
	}
	long := strings.Repeat("é", 240) // characters, not bytes
	full := make([]string, 32)
	for i := range full {
		full[i] = fmt.Sprint(i, " ", strings.Repeat("x", 200))
	}
	full[0] = long
	if res, status := put("s1", full); status != 200 || res.IsError {
		t.Fatalf("%d %+v", status, res)
	}
	put("s1", []string{"a", "b"})
	put("s2", []string{"other"})
	if got := strings.Join(read("s1"), " "); got != "a b" {
		t.Errorf("it was not replaced: %s", got)
	}
	for name, bad := range map[string]any{"33 items": append(full, "x"), "241 characters": []string{long + "x"},
		"none": []string{}, "an empty one": []string{""}, "a number": 7,
		"an object": []any{object{"a": 1}}} {
		res, status := put("s1", bad)
		if status == 200 && !res.IsError {
			t.Errorf("%s was taken", name)
		}
		if got := strings.Join(read("s1"), " "); got != "a b" {
			t.Errorf("after %s: %s", name, got)
		}
	}
	if got := strings.Join(read("s2"), " "); got != "other" {
		t.Errorf("another session: %s", got)
	}
	do(h, a.ID, call{"tool": "scratchpad_clear", "args": object{}, "session": "s1"})
	if got := read("s1"); len(got) != 0 {
		t.Errorf("after clear: %v", got)
	}
}

// All six tools, and pages of output that join to the original.
func TestO13_ScheduleTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{SchedulesPerUser: 4})
		whole := strings.Repeat("añ日🎉e\u0301\r\n", 700)
		a := b.agent("aide", object{"config": plan(whole)})
		b.attach("aide", scheduleTools...)
		use := func(tool string, args object) reeve.Result { return b.call("ann", a.ID, tool, args) }
		daily := in[api.Schedule](t,
			use("schedule_create", object{"goal": "Read the news\nand sum it up", "cadence_type": "cron",
				"cadence_value": "0 7 * * 1-5", "timezone": "Europe/Berlin"}))
		if daily.Name != "Read the news" || len(daily.Upcoming) != 5 ||
			daily.Upcoming[0].Format(time.RFC3339) != "2000-01-03T06:00:00Z" || daily.LastAt != nil {
			t.Errorf("%+v", daily)
		}
		once := in[api.Schedule](t, use("schedule_create", object{"goal": "g", "name": "Tea", "cadence_type": "once",
			"cadence_value": "2000-01-01T16:00", "timezone": "Europe/London"}))
		every := in[api.Schedule](t,
			use("schedule_create", object{"goal": "g", "name": "Stretch", "cadence_type": "interval",
				"cadence_value": "2h", "notification": "never"}))
		for name, bad := range map[string]object{
			"/cadence_value": {"goal": "g", "cadence_type": "cron", "cadence_value": "0 25 * * *"},
			"/timezone": {"goal": "g", "cadence_type": "cron", "cadence_value": "0 7 * * *",
				"timezone": "Mars/Olympus"},
			"/cadence_value ": {"goal": "g", "cadence_type": "once", "cadence_value": "1999-01-01T00:00"},
			"/cadence_value_": {"goal": "g", "cadence_type": "interval", "cadence_value": "30s"},
			"/cadence_type":   {"goal": "g", "cadence_type": "weekly", "cadence_value": "1"},
			"/goal":           {"cadence_type": "cron", "cadence_value": "0 7 * * *"},
		} {
			res := use("schedule_create", bad)
			if !res.IsError || len(res.Fields) == 0 || !strings.HasPrefix(name, res.Fields[0].Path) ||
				res.Fields[0].Message == "" {
				t.Errorf("%s: %+v", name, res)
			}
		}
		for _, empty := range []string{"name", "timezone"} {
			if res := use("schedule_create", object{"goal": "g", "cadence_type": "interval", "cadence_value": "2h",
				empty: ""}); !res.IsError || len(res.Fields) == 0 || res.Fields[0].Path != "/"+empty {
				t.Errorf("an empty %s: %+v", empty, res)
			}
		}
		for _, blank := range []string{"name", "goal"} {
			body := object{"agent": a.ID, "goal": "g", "cadence_type": "interval", "cadence_value": "2h"}
			body[blank] = " \u00a0\n"
			var p api.Problem
			b.want(400, &p, "POST", "/api/schedules", body)
			if len(p.Errors) != 1 || p.Errors[0].Path != "/"+blank {
				t.Errorf("a blank %s over REST: %+v", blank, p)
			}
			b.want(400, nil, "PATCH", "/api/schedules/"+every.ID, object{blank: "  "})
			delete(body, "agent")
			for tool, args := range map[string]object{"schedule_create": body,
				"schedule_edit": {"schedule_id": every.ID, blank: "\t "}} {
				if res := use(tool, args); res.Code != reeve.Validation || len(res.Fields) != 1 ||
					res.Fields[0].Path != "/"+blank {
					t.Errorf("%s with a blank %s: %+v", tool, blank, res)
				}
			}
		}
		for _, empty := range []string{"name", "goal", "timezone", "cadence_value"} {
			if res := use("schedule_edit", object{"schedule_id": every.ID, empty: ""}); !res.IsError ||
				len(res.Fields) == 0 || res.Fields[0].Path != "/"+empty || strings.Contains(res.Fields[0].Message,
				"without the other") {
				t.Errorf("an empty %s takes the place of one: %+v", empty, res)
			}
		}
		search := func(args object) string {
			got := in[struct {
				Schedules        []reeve.Timer
				Total, Remaining int
			}](t, use("schedule_search", args))
			var names []string
			for _, s := range got.Schedules {
				names = append(names, s.Name)
			}
			return fmt.Sprint(strings.Join(names, ","), " of ", got.Total, ", ", got.Remaining, " left")
		}
		for want, args := range map[string]object{"Read the news,Tea of 3, 1 left": {"limit": 2},
			"Stretch of 3, 0 left": {"limit": 2, "offset": 2},
			"Tea of 1, 0 left":     {"name": "TE"}, "Stretch of 1, 0 left": {"notification": "never"},
			"Read the news of 1, 0 left": {"cadence_type": "cron"}, " of 0, 0 left": {"status": "disabled"}} {
			if got := search(args); got != want {
				t.Errorf("%v: got %s, want %s", args, got, want)
			}
		}
		use("schedule_create", object{"goal": "fourth", "cadence_type": "interval", "cadence_value": "100h"})
		if res := use("schedule_create", object{"goal": "fifth", "cadence_type": "interval",
			"cadence_value": "100h"}); !res.IsError {
			t.Errorf("one too many: %+v", res)
		}
		b.want(201, nil, "POST", "/api/schedules", object{"agent": a.ID, "goal": "another user's",
			"cadence_type": "interval", "cadence_value": "100h"})

		// Paused it does not fire, and an edit of something else does not wake it; nonsense changes nothing.
		use("schedule_edit", object{"schedule_id": every.ID, "status": "paused"})
		use("schedule_edit", object{"schedule_id": every.ID, "name": "Stand"})
		b.want(200, nil, "PATCH", "/api/schedules/"+every.ID, object{"name": "Stand up"})
		if res := use("schedule_edit", object{"schedule_id": every.ID, "cadence_type": "interval",
			"cadence_value": "soon"}); !res.IsError {
			t.Errorf("a paused one took nonsense: %+v", res)
		}
		if res := use("schedule_edit", object{"schedule_id": every.ID, "cadence_type": "interval"}); !res.IsError {
			t.Errorf("half a cadence: %+v", res)
		}
		use("schedule_edit", object{"schedule_id": every.ID, "cadence_type": "interval", "cadence_value": "3h"})
		b.want(200, nil, "PATCH", "/api/schedules/"+every.ID, object{"cadence_type": "interval", "cadence_value": "2h"})
		if s := b.getSchedule(every.ID); s.State != reeve.TimerPaused || s.Value != "2h" || s.Name != "Stand up" ||
			s.NextAt != nil {
			t.Errorf("paused: %+v", s.Timer)
		}
		b.to("2000-01-01 15:59", 0)
		if len(b.runs("")) != 0 {
			t.Errorf("runs: %+v", b.runs(""))
		}
		b.to("2000-01-01 16:01", time.Minute)
		if s := b.getSchedule(once.ID); s.State != reeve.TimerCompleted || len(b.runs("")) != 1 {
			t.Errorf("once: %+v, %d runs", s.Timer, len(b.runs("")))
		}
		b.want(409, nil, "PATCH", "/api/schedules/"+once.ID, object{"status": "paused"})
		use("schedule_edit", object{"schedule_id": every.ID, "status": "active"})
		// What is over makes room for another, and takes its place again only where there is room.
		fifth := use("schedule_create", object{"goal": "fifth", "cadence_type": "interval", "cadence_value": "100h"})
		again := object{"schedule_id": once.ID, "cadence_type": "once", "cadence_value": "2000-02-01T16:00"}
		if res := use("schedule_edit", again); !res.IsError || !strings.Contains(fmt.Sprint(res), "the limit is 4") {
			t.Errorf("one too many lives again: %+v", res)
		}
		b.want(409, nil, "PATCH", "/api/schedules/"+once.ID,
			object{"cadence_type": "interval", "cadence_value": "100h"})
		b.want(409, nil, "PATCH", "/api/schedules/"+once.ID, object{"cadence_type": "interval", "cadence_value": "100h",
			"status": "paused"})
		b.want(200, nil, "PATCH", "/api/schedules/"+once.ID, object{"name": "Green tea"})
		if s := b.getSchedule(once.ID); s.State != reeve.TimerCompleted || s.Kind != "once" || s.Name != "Green tea" {
			t.Errorf("refused: %+v", s.Timer)
		}
		// One that a person has made their own since is not taken back with the call that created it.
		last := "/api/schedules/" + in[api.Schedule](t, fifth).ID
		undo := func() reeve.Result { return b.call("ann", a.ID, fifth.Undo.Tool, fifth.Undo.Args) }
		b.want(200, nil, "PATCH", last, object{"name": "mine"})
		if res := undo(); res.Code != reeve.Stale {
			t.Errorf("undo of a schedule that was changed since: %+v", res)
		}
		b.want(200, nil, "PATCH", last, object{"name": "fifth"})
		if res := undo(); res.IsError {
			t.Errorf("undo of a schedule: %+v", res)
		}
		b.want(404, nil, "GET", last, nil)
		if res := use("schedule_edit", again); res.IsError {
			t.Errorf("where there is room: %+v", res)
		}
		b.to("2000-01-01 17:00", 5*time.Minute)
		// said again, it does not begin anew
		b.want(200, nil, "PATCH", "/api/schedules/"+every.ID, object{"cadence_type": "interval", "cadence_value": "2h",
			"timezone": "UTC"})
		b.to("2000-01-01 18:05", 5*time.Minute)
		lines := in[struct {
			Runs []struct {
				RunID   string `json:"run_id"`
				Status  string
				Summary string
			}
		}](t, use("schedule_runs", object{"schedule_id": every.ID})).Runs
		if len(lines) != 1 || lines[0].Status != "completed" || len([]rune(lines[0].Summary)) != 200 {
			t.Fatalf("history: %+v", lines)
		}
		for _, size := range []int{200, 777, 4000, 8000} {
			joined := ""
			for offset := 0; ; {
				page := in[struct {
					Output     string
					NextOffset int `json:"next_offset"`
					Total      int
					Remaining  int
				}](t, use("schedule_run_output", object{"run_id": lines[0].RunID, "offset": offset, "max_chars": size}))
				joined, offset = joined+page.Output, page.NextOffset
				if page.Remaining == 0 {
					break
				}
			}
			if joined != whole {
				t.Errorf("pages of %d do not join to the original", size)
			}
		}
		use("schedule_delete", object{"schedule_id": every.ID})
		if got := search(object{"name": "stand"}); got != " of 0, 0 left" {
			t.Errorf("deleted: %s", got)
		}
		if res := use("schedule_run_output", object{"run_id": lines[0].RunID}); res.IsError {
			t.Errorf("its runs are gone with it: %+v", res)
		}
	})
}

// What a run said is shown in parts, and none of them shows a part of a secret.
func TestG21_NoPageOfARunPartsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		secret := "a pass phrase that is so long that a page of it holds no other word, " +
			strings.Repeat("as long as it is ", 20)
		whole := strings.Repeat("é! ", 60) + secret + strings.Repeat("! é", 200)
		a := b.agent("aide", object{"config": plan(whole)})
		b.attach("aide", scheduleTools...)
		b.want(204, nil, "PUT", "/api/secrets/PHRASE", object{"value": secret})
		use := func(tool string, args object) reeve.Result { return b.call("ann", a.ID, tool, args) }
		every := in[api.Schedule](t,
			use("schedule_create", object{"goal": "g", "cadence_type": "interval", "cadence_value": "2h"}))
		b.to("2000-01-01 05:00", 5*time.Minute)
		lines := in[struct {
			Runs []struct {
				RunID   string `json:"run_id"`
				Summary string
			}
		}](t, use("schedule_runs", object{"schedule_id": every.ID})).Runs
		clean := func(text string) bool {
			return strings.Trim(strings.ReplaceAll(text, "[REDACTED]", ""), "é! ") == ""
		}
		if len(lines) == 0 || !clean(lines[0].Summary) || len(lines[0].Summary) < 100 {
			t.Fatalf("history: %+v", lines)
		}
		for offset := 0; offset < 700; offset += 13 {
			page := in[struct {
				Output     string
				NextOffset int `json:"next_offset"`
			}](t, use("schedule_run_output", object{"run_id": lines[0].RunID, "offset": offset, "max_chars": 200}))
			if !clean(page.Output) || page.NextOffset <= offset {
				t.Fatalf("at %d: %+v", offset, page)
			}
		}
	})
}

// Through the clock changes of 2000 in Berlin, a daily schedule fires once a day.
func TestO14_ClockChangesGiveOneRunADay(t *testing.T) {
	for _, k := range []struct{ start, end, want string }{
		// 02:30 is skipped: 03:00 local
		{"2000-03-25 12:00", "2000-03-27 12:00", "2000-03-26T01:00:00Z 2000-03-27T00:30:00Z"},
		// 02:30 comes twice: the first
		{"2000-10-28 12:00", "2000-10-30 12:00", "2000-10-29T00:30:00Z 2000-10-30T01:30:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := inBubble(t, host.Config{})
			b.agent("aide", nil)
			b.to(k.start, 0)
			b.schedule("aide", object{"cadence_type": "cron", "cadence_value": "30 2 * * *",
				"timezone": "Europe/Berlin"})
			b.to(k.end, 10*time.Minute)
			var got []string
			for _, r := range b.runs("") {
				got = append([]string{r.ScheduledAt.Format(time.RFC3339)}, got...)
			}
			if strings.Join(got, " ") != k.want {
				t.Errorf("it fired at %v, want %s", got, k.want)
			}
		})
	}
}

// Asleep for three days: one run, marked; what was missed is shown. A clock put forward by a day is the same.
func TestO15_AsleepForThreeDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		b.agent("aide", nil)
		s := b.schedule("aide", object{"cadence_type": "cron", "cadence_value": "0 * * * *"})
		b.to("2000-01-01 01:00", time.Minute)
		b.end()
		time.Sleep(72 * time.Hour)
		b = b.again()
		b.settle()
		runs := b.runs("")
		if len(runs) != 2 || runs[0].Reason != reeve.ReasonCatchup || runs[1].Reason != reeve.ReasonTimer {
			t.Fatalf("runs: %+v", runs)
		}
		if s = b.getSchedule(s.ID); s.Missed != 71 || len(s.MissedAt) != 20 ||
			!s.MissedAt[0].Before(*runs[0].ScheduledAt) {
			t.Errorf("missed: %d, shown %d", s.Missed, len(s.MissedAt))
		}
		if !s.NextAt.After(time.Now()) || len(b.notifications()) != 2 {
			t.Errorf("next at %s; %d notifications", s.NextAt, len(b.notifications()))
		}
		time.Sleep(24 * time.Hour) // forward a day, in one leap
		b.settle()
		if n := len(b.runs("")); n != 3 {
			t.Errorf("forward a day: %d runs", n)
		}
	})
}

// The clock is put back an hour: nothing fires again.
func TestO15_TheClockGoesBack(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{Dir: dir})
		b.agent("aide", nil)
		b.schedule("aide", object{"name": "cron", "cadence_type": "cron", "cadence_value": "0 7 * * *"})
		b.schedule("aide", object{"name": "interval", "cadence_type": "interval", "cadence_value": "150m"})
		b.to("2000-01-01 07:00", 30*time.Minute)
		if n := len(b.runs("")); n != 3 {
			t.Fatalf("%d runs", n)
		}
		b.end()
	})
	synctest.Test(t, func(t *testing.T) { // time begins at midnight again
		time.Sleep(6 * time.Hour)
		b := inBubble(t, host.Config{Dir: dir})
		b.pass(75*time.Minute, time.Minute) // 07:15
		if n := len(b.runs("")); n != 3 {
			t.Errorf("%d runs after the clock went back", n)
		}
		var list api.ScheduleList
		b.want(200, &list, "GET", "/api/schedules", nil)
		for _, s := range list.Schedules { // even when it is planned anew
			b.want(200, nil, "PATCH", "/api/schedules/"+s.ID, object{"status": "paused"})
		}
		b.end()
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(6 * time.Hour)
		b := inBubble(t, host.Config{Dir: dir})
		var list api.ScheduleList
		b.want(200, &list, "GET", "/api/schedules?name=cron", nil)
		b.want(200, nil, "PATCH", "/api/schedules/"+list.Schedules[0].ID, object{"status": "active"})
		b.pass(75*time.Minute, time.Minute)
		if n := len(b.runs("")); n != 3 {
			t.Errorf("the same instant ran twice: %d runs", n)
		}
		b.to("2000-01-02 07:01", 0)
		if n := len(b.runs("")); n != 4 {
			t.Errorf("%d runs the next morning", n)
		}
		b.end()
	})
}

// A new zone keeps the wall-clock intent.
func TestO15_ZoneChangeKeepsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		b.agent("aide", nil)
		s := b.schedule("aide", object{"cadence_type": "cron", "cadence_value": "0 7 * * *",
			"timezone": "Europe/Berlin"})
		b.want(200, nil, "PATCH", "/api/schedules/"+s.ID, object{"timezone": "America/New_York"})
		b.to("2000-01-02 00:00", time.Hour)
		runs := b.runs("")
		if len(runs) != 1 || runs[0].ScheduledAt.Format(time.RFC3339) != "2000-01-01T12:00:00Z" {
			t.Errorf("runs: %+v", runs)
		}
	})
}

// Policies, alerts, disabling and re-enabling; and the answer goes back to where the schedule was made.
func TestO17_Notifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		for _, policy := range []string{"always", "conditional", "never"} {
			b.agent(policy, object{"config": plan("fine")})
			b.schedule(policy, object{"name": policy, "cadence_type": "interval", "cadence_value": "1h",
				"notification": policy})
		}
		wordy := b.agent("wordy",
			object{"config": object{"rehearsal": object{"steps": []object{}, "output": "look", "notify": true}}})
		b.schedule("wordy", object{"name": "wordy", "cadence_type": "interval", "cadence_value": "1h",
			"notification": "conditional"})
		b.attach("wordy", "schedule_create")
		made := in[api.Schedule](t, b.call("owner", wordy.ID, "schedule_create",
			object{"goal": "g", "name": "from afar", "cadence_type": "interval", "cadence_value": "1h"}))
		b.pass(time.Hour, time.Hour)
		got := map[string]int{}
		for _, n := range b.notifications() {
			got[n.Title+": "+n.Body]++
			if n.TimerID == made.ID && n.Session != wordy.ID+":session:default" {
				t.Errorf("%+v", n)
			}
		}
		if len(got) != 3 || got["always: fine"] != 1 || got["wordy: look"] != 1 || got["from afar: look"] != 1 {
			t.Errorf("told: %v", got)
		}
		var messages api.MessageList
		b.want(200, &messages, "GET", "/api/agents/wordy/messages", nil)
		last := messages.Messages[len(messages.Messages)-1]
		if last.Kind != reeve.Observation || !strings.Contains(last.Content, "look") ||
			!strings.Contains(string(last.Metadata), made.ID) {
			t.Errorf("the conversation that made it ends with %+v", last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		b.agent("bad", object{"config": object{"rehearsal": object{"steps": []object{{"fail": "no luck"}}}}})
		s := b.schedule("bad", object{"name": "bad", "cadence_type": "interval", "cadence_value": "1h",
			"notification": "never"})
		var titles []string
		for range 7 {
			b.pass(time.Hour, time.Hour)
			if list := b.notifications(); len(list) > len(titles) {
				titles = append(titles, list[0].Title)
			}
		}
		if strings.Join(titles, "; ") != "bad failed 3 times in a row; bad is disabled after 5 failures in a row" {
			t.Errorf("told: %v", titles)
		}
		if got := b.getSchedule(s.ID); got.State != reeve.TimerDisabled || got.Failures != 5 || len(b.runs("")) != 5 ||
			got.NextAt != nil {
			t.Errorf("%+v, %d runs", got.Timer, len(b.runs("")))
		}
		b.want(200, nil, "PATCH", "/api/agents/bad", object{"config": plan("better")})
		b.want(200, nil, "PATCH", "/api/schedules/"+s.ID, object{"status": "active"})
		if got := b.getSchedule(s.ID); got.Failures != 0 || got.State != reeve.TimerActive {
			t.Errorf("re-enabled: %+v", got.Timer)
		}
		b.pass(time.Hour, time.Hour)
		if n := len(b.runs("state=completed")); n != 1 {
			t.Errorf("%d runs after it was enabled", n)
		}
	})
}

// The webhook is told each notification under its id, again after a failure, at most ten times, and nothing private is
// reached unless the operator says so.
func TestO17_Webhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	fail := 2
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var n reeve.Notification
		if json.Unmarshal(body, &n) != nil || n.ID != r.Header.Get("Idempotency-Key") || n.Title == "" {
			t.Errorf("it was told %s under %s", body, r.Header.Get("Idempotency-Key"))
		}
		if seen[n.ID]++; seen[n.ID] <= fail {
			w.WriteHeader(503)
		}
	}))
	t.Cleanup(hook.Close)
	tell := func(h *reevetest.Host) {
		h.Agent("aide")
		rehearse(h, "aide", "ok")
		h.Want(201, nil, "POST", "/api/schedules", object{"agent": "aide", "goal": "g", "cadence_type": "once",
			"cadence_value": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	}
	list := func(h *reevetest.Host) []reeve.Notification {
		var l api.NotificationList
		h.Want(200, &l, "GET", "/api/notifications", nil)
		return l.Notifications
	}
	fail = 0
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Webhook: hook.URL + "/hook?secret=abcdefgh",
		HTTPAllow: []string{strings.TrimPrefix(hook.URL, "http://")}})
	tell(h)
	eventually(t, "the webhook to be told", func() bool {
		h.RunUntilIdle(t.Context())
		l := list(h)
		return len(l) == 1 && l[0].DeliveredAt != nil
	})
	h.RunUntilIdle(t.Context())
	mu.Lock()
	if len(seen) != 1 || seen[list(h)[0].ID] != 1 {
		t.Errorf("it was told %v", seen)
	}
	clear(seen)
	mu.Unlock()
	guarded := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Webhook: hook.URL})
	tell(guarded)
	eventually(t, "a notification", func() bool { guarded.RunUntilIdle(t.Context()); return len(list(guarded)) == 1 })
	guarded.RunUntilIdle(t.Context())
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 0 || list(guarded)[0].DeliveredAt != nil {
		t.Errorf("a private address was reached: %v", seen)
	}
}

// Operators' budgets bind scheduled runs, nobody sees them in a schema, and the run's row says what it cost.
func TestO18_BudgetsBindScheduledRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{RunCalls: 3})
		a := b.agent("aide", object{"config": plan("all", write("/1", "1"),
			object{"tool": "read_file", "args": object{"path": "/1"}}, write("/2", "2"), write("/3", "3"),
			write("/4", "4"))})
		b.call("ann", a.ID, "list_files", object{}) // what is known of the workspace is that it has no budgets
		s := b.schedule("aide", object{"cadence_type": "interval", "cadence_value": "1h"})
		b.pass(2*time.Hour, time.Hour)
		runs := b.runs("")
		if len(runs) != 2 {
			t.Fatalf("%d runs", len(runs))
		}
		for _, r := range runs {
			if r.State != reeve.RunFailed || r.Code != reeve.BudgetExceeded || r.Spent.Calls != 3 ||
				r.Spent.Millis == 0 {
				t.Errorf("%+v", r)
			}
		}
		if got := b.getSchedule(s.ID); got.Failures != 2 {
			t.Errorf("%+v", got.Timer)
		}
		b.attach("aide", "schedule_runs", "write_file", "read_file")
		history := in[struct {
			Runs []struct {
				ModelRequests int `json:"model_requests"`
				Spent         reeve.Amount
			}
		}](t, b.call("owner", a.ID, "schedule_runs", object{"schedule_id": s.ID}))
		// a rehearsal asks no model
		if len(history.Runs) != 2 || history.Runs[0].Spent.Calls != 3 || history.Runs[0].ModelRequests != 0 {
			t.Errorf("the history shows %+v", history)
		}
		var ops api.OperationList
		b.want(200, &ops, "GET", "/api/operations?limit=100", nil)
		if len(ops.Operations) != 4 { // two writes in each
			t.Errorf("%d operations", len(ops.Operations))
		}
		var budgets struct{ Budgets []reeve.Budget }
		b.want(200, &budgets, "GET", "/api/budgets", nil)
		if len(budgets.Budgets) != 0 {
			t.Errorf("budgets of runs that ended: %+v", budgets)
		}
		// A run by hand is the person's own affair.
		b.want(201, nil, "POST", "/api/agents/aide/wake", object{})
		b.settle()
		if r := b.runs("")[0]; r.State != reeve.RunCompleted || r.Spent.Calls != 5 {
			t.Errorf("by hand: %+v", r)
		}
		for _, id := range append(scheduleTools, "") {
			var text json.RawMessage
			b.want(200, &text, "GET", strings.TrimSuffix("/api/tools/"+id, "/"), nil)
			for _, word := range []string{"budget", "run_calls", "min_interval", "per_user", "alert_after"} {
				if strings.Contains(string(text), word) && id != "" {
					t.Errorf("%s speaks of %s", id, word)
				}
			}
		}
		b.attach("aide", "schedule_create")
		if res := b.call("ann", a.ID, "schedule_create", object{"goal": "g", "cadence_type": "interval",
			"cadence_value": "1h", "budget": 100}); !res.IsError {
			t.Errorf("a model set a budget: %+v", res)
		}
	})
}

// Settings that cannot be are refused at the start, and the address of a webhook is not shown.
func TestO18_SettingsAreChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]host.Config{
		"webhook": {Webhook: "ftp://secret.example/x"}, "run_calls": {RunCalls: -1},
		"schedules_per_user": {SchedulesPerUser: -1}, "alert_after": {AlertAfter: -2},
	} {
		cfg.Dir = t.TempDir()
		h, err := host.New(t.Context(), cfg)
		if err == nil {
			_ = h.Close()
			t.Errorf("%s was taken", name)
		} else if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret.example") {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := host.Config{}
	env := map[string]string{"REEVE_RUN_CALLS": "7", "REEVE_MIN_INTERVAL": "5m", "REEVE_WEBHOOK": "https://x",
		"REEVE_SCHEDULES_PER_USER": "2", "REEVE_ALERT_AFTER": "1",
		"REEVE_DISABLE_AFTER": "2", "REEVE_RUN_TOKENS": "3", "REEVE_RUN_MICROS": "4", "REEVE_RUN_MILLIS": "5"}
	if err := cfg.FromEnv(func(k string) (string, bool) { v, ok := env[k]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	if cfg.RunCalls != 7 || cfg.MinInterval != host.Duration(5*time.Minute) || cfg.Webhook != "https://x" ||
		cfg.SchedulesPerUser != 2 || cfg.AlertAfter != 1 || cfg.DisableAfter != 2 ||
		cfg.RunTokens != 3 || cfg.RunMicros != 4 || cfg.RunMillis != 5 {
		t.Errorf("%+v", cfg)
	}
}
