package httpapi

import (
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Page is in the input of lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"256" doc:"next_cursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// newInvalidCursor refuses a cursor that no page can have ended with.
func newInvalidCursor() error {
	return &reeve.Error{Code: reeve.Validation, Message: "the cursor is not one this server gave",
		Hint: "leave it out to begin at the first page",
		Fields: []reeve.Field{{Path: "query/cursor", Message: "cannot be read",
			Expected: "next_cursor of the page before"}}}
}

// checkCursor refuses a cursor that is not an id.
func checkCursor(c string) error {
	if c == "" || reeve.IsID(c) {
		return nil
	}
	return newInvalidCursor()
}

// checkMessageCursor refuses a cursor that is not a place in a log.
func checkMessageCursor(c string) error {
	if c == "" || store.IsMessageCursor(c) {
		return nil
	}
	return newInvalidCursor()
}

// nameCursor begins a cursor of a list in the order of names: any word is a name, and not every word a cursor.
const nameCursor = "name."

// parseNameCursor gives the name that the page before ended with.
func parseNameCursor(c string) (string, error) {
	name, ok := strings.CutPrefix(c, nameCursor)
	if c != "" && (!ok || !agentNamePattern.MatchString(name)) {
		return "", newInvalidCursor()
	}
	return name, nil
}

// positionCursor begins a cursor of a list in the order of places: the number behind it is the last one that was shown.
const positionCursor = "place."

// parsePositionCursor gives the place that the page before ended with, in a list whose places have so many bits.
func parsePositionCursor(c string, bits int) (int64, error) {
	if c == "" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(c, positionCursor)
	n, err := strconv.ParseUint(text, 10, bits)
	if !ok || err != nil {
		return 0, newInvalidCursor()
	}
	return int64(n), nil
}

// formatTimeCursor is the cursor behind a row.
func formatTimeCursor(ms int64, id string) string { return strconv.FormatInt(ms, 10) + "." + id }

// parseTimeCursor reads a cursor of a list that is ordered by time.
func parseTimeCursor(s string) (c store.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	at, id, _ := strings.Cut(s, ".")
	if c.At, err = strconv.ParseInt(at, 10, 64); err != nil || !reeve.IsID(id) {
		return c, newInvalidCursor()
	}
	c.ID = id
	return c, nil
}
