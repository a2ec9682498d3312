package wake_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

// Pages of the output of a run join to the output, whatever its characters and the page length. No page is cut again.
func TestO13_PagesOfOutputJoin(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		synctest.Test(t, func(t *testing.T) {
			b := kit.NewBubbleHost(t, host.Config{OutputCap: most})
			texts := []string{strings.Repeat("日", 12_000), strings.Repeat("\x01\x02", 5000),
				strings.Repeat("\u2028", 9000), strings.Repeat("a", 20_000), kit.RandomText(9000)}
			for i, whole := range texts {
				a := b.NewAgent(fmt.Sprint("aide", i), kit.Object{"config": kit.RehearsalConfig(whole)})
				b.AttachTools(a.Name, scheduleTools...)
				b.CallAs("ann", a.ID, "schedule_create", kit.Object{"goal": "g", "cadence_type": "interval",
					"cadence_value": "1h"})
				b.AdvanceBy(61*time.Minute, 61*time.Minute)
				run := b.ListRuns("agent=" + a.ID)[0].ID
				for _, size := range []int{200, 4000, 8000} {
					joined := ""
					for offset, left := 0, 1; left > 0; {
						page := kit.DecodeResult[struct {
							Output     string
							NextOffset int `json:"next_offset"`
							Remaining  int
						}](t, kit.MustBeWhole(t, b.CallAs("ann", a.ID, "schedule_run_output",
							kit.Object{"run_id": run, "offset": offset, "max_chars": size})))
						if page.Output == "" {
							t.Fatalf("text %d by %d: nothing at %d", i, size, offset)
						}
						joined, offset, left = joined+page.Output, page.NextOffset, page.Remaining
					}
					if joined != whole {
						t.Errorf("text %d by %d: %d bytes of %d", i, size, len(joined), len(whole))
					}
				}
			}
		})
	}
}

// A list of schedules is not cut before it says how to continue.
func TestO13_SchedulesInPages(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		synctest.Test(t, func(t *testing.T) {
			b := kit.NewBubbleHost(t, host.Config{OutputCap: most, SchedulesPerUser: 100})
			a := b.NewAgent("aide", nil)
			b.AttachTools("aide", scheduleTools...)
			want := map[string]bool{}
			for i := range 40 {
				size := 800
				if most > 0 {
					size = 20
				}
				if i == 7 {
					size = 8000 // alone it is too long
				}
				if res := b.CallAs("ann", a.ID, "schedule_create", kit.Object{"goal": strings.Repeat("語", size),
					"name": fmt.Sprint("n", i), "cadence_type": "interval", "cadence_value": "100h"}); res.IsError {
					t.Fatalf("%+v", res)
				}
			}
			var list api.ScheduleList
			b.Want(200, &list, "GET", "/api/schedules?limit=200", nil)
			for _, s := range list.Schedules {
				want[s.ID] = true
			}
			pages, cut := 0, 0
			for offset := 0; len(want) > 0; pages++ {
				res := b.CallAs("ann", a.ID, "schedule_search", kit.Object{"limit": 50, "offset": offset})
				var next int
				if res.Truncated { // one alone, and how to go on comes first
					if n, err := fmt.Sscanf(res.Content, `{"hint":"to read on, use offset %d"`, &next); n != 1 ||
						next != offset+1 {
						t.Fatalf("after %d: %v, %.200s", offset, err, res.Content)
					}
					if _, rest, ok := strings.Cut(res.Content, `"id":"`); ok {
						id, _, _ := strings.Cut(rest, `"`)
						delete(want, id)
					}
					offset, cut = next, cut+1
					continue
				}
				got := kit.DecodeResult[struct {
					Schedules        []reeve.Timer
					Remaining, Total int
				}](t, kit.MustBeWhole(t, res))
				for _, s := range got.Schedules {
					if !want[s.ID] {
						t.Errorf("%s is given twice", s.Name)
					}
					delete(want, s.ID)
				}
				if offset += len(got.Schedules); len(got.Schedules) == 0 || got.Total != 40 ||
					got.Remaining != 40-offset {
					t.Fatalf("after %d: %d given, %d of %d left", offset, len(got.Schedules), got.Remaining, got.Total)
				}
			}
			if cut != 1 || most == 0 && pages > 12 {
				t.Errorf("%d pages, %d cut", pages, cut)
			}
		})
	}
}

