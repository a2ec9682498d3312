package mail

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/store"
)

const (
	// The orders of a search.
	bestFirst   = "b"
	newestFirst = "n"
	byDate      = "d" // read by date, because there are too many to sort
)

// formatCursor returns a cursor that names the position after p and the search that it belongs to. A forged cursor is
// harmless: it only leads to other pages of the same search. The format is lower-case hexadecimal, which redaction does
// not mistake for a secret.
func (in searchArgs) formatCursor(p store.MailCursor) string {
	order := bestFirst
	switch {
	case p.ByDate:
		order = byDate
	case p.Newest:
		order = newestFirst
	}
	return fmt.Sprintf("%s.%s.%x.%x", order, in.searchHash(), math.Float64bits(p.Score), p.ID)
}

// parseCursor returns the position where the page begins, or nil for the first page.
func (in searchArgs) parseCursor() (*store.MailCursor, error) {
	if in.Cursor == "" {
		return nil, nil
	}
	wrong := reeve.InvalidField("/cursor", "is not a cursor of a search",
		"next_cursor of the previous page; leave it out for the first page")
	parts := strings.Split(in.Cursor, ".")
	if len(parts) != 4 {
		return nil, wrong
	}
	bits, err := strconv.ParseUint(parts[2], 16, 64)
	if err != nil {
		return nil, wrong
	}
	id, err := strconv.ParseInt(parts[3], 16, 64)
	if err != nil {
		return nil, wrong
	}
	p := store.MailCursor{Newest: parts[0] != bestFirst, ByDate: parts[0] == byDate, Score: math.Float64frombits(bits),
		ID: id}
	// the comparison also refuses NaN
	if !strings.Contains(bestFirst+newestFirst+byDate, parts[0]) || parts[0] == "" || id <= 0 ||
		!(math.Abs(p.Score) < 1<<53) {
		return nil, wrong
	}
	if parts[1] != in.searchHash() {
		return nil, reeve.InvalidField("/cursor", "belongs to another search",
			"the same query and filters as for the previous page, or no cursor")
	}
	return &p, nil
}

// searchHash identifies the search. Limit and cursor make no difference.
func (in searchArgs) searchHash() string {
	in.Limit, in.Cursor = 0, ""
	b, err := json.Marshal(in)
	if err != nil {
		panic(err) // strings only
	}
	return reeve.Hash(b)[:16]
}
