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

// print writes a value: as one JSON document, or as people write it.
func (a *app) print(v any, people func(w io.Writer)) error {
	if !a.json {
		people(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// done says what a command without an answer of its own did.
func (a *app) done(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return a.print(struct {
		Done string `json:"done"`
	}{what}, func(w io.Writer) { fmt.Fprintln(w, plain(what)) })
}

// note tells a person something beside the answer.
func (a *app) note(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// more tells a person how to see the next page.
func (a *app) more(next string) {
	if next != "" {
		a.note("more: add --cursor %s", next)
	}
}

// table writes rows in columns, one line each: what is in a cell cannot look like another row.
func (a *app) table(w io.Writer, head string, rows [][]string) {
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

// rows makes a table's rows, one for each thing.
func rows[T any](things []T, row func(T) []string) [][]string {
	out := make([][]string, len(things))
	for i, v := range things {
		out[i] = row(v)
	}
	return out
}

// details writes names and values, one below the other, and leaves out what is empty.
func details(w io.Writer, pairs ...string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := plain(pairs[i+1]); v != "" {
			fmt.Fprintf(t, "%s:\t%s\n", pairs[i], strings.ReplaceAll(strings.TrimRight(v, "\n"), "\n", "\n\t"))
		}
	}
	_ = t.Flush()
}

// plain takes out what could make a terminal show something else than is there: what an agent wrote must not fool the
// person who approves it.
func plain(s string) string {
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

func oneLine(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(plain(s)), " ")
}

// cut shortens a cell of a table. Ids are never cut: people copy them.
func cut(s string, n int) string {
	s = oneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// when writes a time as people here read it.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

func whenSet(t *time.Time) string {
	if t == nil {
		return ""
	}
	return when(*t)
}

// pretty indents JSON for reading; nothing stays nothing, and what is no JSON stays as it is.
func pretty(b []byte) string {
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
