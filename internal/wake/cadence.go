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
	KindCron     = "cron"     // five fields, read in the zone
	KindOnce     = "once"     // one instant
	KindInterval = "interval" // every so often, counted from the instant scheduled before
)

// Cadence says when a timer fires. It is a value: nothing in it changes, and it reads no clock.
//
// A cron expression has five fields: minute, hour, day of month, month, day of week. Each is a star, or a list of
// numbers, ranges a-b and steps a-b/n, */n, or a/n (from a to the end). Months and weekdays have names of three letters
// in any case; 0 and 7 are Sunday, and a range may end on it (fri-sun). Ranges that run backward are refused. ? in a
// day field is a star. @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly stand for their
// expressions. When both day fields restrict, a day that either allows will do; only *, ? and */1 do not restrict (*/2
// does). A date that never comes, such as 30 February, is refused.
//
// When the clocks change: an expression whose hour field is one hour or a list of hours names times of day. A time that
// the clock jumps over fires at the first instant after the gap, several of them as one; a time that comes twice fires
// the first time only. With a star, a step or a range in the hour field (every hour, every second hour, hourly from 0
// to 5) the expression fires whenever the wall clock shows a matching minute: in both passes of a repeated hour, and
// not at times that do not come.
//
// Once is an RFC 3339 instant, or a local time such as 2026-03-01T07:00 read in the zone by the first of these rules.
//
// An interval is a Go duration, with days and weeks (1d12h), or an ISO 8601 duration without years and months (PT15M,
// P1D). A day is 24 hours, whatever the clocks do.
type Cadence struct {
	kind   string
	zone   *time.Location
	cron   cron.Schedule
	at     time.Time     // of once
	every  time.Duration // of an interval
	anchor time.Time     // what an interval counts from; zero: whatever Next is asked about
}

// Zones parses cadences and keeps the zones that it has read, from the machine's zone files or the embedded ones. The
// zero value is ready; it may be used by many at once.
type Zones struct {
	known sync.Map // name to *time.Location; only real names enter, so it stays small
}

// ParseCadence reads a cadence. An empty zone is UTC. Errors are [reeve.Validation] errors whose fields are /kind,
// /value and /zone. A once in the past is not an error here: its Next says that there is none.
func (z *Zones) ParseCadence(kind, value, zone string) (Cadence, error) {
	loc, err := z.load(zone)
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
		err = invalid("/kind", "cron, once or interval", "there is no kind of cadence %q", brief(kind))
	}
	if err != nil {
		return Cadence{}, err
	}
	return c, nil
}

// ParseStored reads a cadence that was good when it was kept. A zone that is not known any more matters only to those
// that are read in it: an interval has none, and neither has an instant.
func (z *Zones) ParseStored(kind, value, zone string) (Cadence, error) {
	c, err := z.ParseCadence(kind, value, zone)
	if err == nil || kind == KindCron {
		return c, err
	}
	if kind == KindOnce && !zoneless(value) {
		return c, err
	}
	return z.ParseCadence(kind, value, "")
}

// zoneless tells whether a once is the same in every zone.
func zoneless(value string) bool {
	_, err := reeve.ParseInstant(strings.ToUpper(strings.TrimSpace(value)))
	return err == nil
}

// Kind gives cron, once or interval.
func (c Cadence) Kind() string { return c.kind }

// Location gives the zone in which to show its firings.
func (c Cadence) Location() *time.Location {
	if c.zone == nil {
		return time.UTC
	}
	return c.zone
}

// WithAnchor gives the cadence with intervals counted from an instant, the first firing one interval after it. Cron and
// once know their instants and stay as they are.
func (c Cadence) WithAnchor(anchor time.Time) Cadence {
	c.anchor = anchor
	return c
}

// Next gives the first firing strictly after an instant, in UTC; false when there is none. An interval without
// [Cadence.From] counts from after itself: give it the instant that was scheduled before, not the one at which it ran,
// and nothing drifts.
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
		if next := c.anchor.Add(n * c.every).UTC(); next.After(after) { // not when centuries away, where durations end
			return next, true
		}
	}
	return time.Time{}, false
}

// Upcoming gives the next n firings after an instant, or as many as there are.
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

// same tells whether two cadences fire at the same instants, however they were written. An interval has no zone, and
// neither has an instant.
func (c Cadence) same(d Cadence) bool {
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

// MinInterval gives the smallest time that ever passes between two firings, whatever the date: 0 5,6 1 1 * says one
// hour all year. False means that it fires once at most.
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
	onTime   = time.Minute    // how late a firing still is on time
	lookBack = 24 * time.Hour // how far back missed instants are run, where all are
	mostDue  = 100            // instants that are run, and that are reported as missed
)

// Firing is one run to start.
type Firing struct {
	At      time.Time // the instant it was scheduled for
	CatchUp bool      // it runs late, or for missed ones too
}

