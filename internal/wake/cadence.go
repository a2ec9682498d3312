package wake

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones work on a machine that has none

	"reeve"
	"reeve/internal/cron"
)

// The kinds of a [Cadence].
const (
	KindCron     = "cron"     // five fields, interpreted in the zone
	KindOnce     = "once"     // one instant
	KindInterval = "interval" // fixed distance, counted from the previous scheduled instant
)

// Cadence says when a timer fires. It is an immutable value and reads no clock.
//
// A cron expression has five fields: minute, hour, day of month, month, day of week. Each is a star, or a list of
// numbers, ranges a-b and steps a-b/n, */n, or a/n (from a to the end). Months and weekdays have names of three letters
// in any case. 0 and 7 are Sunday, and a range may end on it (fri-sun). Ranges that run backward are refused. ? in a
// day field is a star. @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly stand for their
// expressions. If both day fields are restricted, a day matches if either field allows it. *, ? and */1 do not restrict
// a field; */2 does. A date that does not exist, such as 30 February, is refused.
//
// Package cron decides what happens when the clocks change. An expression whose hour field is one hour or a list of
// hours names times of day. A time that the clock skips fires at the first instant after the gap, and several skipped
// times fire as one. A time that occurs twice fires the first time only. Any other expression, with a star, a step or a
// range in the hour field, fires whenever the wall clock shows a matching minute. So it fires in both passes of a
// repeated hour, and not at skipped times.
//
// Once is an RFC 3339 instant, or a local time such as 2026-03-01T07:00. A local time is interpreted in the zone, with
// the rules for times of day.
//
// An interval is a Go duration, with days and weeks (1d12h), or an ISO 8601 duration without years and months (PT15M,
// P1D). A day is always 24 hours.
type Cadence struct {
	kind   string
	zone   *time.Location
	cron   cron.Schedule
	at     time.Time     // the instant of KindOnce
	every  time.Duration // the duration of KindInterval
	anchor time.Time     // start of KindInterval; zero means the instant passed to Next
}

// Zones parses cadences and caches the time zones that it loads, from the machine's zone files or the embedded ones.
// The zero value is ready to use. It is safe for concurrent use.
type Zones struct {
	loaded sync.Map // name to *time.Location; holds valid names only, so it stays small
}

// ParseCadence parses a cadence. An empty zone means UTC. Errors have code [reeve.Validation] and the fields /kind,
// /value and /zone. A once in the past is valid: its Next returns false.
func (z *Zones) ParseCadence(kind, value, zone string) (Cadence, error) {
	loc, err := z.getLocation(zone)
	if err != nil {
		return Cadence{}, err
	}
	c := Cadence{kind: kind, zone: loc}
	switch kind {
	case KindCron:
		c.cron, err = cron.Parse(value)
	case KindOnce:
		c.at, err = parseOnce(value, loc)
	case KindInterval:
		c.every, err = parseInterval(value)
	default:
		err = newFieldError("/kind", "cron, once or interval", "%q is not a kind of cadence", truncate(kind))
	}
	if err != nil {
		return Cadence{}, err
	}
	return c, nil
}

// ParseStored parses a cadence from a stored timer. It accepts an unknown zone if the cadence does not depend on the
// zone, as an interval or an instant with an offset. (Zone names can disappear in a newer tzdata.)
func (z *Zones) ParseStored(kind, value, zone string) (Cadence, error) {
	c, err := z.ParseCadence(kind, value, zone)
	if err == nil || kind == KindCron {
		return c, err
	}
	if kind == KindOnce && !isInstant(value) {
		return c, err
	}
	return z.ParseCadence(kind, value, "")
}

// isInstant reports whether a once value has an offset of its own, so that the zone does not matter.
func isInstant(value string) bool {
	_, err := reeve.ParseInstant(strings.ToUpper(strings.TrimSpace(value)))
	return err == nil
}

// Kind returns KindCron, KindOnce or KindInterval.
func (c Cadence) Kind() string { return c.kind }

// Location returns the zone in which to display the firings.
func (c Cadence) Location() *time.Location {
	if c.zone == nil {
		return time.UTC
	}
	return c.zone
}

// WithAnchor returns the cadence with its interval counted from anchor. Its first firing is one interval after anchor.
// Cadences of other kinds ignore the anchor.
func (c Cadence) WithAnchor(anchor time.Time) Cadence {
	c.anchor = anchor
	return c
}

// Next returns the first firing strictly after an instant, in UTC. It returns false if there is none. An interval
// without an anchor counts from after. To avoid drift, pass the instant that was scheduled before, not the time at
// which it ran.
func (c Cadence) Next(after time.Time) (time.Time, bool) {
	switch c.kind {
	case KindCron:
		return c.cron.Next(after, c.zone)
	case KindOnce:
		if c.at.After(after) {
			return c.at, true
		}
	case KindInterval:
		if c.anchor.IsZero() {
			return after.Add(c.every).UTC(), true
		}
		n := max(after.Sub(c.anchor), 0)/c.every + 1
		// false if the duration overflows, centuries away
		if next := c.anchor.Add(n * c.every).UTC(); next.After(after) {
			return next, true
		}
	}
	return time.Time{}, false
}

