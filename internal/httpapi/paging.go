package httpapi

import (
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Page is embedded in the input of paged lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"256" doc:"next_cursor of the previous page; empty for the first page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most entries of a page"`
}

// newInvalidCursor returns the error for a cursor that this server did not issue.
func newInvalidCursor() error {
	return &reeve.Error{Code: reeve.Validation, Message: "the cursor is not valid",
		Hint: "use next_cursor of the previous page, or omit the cursor for the first page",
		Fields: []reeve.Field{{Path: "query/cursor", Message: "is not valid",
			Expected: "next_cursor of the previous page"}}}
}

// checkCursor returns an error unless the cursor is empty or an id.
func checkCursor(c string) error {
	if c == "" || reeve.IsID(c) {
		return nil
	}
	return newInvalidCursor()
}

// checkMessageCursor returns an error unless the cursor is empty or a position in a thread.
func checkMessageCursor(c string) error {
	if c == "" || store.IsMessageCursor(c) {
		return nil
	}
	return newInvalidCursor()
}

// nameCursor is the prefix of cursors of lists that are ordered by name. It keeps a plain name from being a cursor.
const nameCursor = "name."

// parseNameCursor returns the last name of the previous page.
func parseNameCursor(c string) (string, error) {
	name, ok := strings.CutPrefix(c, nameCursor)
	if c != "" && (!ok || !agentNamePattern.MatchString(name)) {
		return "", newInvalidCursor()
	}
	return name, nil
}

// positionCursor is the prefix of cursors of lists that are ordered by a number. The last number of the page follows.
const positionCursor = "place."

// parsePositionCursor returns the last number of the previous page. The number must fit into the given bits.
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

// formatTimeCursor returns the cursor after a row with the given time and id.
func formatTimeCursor(ms int64, id string) string { return strconv.FormatInt(ms, 10) + "." + id }

// parseTimeCursor parses a cursor of formatTimeCursor.
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