// All six tools, and pages of output that join to the original.
func TestO13_ScheduleTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{SchedulesPerUser: 4})
		whole := strings.Repeat("añ日🎉e\u0301\r\n", 700)
		a := b.NewAgent("aide", kit.Object{"config": kit.RehearsalConfig(whole)})
		b.AttachTools("aide", scheduleTools...)
		use := func(tool string, args kit.Object) reeve.Result { return b.CallAs("ann", a.ID, tool, args) }
		daily := kit.DecodeResult[api.Schedule](t,
			use("schedule_create", kit.Object{"goal": "Read the news\nand sum it up", "cadence_type": "cron",
				"cadence_value": "0 7 * * 1-5", "timezone": "Europe/Berlin"}))
		if daily.Name != "Read the news" || len(daily.Upcoming) != 10 ||
			daily.Upcoming[0].Format(time.RFC3339) != "2000-01-03T06:00:00Z" || daily.LastAt != nil {
			t.Errorf("%+v", daily)
		}
		once := kit.DecodeResult[api.Schedule](t,
			use("schedule_create", kit.Object{"goal": "g", "name": "Tea", "cadence_type": "once",
				"cadence_value": "2000-01-01T16:00", "timezone": "Europe/London"}))
		every := kit.DecodeResult[api.Schedule](t,
			use("schedule_create", kit.Object{"goal": "g", "name": "Stretch", "cadence_type": "interval",
				"cadence_value": "2h", "notification": "never"}))
		for name, bad := range map[string]kit.Object{
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
			if res := use("schedule_create", kit.Object{"goal": "g", "cadence_type": "interval", "cadence_value": "2h",
				empty: ""}); !res.IsError || len(res.Fields) == 0 || res.Fields[0].Path != "/"+empty {
				t.Errorf("an empty %s: %+v", empty, res)
			}
		}
		for _, blank := range []string{"name", "goal"} {
			body := kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "interval", "cadence_value": "2h"}
			body[blank] = " \u00a0\n"
			var p api.Problem
			b.Want(400, &p, "POST", "/api/schedules", body)
			if len(p.Errors) != 1 || p.Errors[0].Path != "/"+blank {
				t.Errorf("a blank %s over REST: %+v", blank, p)
			}
			b.Want(400, nil, "PATCH", "/api/schedules/"+every.ID, kit.Object{blank: "  "})
			delete(body, "agent")
			for tool, args := range map[string]kit.Object{"schedule_create": body,
				"schedule_edit": {"schedule_id": every.ID, blank: "\t "}} {
				if res := use(tool, args); res.Code != reeve.Validation || len(res.Fields) != 1 ||
					res.Fields[0].Path != "/"+blank {
					t.Errorf("%s with a blank %s: %+v", tool, blank, res)
				}
			}
		}
		for _, empty := range []string{"name", "goal", "timezone", "cadence_value"} {
			if res := use("schedule_edit", kit.Object{"schedule_id": every.ID, empty: ""}); !res.IsError ||
				len(res.Fields) == 0 || res.Fields[0].Path != "/"+empty || strings.Contains(res.Fields[0].Message,
				"without the other") {
				t.Errorf("an empty %s takes the place of one: %+v", empty, res)
			}
		}
		search := func(args kit.Object) string {
			got := kit.DecodeResult[struct {
				Schedules        []reeve.Timer
				Total, Remaining int
			}](t, use("schedule_search", args))
			var names []string
			for _, s := range got.Schedules {
				names = append(names, s.Name)
			}
			return fmt.Sprint(strings.Join(names, ","), " of ", got.Total, ", ", got.Remaining, " left")
		}
		for want, args := range map[string]kit.Object{"Read the news,Tea of 3, 1 left": {"limit": 2},
			"Stretch of 3, 0 left": {"limit": 2, "offset": 2},
			"Tea of 1, 0 left":     {"name": "TE"}, "Stretch of 1, 0 left": {"notification": "never"},
			"Read the news of 1, 0 left": {"cadence_type": "cron"}, " of 0, 0 left": {"status": "disabled"}} {
			if got := search(args); got != want {
				t.Errorf("%v: got %s, want %s", args, got, want)
			}
		}
		use("schedule_create", kit.Object{"goal": "fourth", "cadence_type": "interval", "cadence_value": "100h"})
		if res := use("schedule_create", kit.Object{"goal": "fifth", "cadence_type": "interval",
			"cadence_value": "100h"}); !res.IsError {
			t.Errorf("one too many: %+v", res)
		}
		b.Want(201, nil, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "another user's",
			"cadence_type": "interval", "cadence_value": "100h"})

		// A paused schedule does not fire, also after a rename. An invalid edit changes nothing.
		use("schedule_edit", kit.Object{"schedule_id": every.ID, "status": "paused"})
		use("schedule_edit", kit.Object{"schedule_id": every.ID, "name": "Stand"})
		b.Want(200, nil, "PATCH", "/api/schedules/"+every.ID, kit.Object{"name": "Stand up"})
		if res := use("schedule_edit", kit.Object{"schedule_id": every.ID, "cadence_type": "interval",
			"cadence_value": "soon"}); !res.IsError {
			t.Errorf("a paused one took nonsense: %+v", res)
		}
		if res := use("schedule_edit", kit.Object{"schedule_id": every.ID, "cadence_type": "interval"}); !res.IsError {
			t.Errorf("half a cadence: %+v", res)
		}
		use("schedule_edit", kit.Object{"schedule_id": every.ID, "cadence_type": "interval", "cadence_value": "3h"})
		b.Want(200, nil, "PATCH", "/api/schedules/"+every.ID, kit.Object{"cadence_type": "interval",
			"cadence_value": "2h"})
		if s := b.GetSchedule(every.ID); s.State != reeve.TimerPaused || s.Value != "2h" || s.Name != "Stand up" ||
			s.NextAt != nil {
			t.Errorf("paused: %+v", s.Timer)
		}
		b.AdvanceTo("2000-01-01 15:59", 0)
		if len(b.ListRuns("")) != 0 {
			t.Errorf("runs: %+v", b.ListRuns(""))
		}
		b.AdvanceTo("2000-01-01 16:01", time.Minute)
		if s := b.GetSchedule(once.ID); s.State != reeve.TimerCompleted || len(b.ListRuns("")) != 1 {
			t.Errorf("once: %+v, %d runs", s.Timer, len(b.ListRuns("")))
		}
		b.Want(409, nil, "PATCH", "/api/schedules/"+once.ID, kit.Object{"status": "paused"})
		use("schedule_edit", kit.Object{"schedule_id": every.ID, "status": "active"})
		// A completed schedule does not count for the limit. It can become active again only within the limit.
		fifth := use("schedule_create", kit.Object{"goal": "fifth", "cadence_type": "interval",
			"cadence_value": "100h"})
		again := kit.Object{"schedule_id": once.ID, "cadence_type": "once", "cadence_value": "2000-02-01T16:00"}
		if res := use("schedule_edit", again); !res.IsError || !strings.Contains(fmt.Sprint(res), "the limit is 4") {
			t.Errorf("one too many lives again: %+v", res)
		}
		b.Want(409, nil, "PATCH", "/api/schedules/"+once.ID,
			kit.Object{"cadence_type": "interval", "cadence_value": "100h"})
		b.Want(409, nil, "PATCH", "/api/schedules/"+once.ID, kit.Object{"cadence_type": "interval",
			"cadence_value": "100h",
			"status":        "paused"})
		b.Want(200, nil, "PATCH", "/api/schedules/"+once.ID, kit.Object{"name": "Green tea"})
		if s := b.GetSchedule(once.ID); s.State != reeve.TimerCompleted || s.Kind != "once" || s.Name != "Green tea" {
			t.Errorf("refused: %+v", s.Timer)
		}
		// Undoing the creation of a schedule is refused after a person has changed the schedule.
		last := "/api/schedules/" + kit.DecodeResult[api.Schedule](t, fifth).ID
		undo := func() reeve.Result { return b.CallAs("ann", a.ID, fifth.Undo.Tool, fifth.Undo.Args) }
		b.Want(200, nil, "PATCH", last, kit.Object{"name": "mine"})
		if res := undo(); res.Code != reeve.Stale {
			t.Errorf("undo of a schedule that was changed since: %+v", res)
		}
		b.Want(200, nil, "PATCH", last, kit.Object{"name": "fifth"})
		if res := undo(); res.IsError {
			t.Errorf("undo of a schedule: %+v", res)
		}
		b.Want(404, nil, "GET", last, nil)
		if res := use("schedule_edit", again); res.IsError {
			t.Errorf("where there is room: %+v", res)
		}
		b.AdvanceTo("2000-01-01 17:00", 5*time.Minute)
		// setting the same interval again does not restart it
		b.Want(200, nil, "PATCH", "/api/schedules/"+every.ID, kit.Object{"cadence_type": "interval",
			"cadence_value": "2h",
			"timezone":      "UTC"})
		b.AdvanceTo("2000-01-01 18:05", 5*time.Minute)
		lines := kit.DecodeResult[struct {
			Runs []struct {
				RunID   string `json:"run_id"`
				Status  string
				Summary string
			}
		}](t, use("schedule_runs", kit.Object{"schedule_id": every.ID})).Runs
		if len(lines) != 1 || lines[0].Status != "completed" || len([]rune(lines[0].Summary)) != 200 {
			t.Fatalf("history: %+v", lines)
		}
		for _, size := range []int{200, 777, 4000, 8000} {
			joined := ""
			for offset := 0; ; {
				page := kit.DecodeResult[struct {
					Output     string
					NextOffset int `json:"next_offset"`
					Total      int
					Remaining  int
				}](t, use("schedule_run_output", kit.Object{"run_id": lines[0].RunID, "offset": offset,
					"max_chars": size}))
				joined, offset = joined+page.Output, page.NextOffset
				if page.Remaining == 0 {
					break
				}
			}
			if joined != whole {
				t.Errorf("pages of %d do not join to the original", size)
			}
		}
		use("schedule_delete", kit.Object{"schedule_id": every.ID})
		if got := search(kit.Object{"name": "stand"}); got != " of 0, 0 left" {
			t.Errorf("deleted: %s", got)
		}
		if res := use("schedule_run_output", kit.Object{"run_id": lines[0].RunID}); res.IsError {
			t.Errorf("its runs are gone with it: %+v", res)
		}
	})
}