// Upcoming returns up to n firings after an instant.
func (c Cadence) Upcoming(after time.Time, n int) []time.Time {
	var out []time.Time
	if c.anchor.IsZero() {
		c.anchor = after
	}
	for len(out) < n {
		t, ok := c.Next(after)
		if !ok {
			break
		}
		out, after = append(out, t), t
	}
	return out
}

// equal reports whether two cadences fire at the same instants, however they are written. The zone matters for cron
// only.
func (c Cadence) equal(d Cadence) bool {
	switch {
	case c.kind != d.kind:
		return false
	case c.kind == KindCron:
		return c.cron == d.cron && c.zone.String() == d.zone.String()
	case c.kind == KindOnce:
		return c.at.Equal(d.at)
	}
	return c.every == d.every
}

// MinInterval returns the smallest time between two firings on any date. For 0 5,6 1 1 * it is one hour. It returns
// false if the cadence fires at most once.
func (c Cadence) MinInterval() (time.Duration, bool) {
	switch c.kind {
	case KindCron:
		return c.cron.MinGap(c.zone), true
	case KindInterval:
		return c.every, true
	}
	return 0, false
}

const (
	onTimeWindow = time.Minute    // delay up to which a firing counts as on time
	maxLookback  = 24 * time.Hour // age up to which missed firings run under RunAllMissed
	maxDue       = 100            // limit for firings to run, and for missed firings to report
)

// Firing is a firing of a timer for which a run is to start.
type Firing struct {
	At      time.Time // the scheduled instant
	CatchUp bool      // the firing is late, or stands for missed ones too
}

// Due is the result of evaluating a timer at an instant.
type Due struct {
	Run    []Firing    // firings to run, oldest first
	Missed []time.Time // newest missed firings that do not run, at most maxDue, oldest first
	More   bool        // there are missed firings older than Missed
	Next   time.Time   // the next regular firing; zero if there is none
}

// Due returns the firings after last and up to now, divided by the misfire policy m, and the next firing. The instant
// last is the latest one that was run or missed, or the creation of the timer. Next is later than both last and now, so
// setting the clock back repeats no firing.
func (c Cadence) Due(last, now time.Time, m reeve.Misfire) (d Due) {
	if c.anchor.IsZero() {
		c.anchor = last
	}
	first, ok := c.Next(last)
	if !ok {
		return d
	}
	if first.After(now) {
		return Due{Next: first}
	}
	d.Next, _ = c.Next(now)

	// At most maxDue firings are run and at most maxDue are listed as missed. One more entry shows that there are more.
	passed := c.listPassed(first, last, now, 2*maxDue+1)
	newest := passed[len(passed)-1]
	firstRun, mergesAll := len(passed), false // passed[firstRun:] are run
	switch m {
	case reeve.RunAllMissed:
		for firstRun > 0 && len(passed)-firstRun < maxDue && now.Sub(passed[firstRun-1]) <= maxLookback {
			firstRun--
		}
	case reeve.SkipMissed:
		if now.Sub(newest) <= onTimeWindow {
			firstRun--
		}
	default:
		firstRun, mergesAll = firstRun-1, true
	}
	for _, t := range passed[firstRun:] {
		isLate := now.Sub(t) > onTimeWindow
		d.Run = append(d.Run, Firing{At: t, CatchUp: isLate || mergesAll && len(passed) > 1})
	}
	d.Missed = passed[max(0, firstRun-maxDue):firstRun]
	d.More = len(d.Missed) > 0 && d.Missed[0].After(first)
	return d
}

// listPassed returns the newest n firings after last and up to now, oldest first. The instant first is the oldest of
// all. It counts forward from first. If there are too many (a year of minutes), it searches backward from now.
func (c Cadence) listPassed(first, last, now time.Time, n int) (out []time.Time) {
	t, ok := first, true
	for ; ok && !t.After(now) && len(out) <= 4*n; t, ok = c.Next(t) {
		out = append(out, t)
	}
	if len(out) <= 4*n {
		return out[max(0, len(out)-n):]
	}
	out = out[:0]
	for t, ok = cron.Latest(c.Next, last, now); ok && len(out) < n; t, ok = cron.Latest(c.Next, last, t.Add(-1)) {
		out = append(out, t)
	}
	slices.Reverse(out)
	return out
}

