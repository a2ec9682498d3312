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
	markOpen, markClose = '\x01', '\x02' // surround a match until the text is escaped
	maxSnippet          = 800            // bytes of one part of a snippet; a word may be as long as a mail
)

// marker finds the terms of a query in a text as the indexes do, ignoring case, accents and word endings.
type marker struct {
	needles []needle
	inv     *reeve.Invocation // finds secrets
}

// needle is a term prepared for comparison.
type needle struct {
	field  store.MailField
	words  []string // folded
	stems  []string
	prefix bool // the last word is a prefix
	exact  bool // compare words as written, not their stems
}

func newMarker(inv *reeve.Invocation, q store.MailQuery) marker {
	m := marker{inv: inv}
	for _, any := range q.All {
		for _, t := range any {
			n := needle{field: t.Field, prefix: t.Prefix, exact: t.IsExact()}
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
	words      int // number of words to show
	rest       int // bytes at the end that serve only to find secrets
}

// snippet returns the passages of subject and body with the most matches, marked with <mark> and </mark>. It adds
// sender, recipients or attachments only if subject and body have no match. It removes secrets and escapes the mail's
// own markup, so every <mark> comes from this function.
func (m marker) snippet(f store.MailMatch) string {
	parts := []part{{"Subject: ", f.Subject, store.SubjectField, 32, 0}, {"Body: ", f.Body, store.BodyField, 48, 0}}
	if f.More {
		parts[1].rest = reeve.RedactWindow
	}
	others := []part{{"From: ", f.From, store.SenderField, 24, 0}, {"To: ", strings.Join(f.Recipients, ", "),
		store.ReceiverField, 24, 0}, {"Attached: ", f.Attached, store.AttachedField, 24, 0}}
	for _, loosely := range []bool{false, true} { // the indexes may know an ending that stem does not
		s, some := m.renderParts(parts, loosely)
		for _, o := range others {
			if some || len(m.needles) == 0 {
				break
			}
			if also, found := m.renderParts([]part{o}, loosely); found {
				s, some = s+" | "+also, true
			}
		}
		if some || loosely || len(m.needles) == 0 {
			return s
		}
	}
	return ""
}

// renderParts renders parts and reports whether any has a match.
func (m marker) renderParts(parts []part, loosely bool) (s string, some bool) {
	var list []string
	for _, p := range parts {
		spots := findWords(p.text[:len(p.text)-p.rest])
		marks := m.findMatches(spots, p.field, loosely)
		some = some || len(marks) > 0
		list = append(list, p.name+escapeMarkup(shorten(m.window(p, spots, marks))))
	}
	return strings.Join(list, " | "), some
}

// textWord is a word of a text: its range and its folded form.
type textWord struct {
	from, to int
	word     string
}

// match is a run of words that matches a needle.
type match struct{ first, last, needle int }

// findWords returns the words of a text.
func findWords(text string) (list []textWord) {
	begin := -1
	for i, r := range text {
		in := r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') ||
			r >= utf8.RuneSelf && inWord(r)
		switch {
		case in && begin < 0:
			begin = i
		case !in && begin >= 0:
			list = append(list, textWord{begin, i, fold(text[begin:i])})
			begin = -1
		}
	}
	if begin >= 0 {
		list = append(list, textWord{begin, len(text), fold(text[begin:])})
	}
	return list
}

// inWord reports whether r belongs to a word. The indexes contain runs of such characters.
func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) }

