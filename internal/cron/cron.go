// Package cron parses cron expressions and finds their times, in any time zone and through its clock changes.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// Schedule is a parsed expression: one bit for each value that a field allows.
type Schedule struct {
	minute, hour, day, month, weekday uint64

	// anyDay and anyWeekday say that the field restricts nothing. When both restrict, a date that either allows will
	// do.
	anyDay, anyWeekday bool

	// followsWallClock says that the hour field has a star, a step or a range: such an expression means "every so often" and
	// follows the clock on the wall through gaps and repeats. One of single hours names times of day, each of which
	// happens once a day.
	followsWallClock bool
}

// field says what one of the five fields may hold.
type field struct {
	name      string
	low, high int      // the values that a star stands for
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

// horizonYears bounds the search for a firing, in years. The rarest date there is, 29 February, is at most 8 years away.
const horizonYears = 40

// Parse reads an expression of five fields, or a macro such as @daily.
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
			return c, newFieldError("/value", example, "@every is not a cron expression").Hintf("use an interval instead")
		case len(fields) > 1 || macros[name] == "":
			return c, newFieldError("/value", "@yearly, @monthly, @weekly, @daily or @hourly, or "+example,
				"there is no cron macro %q", truncate(s))
		}
		fields = strings.Fields(macros[name])
	}
	if len(fields) > 0 && strings.Contains(fields[0], "TZ=") {
		return c, newFieldError("/value", example, "the cron expression names a zone").
			Hintf("give the zone apart from the expression")
	}
	if len(fields) != len(fieldRules) {
		e := newFieldError("/value", example, "a cron expression has five fields, and this has %d", len(fields))
		if len(fields) > len(fieldRules) {
			e = e.Hintf("leave out seconds and years")
		}
		return c, e
	}
	var sets [5]uint64
	var free [5]bool
	for i, f := range fieldRules {
		if sets[i], free[i], err = f.parse(fields[i]); err != nil {
			return c, err
		}
	}
	c = Schedule{minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4], anyDay: free[2],
		anyWeekday: free[4],
		followsWallClock:    strings.ContainsAny(fields[1], "*/-")}
	if c.anyWeekday && !c.hasValidDate() {
		return c, newFieldError("/value", "a day that one of the months has", "day of month: no month of %q has a day of %q",
			truncate(fields[3]), truncate(fields[2]))
	}
	return c, nil
}

// hasValidDate tells whether any of the months is long enough for any of the days.
func (c Schedule) hasValidDate() bool {
	for m := nextBit(c.month, 1); m > 0; m = nextBit(c.month, m+1) {
		if bits.TrailingZeros64(c.day) <= monthDays[m] {
			return true
		}
	}
	return false
}

// parse reads one field. Free means that it restricts nothing, as written: a star (or ?, or */1) does not, 1-31 does.
func (f field) parse(s string) (set uint64, free bool, err error) {
	for part := range strings.SplitSeq(s, ",") {
		span, step, err := f.cutStep(part)
		if err != nil {
			return 0, false, err
		}
		low, high := f.low, f.high
		first, last, isRange := strings.Cut(span, "-")
		switch {
		case span == "*", span == "?" && f.allowsQuestionMark() && step == 0:
			free = free || step <= 1
		case isRange:
			if low, high, err = f.parseRange(first, last); err != nil {
				return 0, false, err
			}
		default:
			if low, err = f.parseNumber(span); err != nil {
				return 0, false, err
			}
			if step == 0 { // with a step, a number means "from here to the end"
				high = low
			}
		}
		for v := low; v <= high; v += max(step, 1) {
			set |= 1 << v
		}
		if low > high { // 7/2: Sunday, and the week is over
			set |= 1 << low
		}
	}
	if sunday := uint64(1 << 7); f.isWeekday() && set&sunday != 0 {
		set = set&^sunday | 1
	}
	return set, free, nil
}

// cutStep takes the step off a part; 0 means that there is none. A step as large as the field has values is harmless
// (*/60 in the minutes is hourly); a larger one never means what its writer hoped, so it is refused.
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

// parseRange reads a-b. Backward ranges are refused, as in every crontab: 17-9 is more often a slip than a night shift.
func (f field) parseRange(first, last string) (low, high int, err error) {
	if low, err = f.parseNumber(first); err != nil {
		return 0, 0, err
	}
	if high, err = f.parseNumber(last); err != nil {
		return 0, 0, err
	}
	if f.isWeekday() && high == 0 && low > 0 { // sat-sun: a week that ends on Sunday
		high = 7
	}
	if low > high {
		return 0, 0, f.newError("the range %s-%s runs backward", truncate(first), truncate(last)).
			Hintf("to go round the end, write %d-%d,%d-%d", low, f.high, f.low, high)
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
		return 0, f.newError("%q is not understood", truncate(s))
	case n < f.low || n > high:
		return 0, f.newError("%d is not from %d to %d", n, f.low, high)
	}
	return n, nil
}

func (f field) isWeekday() bool { return f.low == 0 && f.high == 6 }

// allowsQuestionMark tells whether Quartz's ? is allowed here; it says the same as a star.
func (f field) allowsQuestionMark() bool { return f.isWeekday() || f.high == 31 }

func (f field) newError(format string, args ...any) *reeve.Error {
	return newFieldError("/value", f.name+": "+f.expected, "%s: %s", f.name, fmt.Sprintf(format, args...))
}

