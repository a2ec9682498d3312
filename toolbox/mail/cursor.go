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

// The orders that a search can have.
const (
	bestFirst   = "b"
	newestFirst = "n"
	byDate      = "d" // read by date, as there are too many to sort
)

// cursor names the place where a page ended, and the search that it is a page of. It opens nothing: whoever makes one
// up is only given other pages of what they may search anyway. It is written in small hexadecimal digits, as nothing is
// that must be kept secret.
func (in searchArgs) cursor(p store.MailCursor) string {
	order := bestFirst
	switch {
	case p.Walk:
		order = byDate
	case p.Newest:
		order = newestFirst
	}
	return fmt.Sprintf("%s.%s.%x.%x", order, in.search(), math.Float64bits(p.Score), p.ID)
}

// place is where to go on; nil means at the beginning.
func (in searchArgs) place() (*store.MailCursor, error) {
	if in.Cursor == "" {
		return nil, nil
	}
	wrong := reeve.InvalidField("/cursor", "is not one that a search gave",
		"next_cursor of the answer before; leave it out to begin at the first page")
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
	p := store.MailCursor{Newest: parts[0] != bestFirst, Walk: parts[0] == byDate, Score: math.Float64frombits(bits),
		ID: id}
	// also what is not a number
	if !strings.Contains(bestFirst+newestFirst+byDate, parts[0]) || parts[0] == "" || id <= 0 ||
		!(math.Abs(p.Score) < 1<<53) {
		return nil, wrong
	}
	if parts[1] != in.search() {
		return nil, reeve.InvalidField("/cursor", "is of another search",
			"the same query and filters as before, or no cursor")
	}
	return &p, nil
}

// search names what is asked for. How many are wanted at once makes no difference.
func (in searchArgs) search() string {
	in.Limit, in.Cursor = 0, ""
	b, err := json.Marshal(in)
	if err != nil {
		panic(err) // strings only
	}
	return reeve.Hash(b)[:16]
}
