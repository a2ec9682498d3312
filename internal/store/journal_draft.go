package store

import (
	"fmt"
	"slices"
	"strings"

	"reeve"
)

// Draft is a change that was computed but not made. It has a description of the change and the versions of the rows
// that it is based on.
type Draft struct {
	lines []string // the description
	bases []string // the ids and stamps of the rows
}

func (d *Draft) addLine(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// addBase records a row that the change is based on.
func (d *Draft) addBase(r reeve.Record) {
	d.bases = append(d.bases, fmt.Sprintf("%s %s %d", r.ID, r.Stamp.Node, r.Stamp.Counter))
}

// Text describes the change for people and models.
func (d *Draft) Text() string {
	if len(d.lines) == 0 {
		return "Nothing would change."
	}
	return strings.Join(d.lines, "\n")
}

// Base returns a hash of the versions of all rows that the change is based on.
func (d *Draft) Base() string {
	return reeve.Hash([]byte(strings.Join(slices.Sorted(slices.Values(d.bases)), "\n")))
}

// CheckBase returns Stale if base is not empty and differs from the base of this draft.
func (d *Draft) CheckBase(base string) error {
	if base == "" || base == d.Base() {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "data that the change is based on has changed since").
		Hintf("preview the change again, then apply the new preview")
}
