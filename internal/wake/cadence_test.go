package wake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reeve"
)

func TestCadenceOnce(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ value, zone, want string }{
		{"2026-03-01T07:00:00Z", "Europe/Berlin", "2026-03-01T07:00:00Z"},
		{"2026-03-01T07:00:00+05:30", "", "2026-03-01T01:30:00Z"},
		{"2026-03-01t07:00:00.123456z", "", "2026-03-01T07:00:00.123Z"},
		{" 2026-03-01T07:00 ", "", "2026-03-01T07:00:00Z"},
		{"2026-03-01T07:00", "Europe/Berlin", "2026-03-01T06:00:00Z"},
		{"2026-07-01 07:00:30", "Europe/Berlin", "2026-07-01T05:00:30Z"},
		{"2026-03-08T02:30", "America/New_York", "2026-03-08T07:00:00Z"}, // in the gap: its end
		{"2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00Z"}, // twice: the first
		{"2011-12-30T09:00", "Pacific/Apia", "2011-12-30T10:00:00Z"},     // never was
	} {
		c := cadence(t, KindOnce, k.value, k.zone)
		want := instant(t, k.want)
		if got, ok := c.Next(want.Add(-time.Millisecond)); !ok || !got.Equal(want) {
			t.Errorf("%q in %q: %v %v, want %v", k.value, k.zone, got, ok, want)
		}
		if got, ok := c.Next(want); ok || !got.IsZero() {
			t.Errorf("%q in %q fires again at %v", k.value, k.zone, got)
		}
		if n := len(c.Upcoming(time.Time{}, 5)); n != 1 {
			t.Errorf("%q: %d upcoming", k.value, n)
		}
		if _, ok := c.MinInterval(); ok {
			t.Errorf("%q has an interval", k.value)
		}
	}
}

func TestCadenceInterval(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for value, want := range map[string]time.Duration{
		"15m": 15 * time.Minute, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "1.5h": 90 * time.Minute,
		" 1000ms ": time.Second,
		"1d":       day, "1d12h": 36 * time.Hour, "2w": 14 * day, "1w1d1s": 8*day + time.Second, "3660d": 3660 * day,
		"PT15M": 15 * time.Minute, "pt1h30m": 90 * time.Minute, "P1D": day, "P1W": 7 * day, "P1DT12H": 36 * time.Hour,
		"PT90S": 90 * time.Second,
	} {
		c := cadence(t, KindInterval, value, "Europe/Berlin")
		if got, ok := c.MinInterval(); !ok || got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
		at := time.Date(2026, 3, 28, 12, 0, 0, 5e6, time.UTC)
		if got := c.Upcoming(at, 3); !slices.Equal(got, []time.Time{at.Add(want), at.Add(2 * want), at.Add(3 * want)}) {
			t.Errorf("%q: %v", value, got)
		}
	}
	for _, c := range []Cadence{{}, cadence(t, KindOnce, "2026-03-01T07:00:00Z", "")} {
		if got, ok := c.Next(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)); ok || !got.IsZero() || c.Location() == nil {
			t.Errorf("%+v fires at %v", c, got)
		}
	}
}

// An interval keeps its grid, however late Due is called.
func TestCadenceIntervalDoesNotDrift(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)
	c := cadence(t, KindInterval, "15m", "").WithAnchor(anchor)
	for _, k := range []struct {
		after time.Duration
		want  time.Duration
	}{{0, 15 * time.Minute}, {-time.Hour, 15 * time.Minute}, {time.Second, 15 * time.Minute},
		{15 * time.Minute, 30 * time.Minute},
		{15*time.Minute - 1, 15 * time.Minute}, {24*time.Hour + 3*time.Second, 24*time.Hour + 15*time.Minute}} {
		if got, ok := c.Next(anchor.Add(k.after)); !ok || !got.Equal(anchor.Add(k.want)) {
			t.Errorf("after %v: %v", k.after, got.Sub(anchor))
		}
	}
	if got, ok := c.Next(anchor.AddDate(1000, 0, 0)); ok {
		t.Errorf("a thousand years on: %v", got)
	}
}

func TestCadenceRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ kind, value, zone, path, message, hint string }{
		{"", "x", "", "/kind", "is not a kind of cadence", ""},
		{"CRON", "* * * * *", "", "/kind", "is not a kind of cadence", ""},
		{KindOnce, "", "", "/value", "not an instant", ""},
		{KindOnce, "tomorrow", "", "/value", "not an instant", ""},
		{KindOnce, "2026-02-30T07:00", "", "/value", "not an instant", ""},
		{KindOnce, "2026-02-28T24:00", "", "/value", "not an instant", ""},
		{KindOnce, "2026-02-28", "", "/value", "not an instant", ""},
		{KindOnce, "2026-02-28T07:00:00+24:00", "", "/value", "not an instant", ""},
		{KindOnce, "9999-12-31T23:59:59-05:00", "", "/value", "too far in the future", ""},
		{KindOnce, "9999-12-31T23:59", "Pacific/Pago_Pago", "/value", "too far in the future", ""},
		{KindInterval, "", "", "/value", "not an interval", ""},
		{KindInterval, "15", "", "/value", "not an interval", ""},
		{KindInterval, "1d1w", "", "/value", "not an interval", ""},
		{KindInterval, "0s", "", "/value", "not positive", ""},
		{KindInterval, "0d", "", "/value", "not positive", ""},
		{KindInterval, "-5m", "", "/value", "not positive", ""},
		{KindInterval, "1d-5m", "", "/value", "not positive", ""},
		{KindInterval, "1500ms", "", "/value", "whole number of seconds", ""},
		{KindInterval, "1ns", "", "/value", "whole number of seconds", ""},
		{KindInterval, "999999999w", "", "/value", "too long", ""},
		{KindInterval, "3660d1s", "", "/value", "too long", ""},
		{KindInterval, "99999999h", "", "/value", "not an interval", ""},
		{KindInterval, "P1M", "", "/value", "not an interval", "use cron"},
		{KindInterval, "P1Y", "", "/value", "not an interval", "use cron"},
		{KindInterval, "P1DT", "", "/value", "not an interval", ""},
		{KindInterval, "P", "", "/value", "not positive", ""},
		{KindInterval, "PT-5M", "", "/value", "not an interval", ""},
		{KindCron, "* * * * *", "Mars/Olympus", "/zone", "unknown time zone", "IANA"},
		{KindCron, "* * * * *", "america/new york", "/zone", "unknown time zone", "did you mean America/New_York?"},
		{KindCron, "* * * * *", " Europe/Berlin", "/zone", "unknown time zone", "did you mean Europe/Berlin?"},
		{KindCron, "* * * * *", "+02:00", "/zone", "unknown time zone", "Etc/GMT-2"},
		{KindCron, "* * * * *", "Local", "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", "localtime", "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", "right/Europe/Berlin", "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", "../../etc/passwd", "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", "/etc/localtime", "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", strings.Repeat("é", 5000), "/zone", "unknown time zone", ""},
		{KindCron, "* * * * *", "\x00", "/zone", "unknown time zone", ""},
	} {
		_, err := new(Zones).ParseCadence(k.kind, k.value, k.zone)
		e := reeve.AsError(err)
		if err == nil || e.Code != reeve.Validation || !strings.Contains(e.Message, k.message) ||
			!strings.Contains(e.Hint, k.hint) {
			t.Errorf("%s %q %q: %v (hint %q)", k.kind, k.value, truncate(k.zone), err, e.Hint)
			continue
		}
		if len(e.Fields) != 1 || e.Fields[0].Path != k.path || e.Fields[0].Expected == "" || len(e.Message) > 200 {
			t.Errorf("%s %q %q: fields %+v", k.kind, k.value, truncate(k.zone), e.Fields)
		}
	}
}

func TestZonesKeepsZones(t *testing.T) {
	t.Parallel()
	var z Zones
	a, _ := z.ParseCadence(KindCron, "@daily", "Europe/Berlin")
	b, _ := z.ParseCadence(KindCron, "@hourly", "Europe/Berlin")
	if a.Location() != b.Location() || a.Location().String() != "Europe/Berlin" || a.Kind() != KindCron {
		t.Errorf("%v and %v", a.Location(), b.Location())
	}
}

