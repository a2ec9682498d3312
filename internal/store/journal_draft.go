package store

import (
	"fmt"
	"slices"
	"strings"

	"reeve"
)

// Draft is a change that was worked out and not made: what it would do, in words, and the rows it rests on.
type Draft struct {
	lines []string
	rests []string
}

func (d *Draft) say(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// rest notes a row that the change was worked out from.
func (d *Draft) rest(r reeve.Record) {
	d.rests = append(d.rests, fmt.Sprintf("%s %s %d", r.ID, r.Stamp.Node, r.Stamp.Counter))
}

// Text says what would change, for people and models.
func (d *Draft) Text() string {
	if len(d.lines) == 0 {
		return "Nothing would change."
	}
	return strings.Join(d.lines, "\n")
}

// Base names the versions of all rows that the change rests on: if one of them changes, the base does.
func (d *Draft) Base() string {
	return reeve.Hash([]byte(strings.Join(slices.Sorted(slices.Values(d.rests)), "\n")))
}

// CheckBase refuses to make a change that is not the one a preview with this base showed.
func (d *Draft) CheckBase(base string) error {
	if base == "" || base == d.Base() {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "what the change was based on has changed since").
		Hintf("preview it again and apply that")
}
