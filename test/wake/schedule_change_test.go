package wake_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

// A schedule restarts when its time changes, not when the same time is written differently or a zone that it does not
// use changes.
func TestO13_EqualCadenceDoesNotRestartASchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		a := b.NewAgent("aide", nil)
		b.AttachTools("aide", scheduleTools...)
		for _, k := range []struct {
			kind, value, zone string
			same, other       []kit.Object
		}{
			{"interval", "30d", "UTC", []kit.Object{{"timezone": "Europe/Berlin"}, {"cadence_value": "720h"},
				{"cadence_value": "P30D", "timezone": "Asia/Tokyo"}, {"cadence_value": " 30d"}},
				[]kit.Object{{"cadence_value": "31d"}, {"cadence_type": "cron", "cadence_value": "0 7 * * *"}}},
			{"interval", "1h", "UTC", []kit.Object{{"cadence_value": "60m"}, {"cadence_value": "PT1H"},
				{"cadence_value": " 1h"}}, []kit.Object{{"cadence_value": "61m"}}},
			{"once", "2000-02-01T07:00:00Z", "UTC", []kit.Object{{"timezone": "Europe/Berlin"},
				{"cadence_value": "2000-02-01T08:00:00+01:00"}, {"cadence_value": "2000-02-01T08:00",
					"timezone": "Europe/Berlin"}},
				[]kit.Object{{"timezone": "America/New_York"}, {"cadence_value": "2000-02-02T07:00:00Z"}}},
			{"cron", "0 7 * * *", "UTC", []kit.Object{{"cadence_value": " 0  7 * *  *"}},
				[]kit.Object{{"timezone": "Europe/Berlin"}, {"cadence_value": "0 9 * * *"}}},
		} {
			s := b.NewSchedule("aide", kit.Object{"cadence_type": k.kind, "cadence_value": k.value, "timezone": k.zone})
			first := *s.NextAt
			change := func(q kit.Object) (is api.Schedule) {
				t.Helper()
				time.Sleep(time.Minute)
				if q["cadence_value"] != nil && q["cadence_type"] == nil {
					q["cadence_type"] = k.kind
				}
				b.Want(200, &is, "PATCH", "/api/schedules/"+s.ID, q)
				if zone := q["timezone"]; zone != nil && is.Zone != zone {
					t.Errorf("%s %s: the zone stays %s", k.kind, k.value, is.Zone)
				}
				return is
			}
			for _, q := range k.same {
				if is := change(q); is.State != reeve.TimerActive || !is.NextAt.Equal(first) {
					t.Errorf("%s %s, then %v: %s became %s", k.kind, k.value, q, first, is.NextAt)
				}
			}
			b.Want(400, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"timezone": "Mars/Olympus"})
			for _, q := range k.other {
				if is := change(q); is.NextAt.Equal(first) {
					t.Errorf("%s %s, then %v: it still fires at %s", k.kind, k.value, q, first)
				}
			}
		}
		// The tool schedule_edit does not move the next firing either.
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "interval", "cadence_value": "30d"})
		time.Sleep(time.Minute)
		if res := b.CallAs(s.UserID, a.ID, "schedule_edit",
			kit.Object{"schedule_id": s.ID, "timezone": "Europe/Berlin"}); res.IsError || !b.GetSchedule(s.ID).
			NextAt.Equal(*s.NextAt) {
			t.Errorf("%+v", res)
		}
	})
}

// A schedule that failed too often, is paused or is over stays so when it gets the same time again, but not when it
// gets another.
func TestO13_EqualCadenceDoesNotReviveASchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		b.NewAgent("broken", kit.Object{
			"config": kit.Object{"rehearsal": kit.Object{"steps": []kit.Object{{"fail": "it is broken"}}}}})
		change := func(id string, q kit.Object) (is api.Schedule) {
			t.Helper()
			b.Want(200, &is, "PATCH", "/api/schedules/"+id, q)
			return is
		}
		failing := b.NewSchedule("broken", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		once := b.NewSchedule("broken", kit.Object{"cadence_type": "once", "cadence_value": "2000-01-01T01:00:00Z"})
		paused := b.NewSchedule("broken", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		change(paused.ID, kit.Object{"status": "paused"})
		b.AdvanceBy(6*time.Hour, time.Hour)
		for _, k := range []struct {
			id    string
			state reeve.TimerState
			same  []kit.Object
		}{
			{failing.ID, reeve.TimerDisabled, []kit.Object{{"cadence_type": "interval", "cadence_value": "1h"},
				{"cadence_type": "interval", "cadence_value": "PT1H"}, {"timezone": "UTC"}}},
			{once.ID, reeve.TimerCompleted,
				[]kit.Object{{"cadence_type": "once", "cadence_value": "2000-01-01T01:00:00Z"},
					{"timezone": "Europe/Berlin"}}},
			{paused.ID, reeve.TimerPaused, []kit.Object{{"cadence_type": "interval", "cadence_value": "60m"},
				{"timezone": "Europe/Berlin"}}},
		} {
			for _, q := range k.same {
				if is := change(k.id, q); is.State != k.state || is.NextAt != nil {
					t.Errorf("%s, then %v: %+v", k.state, q, is)
				}
			}
		}
		if is := change(failing.ID, kit.Object{"cadence_type": "interval", "cadence_value": "2h"}); is.State != reeve.TimerActive ||
			is.NextAt == nil {
			t.Errorf("%+v", is)
		}
	})
}

// Impossible settings are refused at the start, and the address of a webhook is not shown.
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