// parseOnce parses an instant or a local time. It truncates to milliseconds, the precision of the store.
func parseOnce(s string, zone *time.Location) (time.Time, error) {
	const expected = "an instant such as 2026-03-01T07:00:00Z, or a local time such as 2026-03-01T07:00"
	text := strings.ToUpper(strings.TrimSpace(s))
	t, err := reeve.ParseInstant(text)
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04",
		"2006-01-02 15:04:05"} {
		if err == nil {
			break
		}
		var wall time.Time // in UTC
		if wall, err = time.Parse(layout, text); err == nil {
			t = cron.FirstAt(wall.Unix(), zone)
		}
	}
	t = t.UTC().Truncate(time.Millisecond)
	switch {
	case err != nil:
		return t, newFieldError("/value", expected, "%q is not an instant or a local time", truncate(s))
	case t.Year() > 9998: // RFC 3339 in some zone would need five digits
		return t, newFieldError("/value", expected+", up to the year 9998", "%q is too far in the future", truncate(s))
	}
	return t, nil
}

var (
	isoInterval = regexp.MustCompile(
		`^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$`)
	dayInterval = regexp.MustCompile(`^(?:(\d{1,9})w)?(?:(\d{1,9})d)?`)
)

const maxInterval = 3660 * 24 * time.Hour

// parseInterval parses a duration of whole seconds. Timers have no finer resolution.
func parseInterval(s string) (time.Duration, error) {
	const expected = "a duration such as 15m, 1h30m, 90s, 1d or PT15M: whole seconds, from 1s to 3660d"
	s = strings.TrimSpace(s)
	wrong := newFieldError("/value", expected, "%q is not an interval", truncate(s))
	var seconds int64
	add := func(n string, unit int64) {
		if v, err := strconv.ParseInt(n, 10, 64); err == nil { // empty if the unit is absent
			seconds += v * unit
		}
	}
	var rest time.Duration
	if upper := strings.ToUpper(s); strings.HasPrefix(upper, "P") {
		g := isoInterval.FindStringSubmatch(upper)
		if g == nil || strings.HasSuffix(upper, "T") {
			return 0, wrong.Hintf("years and months have no fixed length; use cron instead")
		}
		for i, unit := range []int64{7 * 86400, 86400, 3600, 60, 1} {
			add(g[i+1], unit)
		}
	} else {
		g := dayInterval.FindStringSubmatch(s)
		add(g[1], 7*86400)
		add(g[2], 86400)
		if fine := s[len(g[0]):]; fine != "" || g[0] == "" {
			var err error
			if rest, err = time.ParseDuration(fine); err != nil {
				return 0, wrong
			}
		}
	}
	if seconds > int64(maxInterval/time.Second) || rest > maxInterval {
		return 0, newFieldError("/value", expected, "the interval %q is too long", truncate(s))
	}
	d := time.Duration(seconds)*time.Second + rest
	switch {
	case d > maxInterval:
		return 0, newFieldError("/value", expected, "the interval %q is too long", truncate(s))
	case rest < 0 || d <= 0:
		return 0, newFieldError("/value", expected, "the interval %q is not positive", truncate(s))
	case d%time.Second != 0:
		return 0, newFieldError("/value", expected, "the interval %q is not a whole number of seconds", truncate(s))
	}
	return d, nil
}

// getLocation returns a zone by name. It refuses names that stand for the machine's own zone or that count leap
// seconds, so that a cadence means the same on every server.
func (z *Zones) getLocation(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := z.loaded.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if loc, err := loadZone(name); err == nil {
		z.loaded.Store(name, loc)
		return loc, nil
	}
	err := newFieldError("/zone", "an IANA zone such as Europe/Berlin", "unknown time zone %q", truncate(name))
	if guess := capitalizeZone(name); guess != name {
		if _, guessErr := loadZone(guess); guessErr == nil {
			return nil, err.Hintf("did you mean %s?", guess)
		}
	}
	return nil, err.Hintf("use an IANA name such as America/New_York or UTC; the fixed offset UTC+2 is Etc/GMT-2")
}

func loadZone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if len(name) > 64 || slices.Contains([]string{"Local", "localtime", "posixrules", "right", "posix"}, first) {
		return nil, fmt.Errorf("%s is not a zone", name)
	}
	return time.LoadLocation(name)
}

// capitalizeZone spells a name in the manner of IANA zones: america/new york becomes America/New_York.
func capitalizeZone(name string) string {
	b := []byte(strings.ToLower(truncate(strings.TrimSpace(name))))
	start := true
	for i, c := range b {
		if c == ' ' {
			b[i] = '_'
		}
		if start && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		start = c == '/' || c == '_' || c == ' ' || c == '-'
	}
	return string(b)
}

// truncate shortens an input for an error message.
func truncate(s string) string { return reeve.Truncate(s, 60) }

func newFieldError(path, expected, format string, args ...any) *reeve.Error {
	m := fmt.Sprintf(format, args...)
	return &reeve.Error{Code: reeve.Validation, Message: m,
		Fields: []reeve.Field{{Path: path, Message: m, Expected: expected}}}
}
