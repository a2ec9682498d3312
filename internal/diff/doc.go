// Package diff computes the line difference of two texts, in hunks as in a unified diff.
//
// [Compare] returns one [Edit] per line, [Hunks] groups edits with three lines of context, and [Hunk.Header] formats
// the line that precedes a hunk. Callers write the lines themselves, because they may have to remove secrets from them.
//
// The difference is always exact. It is the shortest one, unless the texts differ in more than a few hundred lines.
// Then everything between their first and last difference is one deletion followed by one insertion.
package diff
