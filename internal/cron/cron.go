// Package cron parses cron expressions and computes their firings in any time zone, including clock changes. See
// wake.Cadence for the syntax and the rules.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// Schedule is a parsed cron expression. Each field is a bit set of the allowed values.
type Schedule struct {
	minute, hour, day, month, weekday uint64

	// anyDay and anyWeekday are set if the field restricts nothing. If both fields restrict, a date that either allows
	// matches.
	anyDay, anyWeekday bool

	// followsWallClock is set if the hour field has a star, a step or a range. Such an expression fires whenever the
	// wall clock shows a matching time. Otherwise the expression names times of day, each of which fires once a day.
	followsWallClock bool
}

// field describes one of the five fields.
type field struct {
	name      string
	low, high int      // low and high are the values that a star stands for
	names     []string // names of low, low+1, ...
	expected  string
}

const syntax = "numbers, a-b, lists with commas, steps with /"

var fieldRules = [5]field{
	{"minute", 0, 59, nil, "0-59; " + syntax},
	{"hour", 0, 23, nil, "0-23; " + syntax},
	{"day of month", 1, 31, nil, "1-31; " + syntax},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
		"1-12 or jan-dec; " + syntax},
	{"day of week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
		"0-7 or sun-sat, 0 and 7 both Sunday; " + syntax},
}

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var monthDays = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

const maxLength = 500 // characters; every real expression is far shorter

// horizonYears limits the search for a firing. The rarest date, 29 February, is at most 8 years away.
const horizonYears = 40

// Parse parses an expression of five fields, or a macro such as @daily.
func Parse(s string) (c Schedule, err error) {
	const example = "five fields: minute hour day-of-month month day-of-week, such as 0 7 * * 1-5"
	if len(s) > maxLength {
		return c, newFieldError("/value", example, "the cron expression is longer than %d characters", maxLength)
	}
	fields := strings.Fields(s)
	if len(fields) > 0 && strings.HasPrefix(fields[0], "@") {
		name := strings.ToLower(fields[0])
		switch {
		case name == "@every":
			return c, newFieldError("/value", example, "@every is not a cron expression").
				Hintf("use an interval instead")
		case len(fields) > 1 || macros[name] == "":
			return c, newFieldError("/value", "@yearly, @monthly, @weekly, @daily or @hourly, or "+example,
				"unknown cron macro %q", truncate(s))
		}
		fields = strings.Fields(macros[name])
	}
	if len(fields) > 0 && strings.Contains(fields[0], "TZ=") {
		return c, newFieldError("/value", example, "the cron expression contains a time zone").
			Hintf("set the time zone separately")
	}
	if len(fields) != len(fieldRules) {
		e := newFieldError("/value", example, "a cron expression has five fields, but this one has %d", len(fields))
		if len(fields) > len(fieldRules) {
			e = e.Hintf("remove seconds and years")
		}
		return c, e
	}
	var sets [5]uint64
	var isFree [5]bool
	for i, f := range fieldRules {
		if sets[i], isFree[i], err = f.parse(fields[i]); err != nil {
			return c, err
		}
	}
	c = Schedule{minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4], anyDay: isFree[2],
		anyWeekday:       isFree[4],
		followsWallClock: strings.ContainsAny(fields[1], "*/-")}
	if c.anyWeekday && !c.hasValidDate() {
		return c, newFieldError("/value", "a day that one of the months has",
			"day of month: no month of %q has a day of %q",
			truncate(fields[3]), truncate(fields[2]))
	}
	return c, nil
}

// hasValidDate reports whether one of the months is long enough for one of the days.
func (c Schedule) hasValidDate() bool {
	for m := nextBit(c.month, 1); m > 0; m = nextBit(c.month, m+1) {
		if bits.TrailingZeros64(c.day) <= monthDays[m] {
			return true
		}
	}
	return false
}

