package mail

import (
	"encoding/base64"
	"encoding/json"
	"math"

	"reeve"
	"reeve/internal/store"
)

// bookmark is where a page ended, and of which search it is one.
type bookmark struct {
	Search string  `json:"s"`
	Order  string  `json:"o"`
	Score  float64 `json:"n"`
	ID     int64   `json:"i"`
}

// The orders that a search can have.
const (
	bestFirst   = "b"
	newestFirst = "n"
	byDate      = "d" // read by date, as there are too many to sort
)

// cursor names the place where a page ended. Whoever has it can only go on with the same search: it opens nothing.
func (in searchArgs) cursor(p store.MailPlace) string {
	m := bookmark{Search: in.search(), Order: bestFirst, Score: p.Score, ID: p.ID}
	switch {
	case p.Walk:
		m.Order = byDate
	case p.Newest:
		m.Order = newestFirst
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// place is where to go on; nil means at the beginning.
func (in searchArgs) place() (*store.MailPlace, error) {
	if in.Cursor == "" {
		return nil, nil
	}
	var m bookmark
	b, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	switch {
	case err != nil || m.ID <= 0 || m.Order != bestFirst && m.Order != newestFirst && m.Order != byDate || m.Order != bestFirst && math.Abs(m.Score) > 1<<53:
		return nil, reeve.Wrong("/cursor", "is not one that a search gave", "next_cursor of the answer before; leave it out to begin at the first page")
	case m.Search != in.search():
		return nil, reeve.Wrong("/cursor", "is of another search", "the same query and filters as before, or no cursor")
	}
	return &store.MailPlace{Newest: m.Order != bestFirst, Walk: m.Order == byDate, Score: m.Score, ID: m.ID}, nil
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
