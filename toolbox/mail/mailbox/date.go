package mailbox

import (
	"net/mail"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// dateLayouts are accepted date formats besides those of RFC 5322.
var dateLayouts = []string{time.RFC3339, time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00",
	"2006-01-02T15:04:05", "2006-01-02", time.ANSIC, "Mon Jan _2 15:04:05 -0700 2006", time.UnixDate,
	"Mon, 2 Jan 2006 15:04:05", "2 Jan 2006 15:04:05 MST", "01/02/2006 15:04:05", "1/2/2006 15:04"}

// parseSentDate returns when a mail was sent, or else when it was received.
func (l *messageParser) parseSentDate(s, received string) *time.Time {
	t, ok := parseDate(s)
	if !ok {
		if _, after, found := strings.Cut(received, ";"); found {
			t, ok = parseDate(after)
		}
		if s == "" {
			l.note("it has no date")
		} else {
			l.note("its date cannot be read")
		}
		if !ok {
			return nil
		}
	}
	if name, ahead := t.Zone(); ahead == 0 && name != "" && name != "UTC" {
		l.note("its time zone is not known, and was taken for UTC")
	}
	return l.checkDate(t)
}

// checkDate notes an implausible date and returns nil for an impossible one.
func (l *messageParser) checkDate(t time.Time) *time.Time {
	if y := t.Year(); y < 1 || y > 9999 {
		l.note("its date cannot be")
		return nil
	}
	switch {
	case t.Year() < 1980:
		l.note("its date is before there was mail: %d", t.Year())
	case t.After(reeve.Now().AddDate(0, 0, 2)):
		l.note("its date is in the future: %d", t.Year())
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// zoneOffsets are the offsets of zone names in mail dates (RFC 5322, 4.3). Package net/mail reads every zone name as
// UTC.
var zoneOffsets = map[string]string{"UT": "+0000", "GMT": "+0000", "UTC": "+0000", "EST": "-0500", "EDT": "-0400",
	"CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700"}

// replaceZoneNames replaces zone names in a date by offsets. Military letters were used with both signs, so they count
// as UTC.
func replaceZoneNames(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		w = strings.ToUpper(w)
		if n, ok := zoneOffsets[w]; ok {
			words[i] = n
		} else if len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' && w[0] != 'J' && i > 0 &&
			strings.Contains(words[i-1], ":") {
			words[i] = "+0000"
		}
	}
	return strings.Join(words, " ")
}

func parseDate(s string) (time.Time, bool) {
	// a comment, usually the name of the zone
	if at := strings.IndexByte(s, '('); at > 0 && !strings.ContainsAny(s[at:], "0123456789") {
		s = s[:at]
	}
	if s = replaceZoneNames(s); s == "" {
		return time.Time{}, false
	}
	// seconds or milliseconds since 1970; other lengths are implausible
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
		switch len(s) {
		case 9, 10:
			return time.Unix(n, 0), true
		case 12, 13:
			return time.UnixMilli(n), true
		}
	}
	if t, err := mail.ParseDate(s); err == nil {
		return t, true
	}
	if at := strings.IndexByte(s, '('); at > 0 {
		if t, err := mail.ParseDate(strings.TrimSpace(s[:at])); err == nil {
			return t, true
		}
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