// parse parses one field. It reports whether the field restricts nothing: a star, ? or */1 does not, but 1-31 does.
func (f field) parse(s string) (set uint64, isFree bool, err error) {
	for part := range strings.SplitSeq(s, ",") {
		span, step, err := f.cutStep(part)
		if err != nil {
			return 0, false, err
		}
		low, high := f.low, f.high
		first, last, isRange := strings.Cut(span, "-")
		switch {
		case span == "*", span == "?" && f.allowsQuestionMark() && step == 0:
			isFree = isFree || step <= 1
		case isRange:
			if low, high, err = f.parseRange(first, last); err != nil {
				return 0, false, err
			}
		default:
			if low, err = f.parseNumber(span); err != nil {
				return 0, false, err
			}
			if step == 0 { // a number with a step means the range from the number to the maximum
				high = low
			}
		}
		for v := low; v <= high; v += max(step, 1) {
			set |= 1 << v
		}
		if low > high { // 7/2 means Sunday only
			set |= 1 << low
		}
	}
	if sunday := uint64(1 << 7); f.isWeekday() && set&sunday != 0 {
		set = set&^sunday | 1
	}
	return set, isFree, nil
}

// cutStep splits the step off a part. The step is 0 if there is none. A step may be as large as the number of values
// (*/60 in the minutes is hourly). A larger one is probably a mistake and is refused.
func (f field) cutStep(part string) (span string, step int, err error) {
	span, after, has := strings.Cut(part, "/")
	if !has {
		return span, 0, nil
	}
	step, ok := parseDigits(after)
	if size := f.high - f.low + 1; !ok || step < 1 || step > size {
		return "", 0, f.newError("step %q of %q is not a number from 1 to %d", truncate(after), truncate(part), size)
	}
	return span, step, nil
}

// parseRange parses a-b. It refuses ranges that run backward, as every crontab does.
func (f field) parseRange(first, last string) (low, high int, err error) {
	if low, err = f.parseNumber(first); err != nil {
		return 0, 0, err
	}
	if high, err = f.parseNumber(last); err != nil {
		return 0, 0, err
	}
	if f.isWeekday() && high == 0 && low > 0 { // sat-sun
		high = 7
	}
	if low > high {
		return 0, 0, f.newError("the range %s-%s runs backward", truncate(first), truncate(last)).
			Hintf("to wrap around, write %d-%d,%d-%d", low, f.high, f.low, high)
	}
	return low, high, nil
}

func (f field) parseNumber(s string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(s, name) {
			return f.low + i, nil
		}
	}
	high := f.high
	if f.isWeekday() {
		high = 7
	}
	n, ok := parseDigits(s)
	switch {
	case s == "":
		return 0, f.newError("a value is missing")
	case !ok:
		return 0, f.newError("%q is not a valid value", truncate(s))
	case n < f.low || n > high:
		return 0, f.newError("%d is not from %d to %d", n, f.low, high)
	}
	return n, nil
}

func (f field) isWeekday() bool { return f.low == 0 && f.high == 6 }

// allowsQuestionMark reports whether the field accepts the ? of Quartz, which means the same as a star.
func (f field) allowsQuestionMark() bool { return f.isWeekday() || f.high == 31 }

func (f field) newError(format string, args ...any) *reeve.Error {
	return newFieldError("/value", f.name+": "+f.expected, "%s: %s", f.name, fmt.Sprintf(format, args...))
}

// parseDigits parses a number that consists of digits only.
func parseDigits(s string) (int, bool) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Next returns the first firing strictly after an instant. It returns false if there is none.
//
// Wall times are represented as the Unix seconds that they would have in UTC, so that calendar computations ignore
// zones.
func (c Schedule) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	if c.followsWallClock {
		return c.nextByWallClock(after, zone)
	}
	// FirstAt is monotonic, so all wall times up to that of after are in the past. In the second pass of a repeated
	// hour, some later wall times have occurred already, in the first pass. The loop skips them.
	for wall := after.Unix() + getOffset(after, zone); ; {
		var ok bool
		if wall, ok = c.nextWall(wall); !ok {
			return time.Time{}, false
		}
		if t := FirstAt(wall, zone); t.After(after) {
			return t, true
		}
	}
}

