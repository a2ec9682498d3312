package mailbox

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hiddenElements have no visible text. lineBreaking elements begin a new line.
var (
	hiddenElements = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Head: true, atom.Title: true,
		atom.Noscript: true, atom.Template: true}
	lineBreaking = map[atom.Atom]bool{atom.Br: true, atom.P: true, atom.Div: true, atom.Tr: true, atom.Li: true,
		atom.Ul: true, atom.Ol: true, atom.Table: true, atom.Blockquote: true, atom.Pre: true, atom.Hr: true,
		atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true, atom.Section: true,
		atom.Article: true, atom.Header: true, atom.Footer: true, atom.Dt: true, atom.Dd: true}
)

// htmlText returns the visible text of an HTML page.
func htmlText(page string) string {
	z := html.NewTokenizer(strings.NewReader(page))
	var b strings.Builder
	depth := map[atom.Atom]int{}
	shut := 0 // number of open hidden elements
	for {
		switch z.Next() {
		case html.ErrorToken:
			return collapseBlankLines(b.String())
		case html.TextToken:
			if shut == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if hiddenElements[a] {
				depth[a]++
				shut++
			}
			if a == atom.Body && shut > 0 { // the head was never closed
				depth, shut = map[atom.Atom]int{}, 0
			}
			if lineBreaking[a] {
				b.WriteByte('\n')
			} else if a == atom.Td || a == atom.Th {
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if hiddenElements[a] && depth[a] > 0 {
				depth[a]--
				shut--
			}
			if lineBreaking[a] && a != atom.Br {
				b.WriteByte('\n')
			}
		case html.SelfClosingTagToken:
			name, _ := z.TagName()
			if lineBreaking[atom.Lookup(name)] {
				b.WriteByte('\n')
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// collapseBlankLines leaves at most one empty line between lines.
func collapseBlankLines(s string) string {
	var out []string
	empty := true
	for line := range strings.Lines(s) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" && empty {
			continue
		}
		empty = line == ""
		out = append(out, line)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