// parseDigits reads a number of plain digits: no sign, no space.
func parseDigits(s string) (int, bool) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Next gives the first firing strictly after an instant.
//
// A wall time is written as the Unix seconds that it would be in UTC, so that the calendar knows nothing of zones.
func (c Schedule) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	if c.followsWallClock {
		return c.nextElapsed(after, zone)
	}
	// firstAt never goes back as the wall time goes on, so what comes at or before after's own wall time is in the
	// past. In the second pass of a repeated hour some more has happened already, in the first: the loop walks over it.
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

// nextElapsed gives the first instant after an instant at which a clock on the wall shows a time of the expression. It
// looks through one stretch of unchanging offset after the other.
func (c Schedule) nextElapsed(after time.Time, zone *time.Location) (time.Time, bool) {
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
		wall = end.Unix() + off - 1 // the first instant of the new stretch counts
	}
	return time.Time{}, false
}

// nextWall gives the first wall time after another that matches, field by field from the month down.
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

// nextDay gives the first matching day of a month from day on, or -1.
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

// MinGap gives the smallest time between two firings: over every date of the calendar, and around every change of the
// zone's offset from 2026 to 2066 (what tzdata spells out, to 2037, and then each weekday of each kind of year under
// the last rule).
func (c Schedule) MinGap(zone *time.Location) time.Duration {
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2066, 1, 1, 0, 0, 0, 0, time.UTC)
	times := c.listTimesOfDay()
	days := c.minDaysBetween()
	if len(times) == 1 && days > 1 { // rare enough to look at each
		return c.minGapBetween(from, to, zone)
	}
	gap := days*24*60 - times[len(times)-1] + times[0]
	for i := 1; i < len(times); i++ {
		gap = min(gap, times[i]-times[i-1])
	}
	least := time.Duration(gap) * time.Minute
	for end := findOffsetEnd(from.In(zone)); !end.IsZero() && end.Before(to); end = findOffsetEnd(end) {
		if getOffset(end, zone) == getOffset(end.Add(-time.Second), zone) {
			continue
		}
		if least == time.Minute { // as small as can be
			break
		}
		next := func(t time.Time) (time.Time, bool) { return c.Next(t, zone) }
		last, ok := Latest(next, end.AddDate(-horizonYears, 0, 0), end.Add(-time.Second))
		for range 2 { // over the change, and from a firing that the change put off to the next
			if !ok {
				break
			}
			var t time.Time
			if t, ok = next(last); ok {
				least, last = min(least, t.Sub(last)), t
			}
		}
	}
	return least
}

func (c Schedule) minGapBetween(from, to time.Time, zone *time.Location) time.Duration {
	least := to.Sub(from)
	last, ok := c.Next(from, zone)
	for ok && last.Before(to) {
		var t time.Time
		if t, ok = c.Next(last, zone); ok {
			least, last = min(least, t.Sub(last)), t
		}
	}
	return least
}

// listTimesOfDay lists the minutes of the day at which it fires.
func (c Schedule) listTimesOfDay() (out []int) {
	for h := nextBit(c.hour, 0); h >= 0; h = nextBit(c.hour, h+1) {
		for m := nextBit(c.minute, 0); m >= 0; m = nextBit(c.minute, m+1) {
			out = append(out, h*60+m)
		}
	}
	return out
}

// minDaysBetween gives the smallest number of days between two dates of the expression, over the 400 years after which dates
// repeat.
func (c Schedule) minDaysBetween() int {
	least, last := 1<<30, -1
	for year := 2000; year <= 2408 && least > 1; year++ { // and 8 years for 29 February to come round
		for month := 1; month <= 12; month++ {
			if c.month&(1<<month) == 0 {
				continue
			}
			n := int(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Unix()/86400) - 1
			for d := c.nextDay(year, month, 1); d > 0; d = c.nextDay(year, month, d+1) {
				if last >= 0 {
					least = min(least, n+d-last)
				}
				last = n + d
			}
		}
	}
	return least
}

// nextBit gives the first bit of a set from a place on, or -1.
func nextBit(set uint64, from int) int {
	if set = set >> from << from; set == 0 {
		return -1
	}
	return bits.TrailingZeros64(set)
}

// getOffset gives how far a zone's wall clock is ahead of UTC, in seconds.
func getOffset(t time.Time, zone *time.Location) int64 {
	_, off := t.In(zone).Zone()
	return int64(off)
}

// findOffsetEnd gives an instant after at up to which its zone's offset stays the same; zero means for ever. Go's
// ZoneBounds, past the changes that the zone's file lists, may end a stretch early, at the turn of a year, and on 31
// December of a leap year even before at itself: then an hour will do.
func findOffsetEnd(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		return at.Truncate(time.Hour).Add(time.Hour)
	}
	return end
}

// FirstAt gives the first instant at which a zone's wall clock shows a time or a later one: the time itself, the first
// of two when it is repeated, and the end of the gap when the clock jumps over it.
func FirstAt(wall int64, zone *time.Location) time.Time {
	// No zone was ever a day from UTC, so a day and a bit before, the clock shows less.
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

// Latest gives the last firing after floor and up to now, where next gives the first after an instant. It looks back in
// strides that double until there is one, and then halves what is left.
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
