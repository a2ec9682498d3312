package wake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reeve"
	"reeve/internal/cron"
)

// mustParseCadence parses a cadence and fails the test if it is invalid.
func mustParseCadence(t testing.TB, kind, value, zone string) Cadence {
	t.Helper()
	c, err := new(Zones).ParseCadence(kind, value, zone)
	if err != nil {
		t.Fatalf("%s %q in %q: %v", kind, value, zone, err)
	}
	return c
}

// mustParseTime parses an RFC 3339 time and fails the test if it is invalid.
func mustParseTime(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// formatTimes formats times in the zone of a cadence.
func formatTimes(c Cadence, times []time.Time) []string {
	out := []string{}
	for _, at := range times {
		out = append(out, at.In(c.Location()).Format("2006-01-02T15:04Z07:00"))
	}
	return out
}

func TestCronFields(t *testing.T) {
	t.Parallel()
	const from = "2026-01-01T00:00:00Z" // a Thursday
	for _, k := range []struct {
		expr, want string // want: the next three
	}{
		{"* * * * *", "2026-01-01T00:01Z 2026-01-01T00:02Z 2026-01-01T00:03Z"},
		{" 0   7 *\t* 1-5 ", "2026-01-01T07:00Z 2026-01-02T07:00Z 2026-01-05T07:00Z"},
		{"0 7 * * MON-fri", "2026-01-01T07:00Z 2026-01-02T07:00Z 2026-01-05T07:00Z"},
		{"0 0 * * 0", "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"0 0 * * 7", "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"0 0 * * sun", "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"0 0 * * 6-7", "2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-10T00:00Z"},
		{"0 0 * * sat-sun", "2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-10T00:00Z"},
		{"0 0 * * 7/2", "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"0 0 * * 5/1", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-09T00:00Z"},
		{"0 0 * * 0-7", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		{"0 0 1 Feb,DEC *", "2026-02-01T00:00Z 2026-12-01T00:00Z 2027-02-01T00:00Z"},
		{"*/20 5 * * *", "2026-01-01T05:00Z 2026-01-01T05:20Z 2026-01-01T05:40Z"},
		{"10-50/20 3,4 * * *", "2026-01-01T03:10Z 2026-01-01T03:30Z 2026-01-01T03:50Z"},
		{"50/5 0 * * *", "2026-01-01T00:50Z 2026-01-01T00:55Z 2026-01-02T00:50Z"},
		{"*/60 */24 * * *", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		{"05 009 * * *", "2026-01-01T09:05Z 2026-01-02T09:05Z 2026-01-03T09:05Z"},
		{"0 0 29 2 *", "2028-02-29T00:00Z 2032-02-29T00:00Z 2036-02-29T00:00Z"},
		{"0 0 31 * *", "2026-01-31T00:00Z 2026-03-31T00:00Z 2026-05-31T00:00Z"},
		{"0 0 30 2,4 *", "2026-04-30T00:00Z 2027-04-30T00:00Z 2028-04-30T00:00Z"},
		// If both day fields restrict, either matches, so 30 February is valid.
		{"0 0 13 * 5", "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-13T00:00Z"},
		{"0 0 30 2 1", "2026-02-02T00:00Z 2026-02-09T00:00Z 2026-02-16T00:00Z"},
		{"0 0 */15 * 1", "2026-01-05T00:00Z 2026-01-12T00:00Z 2026-01-16T00:00Z"},
		{"0 0 1-31 * 1", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		// If one day field restricts nothing, the other decides.
		{"0 0 */1 * 1", "2026-01-05T00:00Z 2026-01-12T00:00Z 2026-01-19T00:00Z"},
		{"0 0 ? * 1", "2026-01-05T00:00Z 2026-01-12T00:00Z 2026-01-19T00:00Z"},
		{"0 0 5,* * 1", "2026-01-05T00:00Z 2026-01-12T00:00Z 2026-01-19T00:00Z"},
		{"0 0 15 * ?", "2026-01-15T00:00Z 2026-02-15T00:00Z 2026-03-15T00:00Z"},
		{"@yearly", "2027-01-01T00:00Z 2028-01-01T00:00Z 2029-01-01T00:00Z"},
		{"@Annually", "2027-01-01T00:00Z 2028-01-01T00:00Z 2029-01-01T00:00Z"},
		{"@monthly", "2026-02-01T00:00Z 2026-03-01T00:00Z 2026-04-01T00:00Z"},
		{"@weekly", "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"@daily", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		{"@midnight", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		{"@hourly", "2026-01-01T01:00Z 2026-01-01T02:00Z 2026-01-01T03:00Z"},
	} {
		c := mustParseCadence(t, KindCron, k.expr, "")
		if got := strings.Join(formatTimes(c, c.Upcoming(mustParseTime(t, from), 3)), " "); got != k.want {
			t.Errorf("%q:\n got %s\nwant %s", k.expr, got, k.want)
		}
	}
}

func TestCronRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ expr, message string }{
		{"", "five fields, but this one has 0"},
		{"* * * *", "five fields, but this one has 4"},
		{"0 * * * * *", "five fields, but this one has 6"},
		{"60 * * * *", "minute: 60 is not from 0 to 59"},
		{"* 24 * * *", "hour: 24 is not from 0 to 23"},
		{"* * 0 * *", "day of month: 0 is not from 1 to 31"},
		{"* * 32 * *", "day of month: 32 is not from 1 to 31"},
		{"* * * 0 *", "month: 0 is not from 1 to 12"},
		{"* * * 13 *", "month: 13 is not from 1 to 12"},
		{"* * * * 8", "day of week: 8 is not from 0 to 7"},
		{"-1 * * * *", "minute: a value is missing"},
		{"+1 * * * *", `minute: "+1" is not a valid value`},
		{"1.5 * * * *", `minute: "1.5" is not a valid value`},
		{"1, * * * *", "minute: a value is missing"},
		{",1 * * * *", "minute: a value is missing"},
		{"1- * * * *", "minute: a value is missing"},
		{"1-2-3 * * * *", `minute: "2-3" is not a valid value`},
		{"**  * * * *", `minute: "**" is not a valid value`},
		{"*-5 * * * *", `minute: "*" is not a valid value`},
		{"? * * * *", `minute: "?" is not a valid value`},
		{"* * ?/2 * *", `day of month: "?" is not a valid value`},
		{"*/0 * * * *", `minute: step "0" of "*/0" is not a number from 1 to 60`},
		{"*/90 * * * *", `minute: step "90" of "*/90" is not a number from 1 to 60`},
		{"*/ * * * *", `minute: step "" of "*/" is not a number from 1 to 60`},
		{"*/5/2 * * * *", `minute: step "5/2" of "*/5/2" is not a number from 1 to 60`},
		{"* 22-2 * * *", "hour: the range 22-2 runs backward"},
		{"* * * * fri-mon", "day of week: the range fri-mon runs backward"},
		{"* * * monday *", `month: "monday" is not a valid value`},
		{"* * * * monday", `day of week: "monday" is not a valid value`},
		{"mon * * * *", `minute: "mon" is not a valid value`},
		{"* * L * *", `day of month: "L" is not a valid value`},
		{"* * 15W * *", `day of month: "15W" is not a valid value`},
		{"* * * * 5#2", `day of week: "5#2" is not a valid value`},
		{"99999999999999999999 * * * *", `minute: "99999999999999999999" is not a valid value`},
		{"0 0 30 2 *", `day of month: no month of "2" has a day of "30"`},
		{"0 0 31 feb,4,jun,9,11 *", "day of month: no month of"},
		{"0 0 30-31 2 ?", "day of month: no month of"},
		{"@reboot", "unknown cron macro"},
		{"@daily x", "unknown cron macro"},
		{"@every 5m", "@every is not a cron expression"},
		{"CRON_TZ=UTC * * * * *", "contains a time zone"},
		{strings.Repeat("1,", 400) + "1 * * * *", "longer than 500"},
	} {
		_, err := new(Zones).ParseCadence(KindCron, k.expr, "")
		e := reeve.AsError(err)
		if err == nil || e.Code != reeve.Validation || !strings.Contains(e.Message, k.message) {
			t.Errorf("%q: got %v, want %s", k.expr, err, k.message)
			continue
		}
		if len(e.Fields) != 1 || e.Fields[0].Path != "/value" || e.Fields[0].Expected == "" {
			t.Errorf("%q: fields %+v lack the path or the expected value", k.expr, e.Fields)
		}
	}
	_, err := new(Zones).ParseCadence(KindCron, "* 22-2 * * *", "")
	if hint := reeve.AsError(err).Hint; hint != "to wrap around, write 22-23,0-2" {
		t.Errorf("hint %q", hint)
	}
}

func TestCronClockChanges(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ what, expr, zone, from, want string }{
		{"a fixed time in the gap runs at its end", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			"2026-03-08T03:00-04:00 2026-03-09T02:30-04:00"},
		{"several in the gap run once", "*/10 2 * * *", "America/New_York", "2026-03-08T06:59:59Z",
			"2026-03-08T03:00-04:00 2026-03-09T02:00-04:00 2026-03-09T02:10-04:00"},
		{"the end of the gap and a regular one are one", "0 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z",
			"2026-03-08T03:00-04:00 2026-03-09T02:00-04:00"},
		{"a fixed time that is repeated runs the first time", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			"2026-11-01T01:30-04:00 2026-11-02T01:30-05:00"},
		{"also when asked between the two", "30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z",
			"2026-11-02T01:30-05:00"},
		{"a list of hours is fixed hours", "0 1,2 * * *", "America/New_York", "2026-11-01T04:00:00Z",
			"2026-11-01T01:00-04:00 2026-11-01T02:00-05:00 2026-11-02T01:00-05:00"},
		{"a star skips the gap", "30 * * * *", "America/New_York", "2026-03-08T06:00:00Z",
			"2026-03-08T01:30-05:00 2026-03-08T03:30-04:00"},
		{"a star runs in both passes", "30 * * * *", "America/New_York", "2026-11-01T05:00:00Z",
			"2026-11-01T01:30-04:00 2026-11-01T01:30-05:00 2026-11-01T02:30-05:00"},
		{"a step skips the gap", "0 */2 * * *", "America/New_York", "2026-03-08T04:30:00Z",
			"2026-03-08T00:00-05:00 2026-03-08T04:00-04:00"},
		{"a step runs in both passes", "0 1-23/2 * * *", "America/New_York", "2026-11-01T04:30:00Z",
			"2026-11-01T01:00-04:00 2026-11-01T01:00-05:00 2026-11-01T03:00-05:00"},
		{"a range goes by the wall clock", "30 0-5 * * *", "America/New_York", "2026-11-01T05:00:00Z",
			"2026-11-01T01:30-04:00 2026-11-01T01:30-05:00 2026-11-01T02:30-05:00"},
		{"midnight is skipped", "0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z",
			"2026-03-08T01:00-04:00 2026-03-09T00:00-04:00"},
		{"midnight is skipped on the one date", "15 0 29 3 *", "Asia/Beirut", "2026-01-01T00:00:00Z",
			"2026-03-29T01:00+03:00 2027-03-29T00:15+03:00"},
		{"midnight is skipped on the one weekday", "0 0 * * 5", "Africa/Cairo", "2026-04-20T00:00:00Z",
			"2026-04-24T01:00+03:00 2026-05-01T00:00+03:00"},
		{"midnight comes twice", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z",
			"2026-11-01T00:00-04:00 2026-11-02T00:00-05:00"},
		{"half an hour of gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			"2026-10-04T02:30+11:00 2026-10-05T02:15+11:00"},
		{"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00:00Z",
			"2026-04-04T01:45+11:00 2026-04-05T01:45+11:00 2026-04-06T01:45+10:30"},
		{"quarters", "0 3 * * *", "Pacific/Chatham", "2026-09-26T00:00:00Z",
			"2026-09-27T03:45+13:45 2026-09-28T03:00+13:45"},
		{"odd offsets", "0 9 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T09:00+05:45"},
		{"a date that never was", "0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			"2011-12-29T09:00-10:00 2011-12-31T00:00+14:00 2011-12-31T09:00+14:00"},
		{"hours of a date that never was", "0 */12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			"2011-12-29T12:00-10:00 2011-12-31T00:00+14:00 2011-12-31T12:00+14:00"},
		{"a weekday that never was", "0 9 * * fri", "Pacific/Apia", "2011-12-26T00:00:00Z",
			"2011-12-31T00:00+14:00 2012-01-06T09:00+14:00"},
		{"a date that came twice", "0 9 * * *", "America/Juneau", "1867-10-17T00:00:00Z",
			"1867-10-18T09:00+15:02 1867-10-19T09:00+15:02 1867-10-20T09:00-08:57"},
		{"the zone goes elsewhere for good", "0 2 * * *", "Europe/Istanbul", "2016-03-26T12:00:00Z",
			"2016-03-27T02:00+02:00 2016-03-28T02:00+03:00"},
	} {
		t.Run(k.what, func(t *testing.T) {
			c := mustParseCadence(t, KindCron, k.expr, k.zone)
			want := strings.Fields(k.want)
			if got := formatTimes(c, c.Upcoming(mustParseTime(t, k.from), len(want))); !slices.Equal(got, want) {
				t.Errorf("%q in %s from %s:\n got %v\nwant %v", k.expr, k.zone, k.from, got, want)
			}
		})
	}
}

func TestCronFarFuture(t *testing.T) {
	t.Parallel()
	c := mustParseCadence(t, KindCron, "0 0 29 2 *", "Europe/Berlin")
	got, ok := c.Next(mustParseTime(t, "2096-03-01T00:00:00Z"))
	if want := mustParseTime(t, "2104-02-28T23:00:00Z"); !ok || !got.Equal(want) {
		t.Errorf("across the year 2100: %v %v, want %v", got, ok, want)
	}
	for _, after := range []time.Time{{}, time.Unix(-1<<40, 0), time.Unix(1<<40, 0), time.UnixMilli(-1)} {
		for _, expr := range []string{"* * * * *", "30 2 29 2 *", "30 2/24 29 2 *"} {
			c := mustParseCadence(t, KindCron, expr, "America/New_York")
			if got, ok := c.Next(after); !ok || !got.After(after) {
				t.Errorf("%q after %v: %v %v", expr, after, got, ok)
			}
		}
	}
}

// On the last day of a leap year after 2037, the end that Go's ZoneBounds returns is before its start.
func TestCronLastDayOfFarLeapYear(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "America/Havana"} {
		for year := 2036; year < 2080; year++ {
			at := time.Date(year, 12, 29, 12, 0, 0, 0, time.UTC)
			for _, expr := range []string{"30 */6 * * *", "30 6 * * *"} {
				times := mustParseCadence(t, KindCron, expr, zone).Upcoming(at, 20)
				for i := 1; i < len(times); i++ {
					if gap := times[i].Sub(times[i-1]); gap != times[1].Sub(times[0]) {
						t.Fatalf("%q in %s: %v after %v", expr, zone, gap, times[i-1])
					}
				}
			}
		}
	}
}

func TestCronMinInterval(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, k := range []struct {
		expr, zone string
		want       time.Duration
	}{
		{"* * * * *", "Europe/Berlin", time.Minute},
		{"*/15 * * * *", "UTC", 15 * time.Minute},
		{"*/7 * * * *", "UTC", 4 * time.Minute}, // 56 to 0
		{"0 * * * *", "Europe/Berlin", time.Hour},
		{"0,1 0 1 1 *", "UTC", time.Minute}, // once a year, but a minute apart
		{"59 23,0 * * *", "UTC", time.Hour},
		{"0 0,23 * * *", "UTC", time.Hour},
		{"0 7 * * *", "UTC", day},
		{"0 7 * * *", "Asia/Kolkata", day},
		{"0 7 * * *", "Europe/Berlin", 23 * time.Hour},
		{"30 1 * * *", "America/New_York", 23 * time.Hour},
		{"30 2,3 * * *", "America/New_York", 30 * time.Minute}, // 2:30 moves to 3:00
		{"59 2,3 * * *", "America/New_York", 59 * time.Minute},
		{"1 3 * * *", "America/New_York", 23 * time.Hour},
		{"30 1/24 * * *", "America/New_York", time.Hour},           // in both passes
		{"*/45 * * * *", "Australia/Lord_Howe", 15 * time.Minute},  // 45 to 0
		{"50 0-23 * * *", "Australia/Lord_Howe", 30 * time.Minute}, // 1:50 occurs twice
		{"0 0 * * 1", "UTC", 7 * day},                              // weekly
		{"0 7 * * 1", "Europe/Berlin", 7*day - time.Hour},          // weekly
		{"0 7 * * 1,3", "UTC", 2 * day},                            //
		{"0 0 1 * *", "UTC", 28 * day},                             // February
		{"0 0 1,31 * *", "UTC", day},                               // 31st to 1st
		// the first of the month is a Tuesday, one day
		{"0 0 1 * 1", "UTC", day},
		{"0 0 1 1 *", "UTC", 365 * day},                                      //
		{"0 0 29 2 *", "UTC", 1461 * day},                                    //
		{"30 1/24 1 11 *", "America/New_York", time.Hour},                    // on a Sunday, twice
		{"0 0 1 1,7 *", "America/New_York", 181*day - time.Hour},             // winter to summer
		{"0 0 1 1,7 *", "Australia/Sydney", 181*day + time.Hour},             // summer to winter
		{"0 23 28 2 *", "UTC", 365 * day},                                    //
		{"0 0 28 2,3 *", "UTC", 28 * day},                                    //
		{"0 12 * 1 *", "Pacific/Apia", day},                                  //
		{"0 6,18 * * *", "Africa/Casablanca", 11 * time.Hour},                // changes by Ramadan
		{"0 5,6 1 1 *", "America/Sao_Paulo", time.Hour},                      //
		{"0 0 * * *", "America/Havana", 23 * time.Hour},                      //
		{"0,30 0 * * *", "America/Havana", 30 * time.Minute},                 // both move to 1:00, as one firing
		{"30 0,1 * * *", "America/Havana", 30 * time.Minute},                 // 0:30 moves to 1:00
		{"15 2 * * *", "Australia/Lord_Howe", 23*time.Hour + 45*time.Minute}, // moves by 15 minutes once
	} {
		got, ok := mustParseCadence(t, KindCron, k.expr, k.zone).MinInterval()
		if !ok || got != k.want {
			t.Errorf("%q in %s: %v, want %v", k.expr, k.zone, got, k.want)
		}
	}
}

// field is a cron field as text, and the set of values that the text means.
type field struct {
	text string
	set  map[int]bool
	free bool
}

// drawField draws a random field with values from low to high.
func drawField(t *rapid.T, name string, low, high int) field {
	if rapid.Bool().Draw(t, name+" is a star") {
		return span("*", low, high, 1, true)
	}
	out := field{set: map[int]bool{}}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, name+" parts") {
		a := rapid.IntRange(low, high).Draw(t, name+" a")
		b := rapid.IntRange(a, high).Draw(t, name+" b")
		step := rapid.IntRange(1, (high-low)/2+1).Draw(t, name+" step")
		var f field
		switch rapid.IntRange(0, 4).Draw(t, name+" form") {
		case 0:
			f = span(fmt.Sprintf("%d-%d", a, b), a, b, 1, false)
		case 1:
			f = span(fmt.Sprintf("%d-%d/%d", a, b, step), a, b, step, false)
		case 2:
			f = span(fmt.Sprintf("*/%d", step), low, high, step, step == 1)
		case 3:
			f = span(fmt.Sprintf("%d/%d", a, step), a, high, step, false)
		default:
			f = span(fmt.Sprint(a), a, a, 1, false)
		}
		parts = append(parts, f.text)
		out.free = out.free || f.free
		for v := range f.set {
			out.set[v] = true
		}
	}
	out.text = strings.Join(parts, ",")
	return out
}

// span returns a field with the values from a to b in steps.
func span(text string, a, b, step int, free bool) field {
	f := field{text: text, set: map[int]bool{}, free: free}
	for v := a; v <= b; v += step {
		f.set[v] = true
	}
	return f
}

// model is a cron expression as the values of its five fields.
type model [5]field

func drawModel(t *rapid.T) model {
	return model{drawField(t, "minute", 0, 59), drawField(t, "hour", 0, 23), drawField(t, "day", 1, 31),
		drawField(t, "month", 1, 12),
		drawField(t, "weekday", 0, 6)}
}

func (m model) String() string {
	return strings.Join([]string{m[0].text, m[1].text, m[2].text, m[3].text, m[4].text}, " ")
}

// matches reports whether a wall clock time matches the expression.
func (m model) matches(wall time.Time) bool {
	day, weekday := m[2].set[wall.Day()], m[4].set[int(wall.Weekday())]
	date := day && weekday
	if !m[2].free && !m[4].free {
		date = day || weekday
	}
	return date && m[0].set[wall.Minute()] && m[1].set[wall.Hour()] && m[3].set[int(wall.Month())]
}

// scan finds the first firing between two instants by checking every minute.
func (m model) scan(after, before time.Time, zone *time.Location) (time.Time, bool) {
	wallOf := func(t time.Time) time.Time {
		l := t.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	elapsed := strings.ContainsAny(m[1].text, "*/-")
	start := after.Truncate(time.Minute).Add(-3 * 24 * time.Hour)
	high := wallOf(start) // the latest time that the clock has shown
	for t := start.Add(time.Minute); t.Before(before); t = t.Add(time.Minute) {
		wall := wallOf(t)
		fires := elapsed && m.matches(wall)
		for w := high.Add(time.Minute); !w.After(wall); w = w.Add(time.Minute) {
			fires = fires || !elapsed && m.matches(w) // shown for the first time now, or skipped by the clock now
		}
		if wall.After(high) {
			high = wall
		}
		if fires && t.After(after) {
			return t, true
		}
	}
	return time.Time{}, false
}

var propertyZones = []string{"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut",
	"Africa/Cairo", "Africa/Casablanca",
	"Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns", "Asia/Kathmandu", "Asia/Gaza", "Antarctica/Troll",
	"Pacific/Apia"}

func TestCronNextEqualsScan(t *testing.T) {
	t.Parallel()
	var zones Zones
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		name := rapid.SampledFrom(propertyZones).Draw(t, "zone")
		c, err := zones.ParseCadence(KindCron, m.String(), name)
		if err != nil {
			if reeve.CodeOf(err) == reeve.Validation && strings.Contains(err.Error(), "no month of") {
				t.Skip("a date that never comes")
			}
			t.Fatalf("%q: %v", m, err)
		}
		// Start near a clock change if the zone has one. Apia once skipped a whole day.
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if name == "Pacific/Apia" {
			base = time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC)
		}
		at := base.AddDate(0, rapid.IntRange(0, 100).Draw(t, "months"), 0)
		if _, end := at.In(c.Location()).ZoneBounds(); !end.IsZero() {
			at = end.Add(time.Duration(rapid.IntRange(-50*3600, 50*3600).Draw(t, "seconds")) * time.Second)
		}
		for range 4 {
			next, ok := c.Next(at)
			if !ok || !next.After(at) {
				t.Fatalf("%q in %s after %v: %v %v", m, name, at, next, ok)
			}
			end := at.Add(10 * 24 * time.Hour)
			if next.Before(end) {
				end = next.Add(time.Minute)
			}
			want, found := m.scan(at, end, c.Location())
			if found != next.Before(end) || found && !want.Equal(next) {
				t.Fatalf("%q in %s after %v:\n got %v\nscan %v %v", m, name, at, next.In(c.Location()),
					want.In(c.Location()), found)
			}
			at = next
		}
	})
}

func TestCronMinIntervalIsLowerBound(t *testing.T) {
	t.Parallel()
	var zones Zones
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		c, err := zones.ParseCadence(KindCron, m.String(), rapid.SampledFrom(propertyZones).Draw(t, "zone"))
		if err != nil {
			t.Skip("a date that never comes")
		}
		least, ok := c.MinInterval()
		if !ok || least < time.Minute {
			t.Fatalf("%q: %v %v", m, least, ok)
		}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).
			Add(time.Duration(rapid.IntRange(0, 20*366*24).Draw(t, "hours")) * time.Hour)
		times := c.Upcoming(at, 300)
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < least {
				t.Fatalf("%q: %v after %v, less than the minimum of %v", m, gap, times[i-1], least)
			}
		}
	})
}

