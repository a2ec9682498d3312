package mailbox

import (
	"net/mail"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// layouts are forms of dates besides those of mail.
var layouts = []string{time.RFC3339, time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00",
	"2006-01-02T15:04:05", "2006-01-02", time.ANSIC, "Mon Jan _2 15:04:05 -0700 2006", time.UnixDate,
	"Mon, 2 Jan 2006 15:04:05", "2 Jan 2006 15:04:05 MST", "01/02/2006 15:04:05", "1/2/2006 15:04"}

// date reads when a mail was sent, if need be from where it was received.
func (l *letter) date(s, received string) *time.Time {
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
	return l.judgeDate(t)
}

// judgeDate notes a date that is unlikely, and leaves out one that cannot be.
func (l *letter) judgeDate(t time.Time) *time.Time {
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

// zones are what letters mean in dates of mail (RFC 5322, 4.3). Package mail takes every name of a zone for UTC.
var zones = map[string]string{"UT": "+0000", "GMT": "+0000", "UTC": "+0000", "EST": "-0500", "EDT": "-0400",
	"CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700"}

// offsets writes names of zones in a date as numbers. Letters of the military were used both ways round, and so mean
// nothing but UTC.
func offsets(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		w = strings.ToUpper(w)
		if n, ok := zones[w]; ok {
			words[i] = n
		} else if len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' && w[0] != 'J' && i > 0 &&
			strings.Contains(words[i-1], ":") {
			words[i] = "+0000"
		}
	}
	return strings.Join(words, " ")
}

func parseDate(s string) (time.Time, bool) {
	// a comment: the zone's name, mostly
	if at := strings.IndexByte(s, '('); at > 0 && !strings.ContainsAny(s[at:], "0123456789") {
		s = s[:at]
	}
	if s = offsets(s); s == "" {
		return time.Time{}, false
	}
	// seconds or milliseconds since 1970; others are no moments that mail was sent at
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
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