// fold removes case and accents from a word.
func fold(w string) string {
	if isASCII(w) {
		return strings.ToLower(w)
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(w)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// findMatches returns the matches in order, with the longest one at each word.
func (m marker) findMatches(spots []textWord, field store.MailField, loosely bool) (marks []match) {
	for i := 0; i < len(spots); i++ {
		best := match{first: i, last: i - 1}
		for k, n := range m.needles {
			if (n.field == store.AnyField || n.field == field) && i+len(n.words)-1 > best.last &&
				n.matchesAt(spots[i:], loosely) {
				best = match{i, i + len(n.words) - 1, k}
			}
		}
		if best.last >= i {
			marks = append(marks, best)
			i = best.last
		}
	}
	return marks
}

// matchesAt reports whether spots begins with the words of the needle.
func (n needle) matchesAt(spots []textWord, loosely bool) bool {
	if len(n.words) == 0 || len(spots) < len(n.words) {
		return false
	}
	for i := range n.words {
		if !n.matchesWord(i, spots[i].word, n.prefix && i == len(n.words)-1, loosely) {
			return false
		}
	}
	return true
}

func (n needle) matchesWord(i int, word string, prefix, loosely bool) bool {
	w, s := n.words[i], n.stems[i]
	if len(word) == 0 || word[0] != w[0] { // fast path: stems keep the first letter
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

// window returns the passage with the most matches, with marks.
func (m marker) window(p part, spots []textWord, marks []match) string {
	end := len(p.text) - p.rest
	if len(spots) == 0 {
		return m.renderRange(p.text, 0, min(end, maxSnippet+utf8.UTFMax), nil)
	}
	first := bestWindowStart(marks, p.words)
	last := min(first+p.words, len(spots)) - 1
	from, to := spots[first].from, spots[last].to
	before, behind := "…", "…"
	if first == 0 {
		from, before = max(0, from-maxSnippet/4), "" // include signs before the first word
		for from > 0 && from < len(p.text) && !utf8.RuneStart(p.text[from]) {
			from++
		}
	}
	if last == len(spots)-1 {
		if p.rest == 0 {
			behind = ""
		}
		if to = end; to-spots[last].to > maxSnippet {
			to = spots[last].to
		}
	}
	var inside []redact.Range
	for _, k := range marks {
		if k.first >= first && k.last <= last {
			inside = append(inside, redact.Range{From: spots[k.first].from, To: spots[k.last].to})
		}
	}
	return before + m.renderRange(p.text, from, to, inside) + behind
}

// renderRange returns text[from:to] with marks and without secrets. It looks for secrets in the original text with
// RedactWindow bytes on both sides, so that neither a mark nor the end of the range hides one.
func (m marker) renderRange(text string, from, to int, marks []redact.Range) string {
	lo := max(0, from-reeve.RedactWindow)
	secrets := m.inv.Redactor.Find(text[lo:min(len(text), to+reeve.RedactWindow)])
	var b strings.Builder
	plain := func(until int) {
		for len(marks) > 0 && marks[0].To <= until {
			if k := marks[0]; k.From >= from { // skip a match that begins inside a secret
				b.WriteString(stripMarks(text[from:k.From]))
				b.WriteRune(markOpen)
				b.WriteString(stripMarks(text[k.From:k.To]))
				b.WriteRune(markClose)
				from = k.To
			}
			marks = marks[1:]
		}
		b.WriteString(stripMarks(text[from:until]))
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

// bestWindowStart returns the index of the word at which a window of the given length shows the most different terms,
// and then the most matches. It begins a few words before the first match.
func bestWindowStart(marks []match, words int) int {
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

// stripMarks removes mark characters from a mail's own text.
func stripMarks(s string) string {
	if !strings.ContainsAny(s, "\x01\x02") {
		return s
	}
	return strings.NewReplacer("\x01", " ", "\x02", " ").Replace(s)
}

// shorten puts a part of a snippet on one line and limits its length.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxSnippet {
		return s
	}
	start := max(0, strings.IndexByte(s, markOpen)-maxSnippet/4)
	cut := s[start:min(len(s), start+maxSnippet)]
	if strings.LastIndexByte(cut, markOpen) > strings.LastIndexByte(cut, markClose) { // the cut is inside a match
		cut += string(markClose)
	}
	return "…" + strings.ToValidUTF8(cut, "") + "…"
}

// escapeMarkup escapes markup in s and turns mark characters into <mark> tags.
func escapeMarkup(s string) string { return markup.Replace(s) }

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", string(markOpen), "<mark>", string(markClose),
	"</mark>")

// truncateSubject returns the beginning of a very long subject.
func truncateSubject(inv *reeve.Invocation, s string) string {
	if len(s) <= maxSnippet {
		return s
	}
	return inv.RedactedHead(s, maxSnippet) + "…"
}

// renderHits returns the hits with their snippets.
func renderHits(inv *reeve.Invocation, q store.MailQuery, found []store.MailMatch) []reeve.MailHit {
	m := newMarker(inv, q)
	list := make([]reeve.MailHit, len(found))
	for i, f := range found {
		list[i] = f.MailHit
		list[i].Subject = truncateSubject(inv, f.Subject)
		list[i].Snippet = m.snippet(f)
	}
	return slices.Clip(list)
}
