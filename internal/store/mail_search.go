package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"reeve"
)

// MailSearch is a search in some inboxes.
type MailSearch struct {
	Query   MailQuery
	Inboxes []Inbox // where to look
	All     bool    // they are all that the workspace has
	Newest  bool    // the newest first, not the best
	From    time.Time
	To      time.Time // not included. Default: no end
	Limit   int
}

// hit is a mail that was found.
type hit struct {
	reeve.MailHit
	row, inbox int64
	sent       int64
}

// SearchMail finds mails: the best first, or the newest first. More tells whether there are others.
func (s *Snap) SearchMail(ctx context.Context, q MailSearch) (hits []reeve.MailHit, more bool, err error) {
	if len(q.Inboxes) == 0 || q.Limit < 1 {
		return []reeve.MailHit{}, false, nil
	}
	var found []hit
	if q.Query.positive() && !q.Newest {
		found, err = s.rankMail(ctx, q)
	} else {
		found, err = s.newestMail(ctx, q)
	}
	if err != nil {
		return nil, false, err
	}
	if more = len(found) > q.Limit; more {
		found = found[:q.Limit]
	}
	hits = make([]reeve.MailHit, len(found))
	for i, h := range found {
		if q.Query.positive() && !strings.Contains(h.Snippet, open) {
			if err := s.markOther(ctx, q, &h); err != nil {
				return nil, false, err
			}
		}
		h.Sender, _ = reeve.Address(h.Sender)
		h.Subject = brief(h.Subject)
		h.Date = moment(h.sent)
		hits[i] = h.MailHit
	}
	return hits, more, nil
}

// rankMail asks the full-text index, once for each range of ids.
func (s *Snap) rankMail(ctx context.Context, q MailSearch) ([]hit, error) {
	var spans []span
	if q.All {
		n := q.Inboxes[0].ID >> inboxBits
		spans = []span{{n << (inboxBits + mailBits), (n+1)<<(inboxBits+mailBits) - 1}}
	} else {
		for _, i := range q.Inboxes {
			spans = append(spans, i.span())
		}
	}
	w := s.db.words()
	what := w.text(q.Query)
	from, to := q.times()
	var found []hit
	for _, r := range spans {
		some, err := all(ctx, s, scanHit(q.Inboxes, w), w.search, what, r.first, r.last, from, to, q.Limit+1)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	if len(spans) > 1 {
		slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(a.Score, b.Score) })
	}
	return found, nil
}

// newestMail goes through the inboxes by date.
func (s *Snap) newestMail(ctx context.Context, q MailSearch) ([]hit, error) {
	w := s.db.words()
	none, some := "", ""
	if len(q.Query.None) > 0 {
		none = w.any(q.Query.None)
	}
	if q.Query.positive() {
		some = w.text(MailQuery{All: q.Query.All})
	}
	from, to := q.times()
	var found []hit
	for _, i := range q.Inboxes {
		newest, err := all(ctx, s, scanHit(q.Inboxes, w), w.list, i.ID, from, to, q.Limit+1, none, some)
		if err != nil {
			return nil, err
		}
		found = append(found, newest...)
	}
	slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(b.sent, a.sent) })
	return found, nil
}

// times is the span of time; the end is the last millisecond in it.
func (q MailSearch) times() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !q.From.IsZero() {
		from = q.From.UnixMilli()
	}
	if !q.To.IsZero() {
		to = q.To.UnixMilli() - 1
	}
	return from, to
}

func scanHit(inboxes []Inbox, w mailWords) func(scanner) (hit, error) {
	return func(r scanner) (h hit, err error) {
		var subject, body, text string
		if err := r.Scan(&h.row, &h.inbox, &h.MessageID, &h.Folder, &h.Subject, &h.Sender, &h.sent, &h.Score, &subject, &body, &text); err != nil {
			return h, err
		}
		if i := slices.IndexFunc(inboxes, func(i Inbox) bool { return i.ID == h.inbox }); i >= 0 {
			h.Inbox = inboxes[i].Name
		}
		h.Snippet = join("Subject: ", w.cut(snippet{subject, h.Subject, 32})) + " | " + join("Body: ", w.cut(snippet{body, text, 48}))
		return h, nil
	}
}