// nextByWallClock returns the first instant after another at which the wall clock shows a matching time. It searches
// one period of constant offset after the other.
func (c Schedule) nextByWallClock(after time.Time, zone *time.Location) (time.Time, bool) {
	at := after.In(zone)
	off := getOffset(at, zone)
	wall := after.Unix() + off
	for limit := at.Year() + horizonYears; at.Year() <= limit; {
		next, ok := c.nextWall(wall)
		if !ok {
			break
		}
		end := findOffsetEnd(at)
		if t := next - off; end.IsZero() || t < end.Unix() {
			return time.Unix(t, 0).UTC(), true
		}
		at, off = end, getOffset(end, zone)
		wall = end.Unix() + off - 1 // the first instant of the new period counts
	}
	return time.Time{}, false
}

// nextWall returns the first matching wall time after another. It searches field by field, from the month down.
func (c Schedule) nextWall(after int64) (int64, bool) {
	t := time.Unix(after, 0).UTC()
	t = t.Add(time.Duration(60-t.Second()) * time.Second)
	year, mon, day := t.Date()
	month, hour, minute := int(mon), t.Hour(), t.Minute()
	for limit := year + horizonYears; year <= limit; {
		m := nextBit(c.month, month)
		if m < 0 {
			year, month, day, hour, minute = year+1, 1, 1, 0, 0
			continue
		}
		if m > month {
			month, day, hour, minute = m, 1, 0, 0
		}
		d := c.nextDay(year, month, day)
		if d < 0 {
			month, day, hour, minute = month+1, 1, 0, 0
			continue
		}
		if d > day {
			day, hour, minute = d, 0, 0
		}
		h := nextBit(c.hour, hour)
		if h < 0 {
			day, hour, minute = day+1, 0, 0
			continue
		}
		if h > hour {
			hour, minute = h, 0
		}
		if n := nextBit(c.minute, minute); n >= 0 {
			return time.Date(year, time.Month(month), day, hour, n, 0, 0, time.UTC).Unix(), true
		}
		hour, minute = hour+1, 0
	}
	return 0, false
}

// nextDay returns the first matching day of a month from day on, or -1.
func (c Schedule) nextDay(year, month, day int) int {
	if day > 31 {
		return -1
	}
	t := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	length := monthDays[month]
	if month == 2 && t.AddDate(0, 0, 28).Month() != time.February {
		length = 28
	}
	for weekday := (int(t.Weekday()) + day - 1) % 7; day <= length; day, weekday = day+1, (weekday+1)%7 {
		if c.matchesDay(day, weekday) {
			return day
		}
	}
	return -1
}

func (c Schedule) matchesDay(day, weekday int) bool {
	d, w := c.day&(1<<day) != 0, c.weekday&(1<<weekday) != 0
	if c.anyDay || c.anyWeekday {
		return d && w
	}
	return d || w
}

// MinGap returns the smallest time between two firings, over all dates of the calendar and all changes of the zone's
// offset from 2026 to 2066. (Up to 2037, tzdata lists the changes. The years after that cover each weekday of each kind
// of year under the last rule.)
func (c Schedule) MinGap(zone *time.Location) time.Duration {
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2066, 1, 1, 0, 0, 0, 0, time.UTC)
	times := c.listTimesOfDay()
	days := c.minDaysBetween()
	if len(times) == 1 && days > 1 { // rare enough to check each firing
		return c.minGapBetween(from, to, zone)
	}
	gap := days*24*60 - times[len(times)-1] + times[0]
	for i := 1; i < len(times); i++ {
		gap = min(gap, times[i]-times[i-1])
	}
	smallest := time.Duration(gap) * time.Minute
	for end := findOffsetEnd(from.In(zone)); !end.IsZero() && end.Before(to); end = findOffsetEnd(end) {
		if getOffset(end, zone) == getOffset(end.Add(-time.Second), zone) {
			continue
		}
		if smallest == time.Minute { // no smaller gap is possible
			break
		}
		next := func(t time.Time) (time.Time, bool) { return c.Next(t, zone) }
		last, ok := Latest(next, end.AddDate(-horizonYears, 0, 0), end.Add(-time.Second))
		for range 2 { // the gap across the change, and the one after it
			if !ok {
				break
			}
			var t time.Time
			if t, ok = next(last); ok {
				smallest, last = min(smallest, t.Sub(last)), t
			}
		}
	}
	return smallest
}