// The same wall-clock time in another zone is another instant.
func TestCadenceZoneChangeKeepsWallClock(t *testing.T) {
	t.Parallel()
	at := instant(t, "2026-06-01T12:00:00Z")
	for zone, want := range map[string]string{"Europe/Berlin": "2026-06-02T05:00:00Z",
		"America/New_York": "2026-06-02T11:00:00Z", "": "2026-06-02T07:00:00Z"} {
		if got, _ := cadence(t, KindCron, "0 7 * * *", zone).Next(at); !got.Equal(instant(t, want)) {
			t.Errorf("%s: %v, want %s", zone, got, want)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	const daily, hourly = "0 7 * * *", "0 * * * *"
	for _, k := range []struct {
		what, kind, value, last, now string
		m                            reeve.Misfire
		run                          string // with + for a catch-up
		missed                       string
		more                         bool
		next                         string
	}{
		{"not yet", KindCron, daily, "2026-06-01T07:00Z", "2026-06-02T06:59Z", "", "", "", false, "2026-06-02T07:00Z"},
		{"on time", KindCron, daily, "2026-06-01T07:00Z", "2026-06-02T07:00Z", "", "2026-06-02T07:00Z", "", false,
			"2026-06-03T07:00Z"},
		{"a little late", KindCron, daily, "2026-06-01T07:00Z", "2026-06-02T07:01Z", "", "2026-06-02T07:00Z", "", false,
			"2026-06-03T07:00Z"},
		{"late", KindCron, daily, "2026-06-01T07:00Z", "2026-06-02T07:02Z", "", "+2026-06-02T07:00Z", "", false,
			"2026-06-03T07:00Z"},
		{"asleep for three days", KindCron, daily, "2026-06-01T07:00Z", "2026-06-04T12:00Z", "",
			"+2026-06-04T07:00Z", "2026-06-02T07:00Z 2026-06-03T07:00Z", false, "2026-06-05T07:00Z"},
		{"asleep and awake on the dot", KindCron, daily, "2026-06-01T07:00Z", "2026-06-04T07:00Z", reeve.CatchUpOnce,
			"+2026-06-04T07:00Z", "2026-06-02T07:00Z 2026-06-03T07:00Z", false, "2026-06-05T07:00Z"},
		{"clock back an hour after a run", KindCron, daily, "2026-06-02T07:00Z", "2026-06-02T06:00Z", "", "", "", false,
			"2026-06-03T07:00Z"},
		{"and again at the same time", KindCron, daily, "2026-06-02T07:00Z", "2026-06-02T07:00Z", "", "", "", false,
			"2026-06-03T07:00Z"},
		{"clock forward a day", KindCron, daily, "2026-06-02T07:00Z", "2026-06-03T08:00Z", "", "+2026-06-03T07:00Z", "",
			false, "2026-06-04T07:00Z"},
		{"skip, on time", KindCron, daily, "2026-06-01T07:00Z", "2026-06-02T07:00Z", reeve.SkipMissed,
			"2026-06-02T07:00Z", "", false, "2026-06-03T07:00Z"},
		{"skip, late", KindCron, daily, "2026-06-01T07:00Z", "2026-06-03T08:00Z", reeve.SkipMissed, "",
			"2026-06-02T07:00Z 2026-06-03T07:00Z", false, "2026-06-04T07:00Z"},
		{"skip, the last on time", KindCron, daily, "2026-06-01T07:00Z", "2026-06-03T07:00Z", reeve.SkipMissed,
			"2026-06-03T07:00Z", "2026-06-02T07:00Z", false, "2026-06-04T07:00Z"},
		{"all within a day", KindCron, daily, "2026-06-01T07:00Z", "2026-06-04T07:00Z", reeve.RunAllMissed,
			"+2026-06-03T07:00Z 2026-06-04T07:00Z", "2026-06-02T07:00Z", false, "2026-06-05T07:00Z"},
		{"all within a limit", KindCron, "* * * * *", "2026-06-01T00:00Z", "2026-06-01T09:30Z", reeve.RunAllMissed,
			"+2026-06-01T07:51Z .. 2026-06-01T09:30Z (100)", "2026-06-01T06:11Z .. 2026-06-01T07:50Z (100)", true,
			"2026-06-01T09:31Z"},
		{"all beyond the window", KindCron, "0 7 1 * *", "2026-06-01T07:00Z", "2026-07-02T12:00Z", reeve.RunAllMissed,
			"", "2026-07-01T07:00Z", false, "2026-08-01T07:00Z"},
		{"missed ones have a limit", KindCron, hourly, "2026-06-01T00:00Z", "2026-06-11T00:30Z", "",
			"+2026-06-11T00:00Z", "2026-06-06T20:00Z .. 2026-06-10T23:00Z (100)", true, "2026-06-11T01:00Z"},
		{"years of minutes", KindCron, "* * * * *", "2016-06-01T00:00Z", "2026-06-01T00:00Z", "",
			"+2026-06-01T00:00Z", "2026-05-31T22:20Z .. 2026-05-31T23:59Z (100)", true, "2026-06-01T00:01Z"},
		{"once, late", KindOnce, "2026-06-01T07:00", "2026-05-01T00:00Z", "2026-06-02T00:00Z", "", "+2026-06-01T07:00Z",
			"", false, ""},
		{"once, skipped", KindOnce, "2026-06-01T07:00", "2026-05-01T00:00Z", "2026-06-02T00:00Z", reeve.SkipMissed, "",
			"2026-06-01T07:00Z", false, ""},
		{"once, done", KindOnce, "2026-06-01T07:00", "2026-06-01T07:00Z", "2026-06-02T00:00Z", "", "", "", false, ""},
		{"interval keeps its grid", KindInterval, "40m", "2026-06-01T00:00Z", "2026-06-01T02:30Z", "",
			"+2026-06-01T02:00Z", "2026-06-01T00:40Z 2026-06-01T01:20Z", false, "2026-06-01T02:40Z"},
		{"interval, years of them", KindInterval, "1m", "2016-06-01T00:00Z", "2026-06-01T00:00Z", "",
			"+2026-06-01T00:00Z", "2026-05-31T22:20Z .. 2026-05-31T23:59Z (100)", true, "2026-06-01T00:01Z"},
	} {
		t.Run(k.what, func(t *testing.T) {
			c := cadence(t, k.kind, k.value, "")
			minute := func(s string) time.Time { return instant(t, strings.Replace(s, "Z", ":00Z", 1)) }
			d := c.Due(minute(k.last), minute(k.now), k.m)
			var run []string
			for _, f := range d.Run {
				s := shown(c, []time.Time{f.At})[0]
				if f.CatchUp {
					s = "+" + s
				}
				run = append(run, s)
			}
			next := ""
			if !d.Next.IsZero() {
				next = shown(c, []time.Time{d.Next})[0]
			}
			brief := func(list []string) string {
				if n := len(list); n > 4 {
					return fmt.Sprintf("%s .. %s (%d)", list[0], list[n-1], n)
				}
				return strings.Join(list, " ")
			}
			if got := brief(run); got != k.run {
				t.Errorf("runs %q, want %q", got, k.run)
			}
			if got := brief(shown(c, d.Missed)); got != k.missed || d.More != k.more {
				t.Errorf("missed %q %v, want %q %v", got, d.More, k.missed, k.more)
			}
			if next != k.next {
				t.Errorf("next %q, want %q", next, k.next)
			}
		})
	}
}

// No instant runs twice and none runs early, whatever the clock does.
func TestDueNeverRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{KindCron, KindInterval}).Draw(t, "kind")
		value := map[string]string{KindCron: "*/10 1,2,3,5 * * *", KindInterval: "25m"}[kind]
		c, err := new(Zones).ParseCadence(kind, value, "America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		m := rapid.SampledFrom([]reeve.Misfire{"", reeve.CatchUpOnce, reeve.SkipMissed, reeve.RunAllMissed}).
			Draw(t, "misfire")
		now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
		last := now
		for range 30 {
			now = now.Add(time.Duration(rapid.IntRange(-90, 6000).Draw(t, "minutes")) * time.Minute)
			d := c.Due(last, now, m)
			var dealt []time.Time
			dealt = append(dealt, d.Missed...)
			for _, f := range d.Run {
				dealt = append(dealt, f.At)
			}
			if len(d.Run) > maxDue || len(d.Missed) > maxDue {
				t.Fatalf("%d runs, %d missed", len(d.Run), len(d.Missed))
			}
			for _, at := range dealt {
				if !at.After(last) || at.After(now) {
					t.Fatalf("%v is not after %v and up to %v", at, last, now)
				}
				last = at
			}
			if !d.Next.After(last) || len(dealt) > 0 && !d.Next.After(now) {
				t.Fatalf("next %v, last %v, now %v", d.Next, last, now)
			}
			if want := c.WithAnchor(last).Upcoming(last, 1)[0]; !want.Equal(d.Next) {
				t.Fatalf("next %v is not the one after %v: %v", d.Next, last, want)
			}
		}
	})
}

func FuzzParseCadence(f *testing.F) {
	f.Add(KindOnce, "2026-03-01T07:00", "Europe/Berlin")
	f.Add(KindInterval, "1d12h", "")
	f.Add(KindInterval, "P1DT1H", "UTC")
	f.Add(KindCron, "0 7 * * 1-5", "America/Havana")
	after := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, kind, value, zone string) {
		c, err := new(Zones).ParseCadence(kind, value, zone)
		if err != nil {
			if e := reeve.AsError(err); e.Code != reeve.Validation || len(e.Fields) != 1 {
				t.Fatalf("%q %q %q: %v", kind, value, zone, err)
			}
			return
		}
		if next, ok := c.Next(after); ok != !next.IsZero() || ok && !next.After(after) {
			t.Fatalf("%q %q %q: %v %v", kind, value, zone, next, ok)
		}
	})
}
