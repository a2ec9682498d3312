package mail

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"reeve"
	"reeve/internal/redact"
	"reeve/internal/store"
)

const (
	open, closed = '\x01', '\x02' // around what matched, until the text is safe
	mostSnippet  = 800            // bytes of one part of a snippet: a word may be as long as a mail
)

// marker finds what a query asks for in a text, the way the indexes do: words without case, accents and endings.
type marker struct {
	needles []needle
	inv     *reeve.Invocation // knows of secrets
}

// needle is a term, ready to be compared.
type needle struct {
	field  store.MailField
	words  []string // folded
	stems  []string
	prefix bool // the last may go on
	exact  bool // words match as they are written, not by their stems
}

func newMarker(inv *reeve.Invocation, q store.MailQuery) marker {
	m := marker{inv: inv}
	for _, any := range q.All {
		for _, t := range any {
			n := needle{field: t.Field, prefix: t.Prefix, exact: t.AsWritten()}
			for _, w := range t.Words {
				w = fold(w)
				n.words, n.stems = append(n.words, w), append(n.stems, stem(w))
			}
			m.needles = append(m.needles, n)
		}
	}
	return m
}

// part is a part of a mail that a snippet may show.
type part struct {
	name, text string
	field      store.MailField
	words      int // how many of it are shown
	rest       int // how many bytes at the end only tell what the others are
}

// snippet shows the subject and the text of a mail where they have most of what was looked for, between <mark> and
// </mark>; what else there is of it only if it is neither in one nor in the other. Secrets are taken out, whether or
// not they were looked for. The mail's own signs are written so that they are no markup: every <mark> is ours.
func (m marker) snippet(f store.MailMatch) string {
	parts := []part{{"Subject: ", f.Subject, store.SubjectField, 32, 0}, {"Body: ", f.Body, store.BodyField, 48, 0}}
	if f.More {
		parts[1].rest = reeve.RedactWindow
	}
	others := []part{{"From: ", f.From, store.SenderField, 24, 0}, {"To: ", strings.Join(f.Recipients, ", "),
		store.ReceiverField, 24, 0}, {"Attached: ", f.Attached, store.AttachedField, 24, 0}}
	for _, loosely := range []bool{false, true} { // the indexes may know an ending that we do not
		s, some := m.show(parts, loosely)
		for _, o := range others {
			if some || len(m.needles) == 0 {
				break
			}
			if also, found := m.show([]part{o}, loosely); found {
				s, some = s+" | "+also, true
			}
		}
		if some || loosely || len(m.needles) == 0 {
			return s
		}
	}
	return ""
}

// show writes parts, and tells whether something in them is marked.
func (m marker) show(parts []part, loosely bool) (s string, some bool) {
	var list []string
	for _, p := range parts {
		spots := cut(p.text[:len(p.text)-p.rest])
		marks := m.find(spots, p.field, loosely)
		some = some || len(marks) > 0
		list = append(list, p.name+safe(shorten(m.window(p, spots, marks))))
	}
	return strings.Join(list, " | "), some
}

// spot is a word of a text: where it is, and how it is compared.
type spot struct {
	from, to int
	word     string
}

// mark is a run of words that matched.
type mark struct{ first, last, needle int }

// cut finds the words of a text.
func cut(text string) (list []spot) {
	begin := -1
	for i, r := range text {
		in := r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') ||
			r >= utf8.RuneSelf && inWord(r)
		switch {
		case in && begin < 0:
			begin = i
		case !in && begin >= 0:
			list = append(list, spot{begin, i, fold(text[begin:i])})
			begin = -1
		}
	}
	if begin >= 0 {
		list = append(list, spot{begin, len(text), fold(text[begin:])})
	}
	return list
}

// inWord tells whether a letter belongs to a word. The indexes hold runs of these.
func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) }

// fold takes case and accents off a word.
func fold(w string) string {
	if ascii(w) {
		return strings.ToLower(w)
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(w)))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// find marks what matches, the longest of what begins at a word.
func (m marker) find(spots []spot, field store.MailField, loosely bool) (marks []mark) {
	for i := 0; i < len(spots); i++ {
		best := mark{first: i, last: i - 1}
		for k, n := range m.needles {
			if (n.field == store.AnyField || n.field == field) && i+len(n.words)-1 > best.last &&
				n.at(spots[i:], loosely) {
				best = mark{i, i + len(n.words) - 1, k}
			}
		}
		if best.last >= i {
			marks = append(marks, best)
			i = best.last
		}
	}
	return marks
}

// at tells whether the words begin with the needle's.
func (n needle) at(spots []spot, loosely bool) bool {
	if len(n.words) == 0 || len(spots) < len(n.words) {
		return false
	}
	for i := range n.words {
		if !n.is(i, spots[i].word, n.prefix && i == len(n.words)-1, loosely) {
			return false
		}
	}
	return true
}

