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

// badCursor refuses a cursor that no page can have ended with.
func badCursor() error {
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
	return badCursor()
}

// checkPlace refuses a cursor that is not a place in a log.
func checkPlace(c string) error {
	if c == "" || store.IsMessageCursor(c) {
		return nil
	}
	return badCursor()
}

// nameCursor begins a cursor of a list in the order of names: any word is a name, and not every word a cursor.
const nameCursor = "name."

// parseNameCursor gives the name that the page before ended with.
func parseNameCursor(c string) (string, error) {
	name, ok := strings.CutPrefix(c, nameCursor)
	if c != "" && (!ok || !agentName.MatchString(name)) {
		return "", badCursor()
	}
	return name, nil
}

// placeCursor begins a cursor of a list in the order of places: the number behind it is the last one that was shown.
const placeCursor = "place."

// parsePlaceCursor gives the place that the page before ended with, in a list whose places have so many bits.
func parsePlaceCursor(c string, bits int) (int64, error) {
	if c == "" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(c, placeCursor)
	n, err := strconv.ParseUint(text, 10, bits)
	if !ok || err != nil {
		return 0, badCursor()
	}
	return int64(n), nil
}

// pageEnd is the cursor behind a row.
func pageEnd(ms int64, id string) string { return strconv.FormatInt(ms, 10) + "." + id }

// parseCursor reads a cursor of a list that is ordered by time.
func parseCursor(s string) (c store.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	at, id, _ := strings.Cut(s, ".")
	if c.At, err = strconv.ParseInt(at, 10, 64); err != nil || !reeve.IsID(id) {
		return c, badCursor()
	}
	c.ID = id
	return c, nil
}