func (c Schedule) minGapBetween(from, to time.Time, zone *time.Location) time.Duration {
	smallest := to.Sub(from)
	last, ok := c.Next(from, zone)
	for ok && last.Before(to) {
		var t time.Time
		if t, ok = c.Next(last, zone); ok {
			smallest, last = min(smallest, t.Sub(last)), t
		}
	}
	return smallest
}

// listTimesOfDay returns the matching minutes of a day.
func (c Schedule) listTimesOfDay() (out []int) {
	for h := nextBit(c.hour, 0); h >= 0; h = nextBit(c.hour, h+1) {
		for m := nextBit(c.minute, 0); m >= 0; m = nextBit(c.minute, m+1) {
			out = append(out, h*60+m)
		}
	}
	return out
}

// minDaysBetween returns the smallest number of days between two matching dates. It searches the 400 years after which
// the calendar repeats.
func (c Schedule) minDaysBetween() int {
	smallest, last := 1<<30, -1
	for year := 2000; year <= 2408 && smallest > 1; year++ { // 8 more years, until the next 29 February
		for month := 1; month <= 12; month++ {
			if c.month&(1<<month) == 0 {
				continue
			}
			n := int(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Unix()/86400) - 1
			for d := c.nextDay(year, month, 1); d > 0; d = c.nextDay(year, month, d+1) {
				if last >= 0 {
					smallest = min(smallest, n+d-last)
				}
				last = n + d
			}
		}
	}
	return smallest
}

// nextBit returns the position of the first bit of a set at or after from, or -1.
func nextBit(set uint64, from int) int {
	if set = set >> from << from; set == 0 {
		return -1
	}
	return bits.TrailingZeros64(set)
}

// getOffset returns the offset of a zone from UTC in seconds.
func getOffset(t time.Time, zone *time.Location) int64 {
	_, off := t.In(zone).Zone()
	return int64(off)
}

// findOffsetEnd returns an instant after at up to which the offset of its zone stays the same. Zero means forever.
// After the last change that the zone file lists, Go's ZoneBounds may return an end that is too early, at the turn of a
// year. On 31 December of a leap year, that end may even be before at. Then findOffsetEnd returns the next full hour.
func findOffsetEnd(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		return at.Truncate(time.Hour).Add(time.Hour)
	}
	return end
}

// FirstAt returns the first instant at which the wall clock of a zone shows the given time or a later one. For a
// repeated time that is its first occurrence, and for a skipped time the end of the gap.
func FirstAt(wall int64, zone *time.Location) time.Time {
	// No offset was ever more than a day, so 26 hours earlier the wall clock shows an earlier time.
	for at := time.Unix(wall-26*60*60, 0).In(zone); ; {
		off := getOffset(at, zone)
		if at.Unix()+off >= wall {
			return at.UTC()
		}
		end := findOffsetEnd(at)
		if t := wall - off; end.IsZero() || t < end.Unix() {
			return time.Unix(t, 0).UTC()
		}
		at = end
	}
}

// Latest returns the last firing after floor and up to now. The function next returns the first firing after an
// instant. Latest searches backward in steps that double until there is a firing, and then by bisection.
func Latest(next func(time.Time) (time.Time, bool), floor, now time.Time) (time.Time, bool) {
	hi := now
	for stride := time.Minute; ; stride *= 2 {
		x := now.Add(-stride)
		if !x.After(floor) || stride > 1<<61 {
			x = floor
		}
		lo, ok := next(x)
		if ok && !lo.After(now) {
			for hi.Sub(lo) >= time.Second {
				mid := lo.Add(hi.Sub(lo) / 2)
				if t, ok := next(mid); ok && !t.After(now) {
					lo = t
				} else {
					hi = mid
				}
			}
			return lo, true
		}
		if x.Equal(floor) {
			return time.Time{}, false
		}
		hi = x
	}
}

func truncate(s string) string { return reeve.Truncate(s, 60) }

func newFieldError(path, expected, format string, args ...any) *reeve.Error {
	m := fmt.Sprintf(format, args...)
	return &reeve.Error{Code: reeve.Validation, Message: m,
		Fields: []reeve.Field{{Path: path, Message: m, Expected: expected}}}
}