// markOther shows what matched, when it is neither in the subject nor in the body.
func (s *Snap) markOther(ctx context.Context, q MailSearch, h *hit) error {
	w := s.db.words()
	found, _, err := one(ctx, s, func(r scanner) (v [6]string, err error) {
		return v, r.Scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5])
	}, w.marked, w.text(q.Query), h.row)
	if err != nil {
		return err
	}
	for i, name := range []string{"From: ", "To: ", "Attached: "} {
		if part := w.cut(snippet{found[i], found[i+3], 24}); strings.Contains(part, open) {
			h.Snippet += " | " + join(name, part)
		}
	}
	return nil
}

// join puts a part of a snippet on one line, and no more than a line: a word may be as long as a mail.
func join(name, s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= mostSnippet {
		return name + s
	}
	start := max(0, strings.Index(s, open)-mostSnippet/4)
	part := []byte(s)[start:min(len(s), start+mostSnippet)]
	s = "…" + strings.ToValidUTF8(string(part), "") + "…"
	if strings.LastIndex(s, open) > strings.LastIndex(s, closed) { // it was cut inside a mark
		s += closed
	}
	return name + s
}

// mostSnippet is how many bytes one part of a snippet has.
const mostSnippet = 800

// brief is the beginning of a subject that is no subject.
func brief(s string) string {
	if len(s) <= mostSnippet {
		return s
	}
	return strings.ToValidUTF8(s[:mostSnippet], "") + "…"
}

func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := reeve.FromMillis(ms)
	return &t
}

// cut puts the marks that were made in a copy of a text into the text, and gives the part that has most of them.
func (s snippet) cut() string {
	if s.text == "" { // it was not marked
		return s.marked
	}
	text, marks := s.align()
	first := s.densest(text, marks)
	var b strings.Builder
	words, at := 0, first
	if first > 0 {
		b.WriteString("…")
	}
	for ; at < len(text) && words < s.words; at++ {
		if k := slices.IndexFunc(marks, func(m [2]int) bool { return m[0] == at }); k >= 0 {
			b.WriteString(open + string(text[at:marks[k][1]]) + closed)
			at = marks[k][1] - 1
		} else {
			b.WriteRune(text[at])
		}
		if unicode.IsSpace(text[at]) && at+1 < len(text) && !unicode.IsSpace(text[at+1]) {
			words++
		}
	}
	if at < len(text) {
		b.WriteString("…")
	}
	return b.String()
}

// align walks through the text and its marked copy side by side and gives the places of the marks. Where the copy lacks something it ends.
func (s snippet) align() (text []rune, marks [][2]int) {
	text = []rune(s.text)
	at, begin := 0, 0
	for _, r := range s.marked {
		switch {
		case r == 1 && (at >= len(text) || text[at] != 1):
			begin = at
		case r == 2 && (at >= len(text) || text[at] != 2):
			marks = append(marks, [2]int{begin, at})
		case at >= len(text), r != text[at] && r != ' ' && unmarked(string(text[at])) != string(r):
			return text, marks
		default:
			at++
		}
	}
	return text, marks
}

// densest is where the part begins that has most marks, a few words before the first of them.
func (s snippet) densest(text []rune, marks [][2]int) int {
	reach, best, at := s.words*6, 0, 0
	for i := range marks {
		n := 0
		for n < len(marks)-i && marks[i+n][1]-marks[i][0] < reach {
			n++
		}
		if n > best {
			best, at = n, marks[i][0]
		}
	}
	start := max(0, at-reach/4)
	for ; start > 0 && start < at && !unicode.IsSpace(text[start-1]); start++ {
	}
	if at < reach/2 {
		start = 0
	}
	return start
}