func TestCronFieldOrderAndSpaceDoNotMatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for range 200 {
		list := r.Perm(60)[:5]
		a := fmt.Sprintf("%d,%d,%d,%d,%d * * * *", list[0], list[1], list[2], list[3], list[4])
		slices.Sort(list)
		b := fmt.Sprintf("%d,%d,%d,%d,%d\t* *  * *\n", list[0], list[1], list[2], list[3], list[4])
		x, y := mustParseCadence(t, KindCron, a, ""), mustParseCadence(t, KindCron, b, "")
		if !slices.Equal(x.Upcoming(at, 9), y.Upcoming(at, 9)) {
			t.Fatalf("%q and %q differ", a, b)
		}
	}
}

func FuzzParseCron(f *testing.F) {
	for _, s := range []string{"* * * * *", "0 7 * * mon-fri", "*/7 1-5,9 1/3 jan-dec/2 sat-sun", "0 0 30 2 *",
		"@daily", "@every 1m", "7/7 7/7 7/7 7/7 7/7", "a-b/c"} {
		f.Add(s)
	}
	zone, err := time.LoadLocation("America/Havana")
	if err != nil {
		f.Fatal(err)
	}
	after := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := cron.Parse(s)
		if err != nil {
			if e := reeve.AsError(err); e.Code != reeve.Validation || len(e.Fields) != 1 || e.Message == "" {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		next, ok := c.Next(after, zone)
		if !ok || !next.After(after) {
			t.Fatalf("%q is valid and never fires: %v %v", s, next, ok)
		}
		if c.MinGap(zone) < time.Minute {
			t.Fatalf("%q: gap %v", s, c.MinGap(zone))
		}
	})
}