// Due is what to do about a timer now.
type Due struct {
	Run    []Firing    // to start, oldest first
	Missed []time.Time // passed and not run, oldest first, at most 100: the newest
	More   bool        // there were missed ones before these
	Next   time.Time   // the next regular firing; zero when there is none
}

// Due says what has come due since the last instant that was dealt with (run or missed, or the timer's creation), and
// what comes next. Next is later than last and now, and so a clock that is put back repeats nothing.
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

	// Runs and missed ones together are never more than twice the limit, and one.
	passed := c.passed(first, last, now, 2*mostDue+1)
	newest := passed[len(passed)-1]
	run, forAll := len(passed), false // passed[run:] are run
	switch m {
	case reeve.RunAll:
		for run > 0 && len(passed)-run < mostDue && now.Sub(passed[run-1]) <= lookBack {
			run--
		}
	case reeve.SkipMissed:
		if now.Sub(newest) <= onTime {
			run--
		}
	default:
		run, forAll = run-1, true
	}
	for _, t := range passed[run:] {
		late := now.Sub(t) > onTime
		d.Run = append(d.Run, Firing{At: t, CatchUp: late || forAll && len(passed) > 1})
	}
	d.Missed = passed[max(0, run-mostDue):run]
	d.More = len(d.Missed) > 0 && d.Missed[0].After(first)
	return d
}

// passed gives the newest n firings after last up to now, oldest first; first is the first of all. Going forward is
// cheap, but a year of minutes is not: then it goes back from now.
func (c Cadence) passed(first, last, now time.Time, n int) (out []time.Time) {
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

// parseOnce reads an instant, or a local time. It keeps milliseconds, as the store does.
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
		return t, invalid("/value", expected, "%q is not an instant or a local time", brief(s))
	case t.Year() > 9998: // later ones have no name everywhere
		return t, invalid("/value", expected+", up to the year 9998", "%q is too far away", brief(s))
	}
	return t, nil
}

var (
	isoInterval = regexp.MustCompile(
		`^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$`)
	dayInterval = regexp.MustCompile(`^(?:(\d{1,9})w)?(?:(\d{1,9})d)?`)
)

const maxInterval = 3660 * 24 * time.Hour

// parseInterval reads a duration of whole seconds: finer ones promise what no timer here keeps.
func parseInterval(s string) (time.Duration, error) {
	const expected = "a duration such as 15m, 1h30m, 90s, 1d or PT15M: whole seconds, from 1s to 3660d"
	s = strings.TrimSpace(s)
	wrong := invalid("/value", expected, "%q is not an interval", brief(s))
	var seconds int64
	add := func(n string, unit int64) {
		if v, err := strconv.ParseInt(n, 10, 64); err == nil { // empty: not given
			seconds += v * unit
		}
	}
	var rest time.Duration
	if upper := strings.ToUpper(s); strings.HasPrefix(upper, "P") {
		g := isoInterval.FindStringSubmatch(upper)
		if g == nil || strings.HasSuffix(upper, "T") {
			return 0, wrong.Hintf("years and months have no fixed length: use cron for them")
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
		return 0, invalid("/value", expected, "the interval %q is too long", brief(s))
	}
	d := time.Duration(seconds)*time.Second + rest
	switch {
	case d > maxInterval:
		return 0, invalid("/value", expected, "the interval %q is too long", brief(s))
	case rest < 0 || d <= 0:
		return 0, invalid("/value", expected, "the interval %q is not positive", brief(s))
	case d%time.Second != 0:
		return 0, invalid("/value", expected, "the interval %q is not in whole seconds", brief(s))
	}
	return d, nil
}

// load finds a zone. Names that mean this machine's own zone, or count leap seconds, are refused: a cadence means the
// same everywhere.
func (z *Zones) load(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := z.known.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if loc, err := loadZone(name); err == nil {
		z.known.Store(name, loc)
		return loc, nil
	}
	err := invalid("/zone", "an IANA zone such as Europe/Berlin", "there is no zone %q", brief(name))
	if guess := titled(name); guess != name {
		if _, no := loadZone(guess); no == nil {
			return nil, err.Hintf("did you mean %s?", guess)
		}
	}
	return nil, err.Hintf("use an IANA name such as America/New_York or UTC; a fixed offset is written Etc/GMT-2 for " +
		"two hours ahead of UTC")
}

func loadZone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if len(name) > 64 || slices.Contains([]string{"Local", "localtime", "posixrules", "right", "posix"}, first) {
		return nil, fmt.Errorf("%s is not a zone", name)
	}
	return time.LoadLocation(name)
}

// titled writes a name as zones are written: america/new york is America/New_York.
func titled(name string) string {
	b := []byte(strings.ToLower(brief(strings.TrimSpace(name))))
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

// brief shortens what an error shows of its input.
func brief(s string) string { return reeve.Truncate(s, 60) }

func invalid(path, expected, format string, args ...any) *reeve.Error {
	m := fmt.Sprintf(format, args...)
	return &reeve.Error{Code: reeve.Validation, Message: m,
		Fields: []reeve.Field{{Path: path, Message: m, Expected: expected}}}
}