// No page of the output of a run shows a part of a secret.
func TestG21_RunOutputPageDoesNotSplitASecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		secret := "a pass phrase that is so long that a page of it holds no other word, " +
			strings.Repeat("as long as it is ", 20)
		whole := strings.Repeat("é! ", 60) + secret + strings.Repeat("! é", 200)
		a := b.NewAgent("aide", kit.Object{"config": kit.RehearsalConfig(whole)})
		b.AttachTools("aide", scheduleTools...)
		b.Want(204, nil, "PUT", "/api/secrets/PHRASE", kit.Object{"value": secret})
		use := func(tool string, args kit.Object) reeve.Result { return b.CallAs("ann", a.ID, tool, args) }
		every := kit.DecodeResult[api.Schedule](t,
			use("schedule_create", kit.Object{"goal": "g", "cadence_type": "interval", "cadence_value": "2h"}))
		b.AdvanceTo("2000-01-01 05:00", 5*time.Minute)
		lines := kit.DecodeResult[struct {
			Runs []struct {
				RunID   string `json:"run_id"`
				Summary string
			}
		}](t, use("schedule_runs", kit.Object{"schedule_id": every.ID})).Runs
		clean := func(text string) bool {
			return strings.Trim(strings.ReplaceAll(text, "[REDACTED]", ""), "é! ") == ""
		}
		if len(lines) == 0 || !clean(lines[0].Summary) || len(lines[0].Summary) < 100 {
			t.Fatalf("history: %+v", lines)
		}
		for offset := 0; offset < 700; offset += 13 {
			page := kit.DecodeResult[struct {
				Output     string
				NextOffset int `json:"next_offset"`
			}](t, use("schedule_run_output", kit.Object{"run_id": lines[0].RunID, "offset": offset, "max_chars": 200}))
			if !clean(page.Output) || page.NextOffset <= offset {
				t.Fatalf("at %d: %+v", offset, page)
			}
		}
	})
}
