package reeve

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of the journal.
const (
	MaxTitle   = 500       // characters
	MaxText    = 100 << 10 // bytes
	MaxEntries = 1000      // in one call
	MaxScores  = 20        // of one rating
	MaxScore   = 100       // each
)

// CheckTitle returns s without surrounding white space, or an error about the field at path.
func CheckTitle(path, s string) (string, error) {
	s = strings.TrimSpace(s)
	switch n := utf8.RuneCountInString(s); {
	case n == 0:
		return "", InvalidField(path, "is empty", "1 to "+strconv.Itoa(MaxTitle)+" characters")
	case n > MaxTitle:
		return "", InvalidField(path, "is too long", "1 to "+strconv.Itoa(MaxTitle)+" characters")
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", InvalidField(path, "has line breaks or other control characters", "one line of text")
	}
	return s, nil
}

// CheckText returns an error about the field at path if s is too long or cannot be stored.
func CheckText(path, s string) error {
	if !IsStorableText(s) {
		return InvalidField(path, "has a NUL character or is not UTF-8", "text in UTF-8 without NUL")
	}
	if len(s) > MaxText {
		return InvalidField(path, "is too long", "at most "+strconv.Itoa(MaxText)+" bytes")
	}
	return nil
}

// ParseTimeWithOffset parses RFC 3339. The result keeps the UTC offset, which tells the local time.
func ParseTimeWithOffset(path, s string) (time.Time, error) {
	const expected = "RFC 3339 with an offset, such as 2026-02-17T16:00:00-05:00"
	t, err := ParseInstant(s)
	if err != nil {
		return time.Time{}, InvalidField(path, "is not a time", expected)
	}
	if t.Year() < 1970 || t.Year() > 9998 {
		return time.Time{}, InvalidField(path, "is out of range", expected+"; years are 1970 to 9998")
	}
	_, offset := t.Zone()
	return InOffset(t.UnixMilli(), int64(offset)), nil
}

// CheckDay returns an error about the field at path if s is not a date between 1970 and 9998.
func CheckDay(path, s string) error {
	t, err := time.Parse(time.DateOnly, s)
	switch {
	case err != nil:
		return InvalidField(path, "is not a day", "YYYY-MM-DD")
	case t.Year() < 1970 || t.Year() > 9998:
		return InvalidField(path, "is out of range", "YYYY-MM-DD; years are 1970 to 9998")
	}
	return nil
}

var (
	languagePattern  = regexp.MustCompile(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*$`)
	scoreNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
)

// Validate normalizes the title and checks the task's own fields. It does not check references.
func (t *Task) Validate() (err error) {
	if t.Title, err = CheckTitle("/title", t.Title); err != nil {
		return err
	}
	if err := CheckText("/description", t.Description); err != nil {
		return err
	}
	if !slices.Contains(TaskStatuses(), t.Status) {
		return InvalidField("/status", "is not a status",
			"open, groomed, in_progress, blocked, on_hold, done or rejected")
	}
	if !slices.Contains(Priorities(), t.Priority) {
		return InvalidField("/priority", "is not a priority", "urgent, high, medium or low")
	}
	if t.EstimateMinutes < 0 || t.EstimateMinutes > 600_000 {
		return InvalidField("/estimate_minutes", "is out of range", "0 to 600000")
	}
	if t.DueDate != "" {
		if err := CheckDay("/due_date", t.DueDate); err != nil {
			return err
		}
	}
	if t.Language != "" && (len(t.Language) > 35 || !languagePattern.MatchString(t.Language)) {
		return InvalidField("/language", "is not a language tag", "a tag such as en or pt-BR")
	}
	return nil
}

// Validate checks the rating's own fields. It does not check that the target exists.
func (r *Rating) Validate() error {
	if !slices.Contains(RatingTargets(), r.Target) {
		return InvalidField("/target_kind", "cannot be rated", "task, time_entry or plan_block")
	}
	if len(r.Scores) == 0 || len(r.Scores) > MaxScores {
		return InvalidField("/scores", "has "+strconv.Itoa(len(r.Scores))+" scores", "1 to "+strconv.Itoa(MaxScores))
	}
	for name, v := range r.Scores {
		if !scoreNamePattern.MatchString(name) {
			return InvalidField("/scores/"+name, "is not a valid score name", "lower-case letters, digits and _")
		}
		if v < 0 || v > MaxScore {
			return InvalidField("/scores/"+name, "is out of range", "0 to 100")
		}
	}
	return CheckText("/note", r.Note)
}

// CheckCount returns an error about the list at path if n is more than [MaxEntries].
func CheckCount(path string, n int) error {
	if n > MaxEntries {
		return InvalidField(path, "has "+strconv.Itoa(n)+" entries", "at most "+strconv.Itoa(MaxEntries))
	}
	return nil
}

// CheckDistinct returns an error about the list at path if it is too long or has an id twice.
func CheckDistinct(path string, ids []string) error {
	if err := CheckCount(path, len(ids)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, id := range ids {
		if seen[id] {
			return InvalidField(path+"/"+strconv.Itoa(i), "is named twice", "each id once")
		}
		seen[id] = true
	}
	return nil
}
