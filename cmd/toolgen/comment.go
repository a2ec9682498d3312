package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// comment is what a doc comment says: to the model, and about each parameter.
type comment struct {
	text  string
	items []item
}

// item is a line of the form "- name: text" with the indented lines below it.
type item struct {
	pos  token.Pos
	name string
	text string
}

type line struct {
	pos  token.Pos
	text string
}

// readComment takes a doc comment apart. Lines of a paragraph are joined, since where they break is the editor's
// business; indented lines, which are lists and code, stay as they are.
func readComment(doc *ast.CommentGroup) comment {
	var (
		c    comment
		b    strings.Builder
		open bool // the last line was an item or belongs to one
		gap  = "" // what separates the next line of text from the last
	)
	for _, l := range docLines(doc) {
		trimmed := strings.TrimSpace(l.text)
		indented := strings.HasPrefix(l.text, " ") || strings.HasPrefix(l.text, "\t")
		name, text, ok := cutItem(trimmed)
		switch {
		case ok:
			c.items = append(c.items, item{l.pos, name, text})
			open = true
		case trimmed == "":
			gap, open = "\n\n", false
		case open && indented && !bullet(trimmed):
			last := &c.items[len(c.items)-1]
			last.text = strings.TrimSpace(last.text + " " + trimmed)
		case indented:
			if gap == " " {
				gap = "\n"
			}
			b.WriteString(gap + l.text)
			gap, open = "\n", false
		default:
			b.WriteString(gap + trimmed)
			gap, open = " ", false
		}
	}
	c.text = strings.TrimSpace(b.String())
	return c
}

// docLines gives the lines of a doc comment without comment markers, the one space after them, and directives.
func docLines(doc *ast.CommentGroup) []line {
	var lines []line
	if doc == nil {
		return nil
	}
	for _, c := range doc.List {
		if text, ok := strings.CutPrefix(c.Text, "//"); ok {
			if !isDirective(text) {
				lines = append(lines, line{c.Pos(), strings.TrimPrefix(text, " ")})
			}
			continue
		}
		pos := c.Pos()
		for part := range strings.Lines(c.Text) {
			text := strings.TrimRight(part, "\r\n")
			text = strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")
			lines = append(lines, line{pos, text})
			pos += token.Pos(len(part))
		}
	}
	return lines
}

// isDirective follows the rule of go/ast: a word, a colon and another word, with no space anywhere.
func isDirective(text string) bool {
	for _, old := range []string{"line ", "extern ", "export "} {
		if strings.HasPrefix(text, old) {
			return true
		}
	}
	plain := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	colon := strings.IndexByte(text, ':')
	if colon <= 0 || colon+1 >= len(text) {
		return false
	}
	for i := range colon + 2 {
		if i != colon && !plain(text[i]) {
			return false
		}
	}
	return true
}

func bullet(text string) bool {
	return strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "* ")
}

func cutItem(text string) (name, rest string, ok bool) {
	if !bullet(text) {
		return "", "", false
	}
	name, rest, ok = strings.Cut(strings.TrimSpace(text[2:]), ":")
	return name, strings.TrimSpace(rest), ok && token.IsIdentifier(name) &&
		(rest == "" || rest[0] == ' ' || rest[0] == '\t')
}
