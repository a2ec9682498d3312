package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// print writes v to standard output: as one JSON document with --json, else with render.
func (a *app) print(v any, render func(w io.Writer)) error {
	if !a.json {
		render(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printDone prints what a command did that has no other result.
func (a *app) printDone(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return a.print(struct {
		Done string `json:"done"`
	}{message}, func(w io.Writer) { fmt.Fprintln(w, sanitize(message)) })
}

// notef prints a line to standard error, unless --json is set.
func (a *app) notef(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// noteNextPage prints how to list the next page, if there is one.
func (a *app) noteNextPage(next string) {
	if next != "" {
		a.notef("next page: add --cursor %s", next)
	}
}

// printTable writes a table with one line per row. It removes line breaks from cells, so that the content of a cell
// cannot look like another row.
func (a *app) printTable(w io.Writer, head string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(strings.Fields(head), "\t"))
	for _, r := range rows {
		for i := range r {
			r[i] = oneLine(r[i])
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(r, "\t"), "\t "))
	}
	_ = t.Flush()
}

// rows returns a table row for each of things.
func rows[T any](things []T, row func(T) []string) [][]string {
	out := make([][]string, len(things))
	for i, v := range things {
		out[i] = row(v)
	}
	return out
}

// printDetails writes pairs of names and values, one per line. It omits pairs with an empty value.
func printDetails(w io.Writer, pairs ...string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := sanitize(pairs[i+1]); v != "" {
			fmt.Fprintf(t, "%s:\t%s\n", pairs[i], strings.ReplaceAll(strings.TrimRight(v, "\n"), "\n", "\n\t"))
		}
	}
	_ = t.Flush()
}

// sanitize replaces control and bidirectional formatting characters, so that text written by an agent cannot change
// what the terminal shows to the person who approves it.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// oneLine returns s sanitized and without line breaks, or "-" if s is empty.
func oneLine(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(sanitize(s)), " ")
}

// truncate returns s on one line, shortened to n characters. Do not use it for ids, which people copy.
func truncate(s string, n int) string {
	s = oneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// formatTime formats t in the local time zone, or as "" if t is zero.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// formatTimePtr is like formatTime; nil formats as "".
func formatTimePtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return formatTime(*t)
}

// indentJSON returns JSON indented. It returns "" for null and {}, and b unchanged if b is not JSON.
func indentJSON(b []byte) string {
	if s := string(b); s == "" || s == "null" || s == "{}" {
		return ""
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return string(b)
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(v) != nil {
		return string(b)
	}
	return strings.TrimSpace(out.String())
}
