package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// comment is a parsed doc comment: the description of the tool, and the descriptions of the parameters.
type comment struct {
	text  string
	items []item
}

// item is a line of the form "- name: text", joined with the indented lines below it.
type item struct {
	pos  token.Pos
	name string
	text string
}

type line struct {
	pos  token.Pos
	text string
}

// parseComment parses a doc comment. It joins the lines of a paragraph. It keeps indented lines, which are lists and
// code, unchanged.
func parseComment(doc *ast.CommentGroup) comment {
	var (
		c    comment
		b    strings.Builder
		open bool // the last line is part of an item
		gap  = "" // separator before the next line of text
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
		case open && indented && !isBullet(trimmed):
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

// docLines returns the lines of a doc comment, without directives, comment markers and the space after a marker.
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

// isDirective reports whether a comment is a directive, by the rule of go/ast: a word, a colon and another word,
// without spaces.
func isDirective(text string) bool {
	for _, old := range []string{"line ", "extern ", "export "} {
		if strings.HasPrefix(text, old) {
			return true
		}
	}
	isWordChar := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	colon := strings.IndexByte(text, ':')
	if colon <= 0 || colon+1 >= len(text) {
		return false
	}
	for i := range colon + 2 {
		if i != colon && !isWordChar(text[i]) {
			return false
		}
	}
	return true
}

func isBullet(text string) bool {
	return strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "* ")
}

// cutItem splits a line of the form "- name: text".
func cutItem(text string) (name, rest string, ok bool) {
	if !isBullet(text) {
		return "", "", false
	}
	name, rest, ok = strings.Cut(strings.TrimSpace(text[2:]), ":")
	return name, strings.TrimSpace(rest), ok && token.IsIdentifier(name) &&
		(rest == "" || rest[0] == ' ' || rest[0] == '\t')
}