func (n needle) is(i int, word string, prefix, loosely bool) bool {
	w, s := n.words[i], n.stems[i]
	if len(word) == 0 || word[0] != w[0] { // no ending begins a word
		return false
	}
	switch {
	case word == w, prefix && strings.HasPrefix(word, w):
		return true
	case n.exact:
		return false
	case loosely:
		least := max(3, min(len(w), len(word))*2/3)
		return len(w) >= least && len(word) >= least && w[:least] == word[:least]
	}
	return stem(word) == s
}

// window gives the part of a text that has most of what was looked for, with marks in it.
func (m marker) window(p part, spots []spot, marks []mark) string {
	end := len(p.text) - p.rest
	if len(spots) == 0 {
		return m.written(p.text, 0, min(end, mostSnippet+utf8.UTFMax), nil)
	}
	first := densest(marks, p.words)
	last := min(first+p.words, len(spots)) - 1
	from, to := spots[first].from, spots[last].to
	before, behind := "…", "…"
	if first == 0 {
		from, before = max(0, from-mostSnippet/4), "" // signs before the first word
		for from > 0 && from < len(p.text) && !utf8.RuneStart(p.text[from]) {
			from++
		}
	}
	if last == len(spots)-1 {
		if p.rest == 0 {
			behind = ""
		}
		if to = end; to-spots[last].to > mostSnippet {
			to = spots[last].to
		}
	}
	var inside []redact.Range
	for _, k := range marks {
		if k.first >= first && k.last <= last {
			inside = append(inside, redact.Range{From: spots[k.first].from, To: spots[k.last].to})
		}
	}
	return before + m.written(p.text, from, to, inside) + behind
}

// written is a part of a text, with marks around what matched and without secrets. These are looked for in the text as
// it is, as far as can matter: neither a mark nor an end hides one.
func (m marker) written(text string, from, to int, marks []redact.Range) string {
	lo := max(0, from-reeve.RedactWindow)
	secrets := m.inv.Redactor.Find(text[lo:min(len(text), to+reeve.RedactWindow)])
	var b strings.Builder
	plain := func(until int) {
		for len(marks) > 0 && marks[0].To <= until {
			if k := marks[0]; k.From >= from { // it does not begin within a secret
				b.WriteString(unmarked(text[from:k.From]))
				b.WriteRune(open)
				b.WriteString(unmarked(text[k.From:k.To]))
				b.WriteRune(closed)
				from = k.To
			}
			marks = marks[1:]
		}
		b.WriteString(unmarked(text[from:until]))
	}
	for _, s := range secrets {
		if s.From, s.To = max(lo+s.From, from), min(lo+s.To, to); s.From < s.To {
			plain(s.From)
			b.WriteString(reeve.Redacted)
			from = s.To
		}
	}
	plain(to)
	return b.String()
}

// densest is the word to begin with so that most different terms are shown, and then most marks, a few words before the
// first of them.
func densest(marks []mark, words int) int {
	if len(marks) == 0 {
		return 0
	}
	best, at, end := -1, 0, 0
	seen := map[int]int{}
	for i, m := range marks {
		for ; end < len(marks) && marks[end].last < m.first+words; end++ {
			seen[marks[end].needle]++
		}
		if score := len(seen)*len(marks) + end - i; score > best {
			best, at = score, i
		}
		if seen[m.needle]--; seen[m.needle] <= 0 {
			delete(seen, m.needle)
		}
		end = max(end, i+1)
	}
	first := marks[at].first
	if first < words/2 && marks[at].last < words {
		return 0
	}
	return max(0, first-words/4)
}

// unmarked takes out of a mail's text what would be taken for our marks.
func unmarked(s string) string {
	if !strings.ContainsAny(s, "\x01\x02") {
		return s
	}
	return strings.NewReplacer("\x01", " ", "\x02", " ").Replace(s)
}

// shorten puts a part of a snippet on one line, and no more than a line.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= mostSnippet {
		return s
	}
	start := max(0, strings.IndexByte(s, open)-mostSnippet/4)
	cut := s[start:min(len(s), start+mostSnippet)]
	if strings.LastIndexByte(cut, open) > strings.LastIndexByte(cut, closed) { // it ends inside a mark
		cut += string(closed)
	}
	return "…" + strings.ToValidUTF8(cut, "") + "…"
}

// safe writes a text so that nothing in it is markup but our marks.
func safe(s string) string { return markup.Replace(s) }

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", string(open), "<mark>", string(closed),
	"</mark>")

// brief is the beginning of a subject that is no subject.
func brief(inv *reeve.Invocation, s string) string {
	if len(s) <= mostSnippet {
		return s
	}
	return inv.RedactedHead(s, mostSnippet) + "…"
}

// hits shows what was found.
func hits(inv *reeve.Invocation, q store.MailQuery, found []store.MailMatch) []reeve.MailHit {
	m := newMarker(inv, q)
	list := make([]reeve.MailHit, len(found))
	for i, f := range found {
		list[i] = f.MailHit
		list[i].Subject = brief(inv, f.Subject)
		list[i].Snippet = m.snippet(f)
	}
	return slices.Clip(list)
}
