package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	After   *MailCursor
	Limit   int
	// how many matches are ranked; when there are more, the newest come first. Default: what the engine ranks in less
	// than a second
	Most int
}

// MailCursor is where a page ended: behind a mail, in the order of its search.
type MailCursor struct {
	Newest bool    // the newest came first
	Walk   bool    // there were too many to put them in order, and they were read by date
	Score  float64 // the mail's, the least first
	ID     int64   // the mail's
}

// MailPage is what a search found.
type MailPage struct {
	Mails   []MailMatch
	Next    *MailCursor // nil when there are no others
	Crowded bool        // so many match that the newest are given first
}

// MailMatch is a mail that was found, with the text to show of it.
type MailMatch struct {
	reeve.MailHit
	From       string   // the sender with its name
	Recipients []string // with names
	Attached   string   // names of files, a line each
	Body       string   // the beginning of it
	More       bool     // there is more of it: of the last [reeve.RedactWindow] bytes nothing is to be shown
	Place      MailCursor

	row int64
}

// ranked is a mail's place in a search.
type ranked struct {
	id    int64
	score float64
	of    int // how many there are
}

func (r ranked) place(newest, walk bool) MailCursor {
	return MailCursor{Newest: newest, Walk: walk, Score: r.score, ID: r.id}
}

// SearchMail finds mails: the best first, or the newest first. No search reads more than the index says of its words,
// and none ranks more than so many mails: of a word that nearly every mail has, the newest are given. Adding mail
// between two pages neither repeats nor skips what was there.
func (s Mail) SearchMail(ctx context.Context, q MailSearch) (page MailPage, err error) {
	if len(q.Inboxes) == 0 || q.Limit < 1 {
		return page, nil
	}
	w := s.db.words()
	q.Most = cmp.Or(q.Most, w.most)
	if q.After != nil {
		q.Newest = q.After.Newest
	}
	var list []ranked
	walk := !q.Query.positive() || q.After != nil && q.After.Walk
	page.Crowded = walk && q.Query.positive()
	if !walk {
		if list, err = s.rankMail(ctx, w, q); err != nil {
			return page, err
		}
		if q.After == nil && len(list) > 0 && list[0].of > q.Most {
			page.Crowded, walk = true, true
		}
	}
	if walk {
		q.Newest = true
		if list, err = s.walkMail(ctx, w, q); err != nil {
			return page, err
		}
	}
	if len(list) > q.Limit {
		list = list[:q.Limit]
		last := list[q.Limit-1].place(q.Newest, walk)
		page.Next = &last
	}
	page.Mails, err = s.foundMail(ctx, w, q, list, walk)
	return page, err
}

// rankMail asks the full-text index, and puts what it gives in order.
func (s Mail) rankMail(ctx context.Context, w mailWords, q MailSearch) ([]ranked, error) {
	first, last := q.Inboxes[0].span(), q.Inboxes[0].span()
	some := ""
	if q.All {
		n := q.Inboxes[0].ID >> inboxBits
		first.first, last.last = n<<(inboxBits+mailBits), (n+1)<<(inboxBits+mailBits)-1
	} else if len(q.Inboxes) > 1 {
		some = numbers(q.Inboxes, func(i Inbox) int64 { return i.ID })
		for _, i := range q.Inboxes {
			first.first, last.last = min(first.first, i.span().first), max(last.last, i.span().last)
		}
	}
	from, to := q.times()
	after := MailCursor{Score: -math.MaxFloat64}
	if q.After != nil {
		after = *q.After
	}
	form := rankForm{newest: q.Newest, some: some != "", dated: q.dated(), after: q.After != nil}
	terms, alone := q.Query.terms()
	match := w.match(q.Query)
	form.count = !w.bm25 || q.Newest || form.after || !alone || !match.single()
	own := []any{first.first, last.last, some, from, to, q.Most + 1, q.Limit + 1, after.ID, after.Score}
	for {
		args := &matchArgs{own: len(own)}
		statement := w.rank(form, match, args)
		list, err := all(ctx, s.Snap, func(r scanner) (v ranked, err error) {
			return v,
				r.Scan(&v.id, &v.score, &v.of)
		},
			statement, slices.Concat(own, args.list)...)
		if err != nil || form.count || len(list) == 0 {
			return list, err
		}
		kept, _, err := one(ctx, s.Snap, value[int64], `SELECT coalesce(sum(messages), 0) FROM inboxes`)
		if err != nil || kept <= int64(q.Most) || -list[0].score > mostBM25(terms, kept, int64(q.Most)) {
			return list, err
		}
		form.count = true
	}
}

// mostBM25 is what the best mail of a search can score if each of its terms is in more than so many mails: a term gives
// at most 2.2 times the logarithm of how rare it is. One that scores more has a term that fewer mails have, and so
// fewer match; they need not be counted, which would cost a tenth of the search.
func mostBM25(terms int, kept, most int64) float64 {
	return float64(terms) * 2.2 * max(1e-6, math.Log((float64(kept-most)+0.5)/(float64(most)+0.5)))
}

// walkMail goes through the inboxes by date.
func (s Mail) walkMail(ctx context.Context, w mailWords, q MailSearch) ([]ranked, error) {
	from, to := q.times()
	sent, id := int64(math.MaxInt64), int64(math.MaxInt64)
	if q.After != nil {
		sent, id = -int64(q.After.Score), q.After.ID
	}
	own := []any{numbers(q.Inboxes, func(i Inbox) int64 { return i.ID }), from, min(to, sent), sent, id, q.Limit + 1}
	args := &matchArgs{own: len(own)}
	statement := w.walk(q.dated(), w.match(q.Query), args)
	return all(ctx, s.Snap, func(r scanner) (v ranked, err error) {
		var at int64
		err = r.Scan(&v.id, &at)
		v.score = -float64(at)
		return v, err
	}, statement, slices.Concat(own, args.list)...)
}

// foundMail reads the mails of a page.
func (s Mail) foundMail(ctx context.Context, w mailWords, q MailSearch, list []ranked, walk bool) ([]MailMatch, error) {
	if len(list) == 0 {
		return nil, nil
	}
	shown := shownText
	if !q.Query.positive() {
		shown = shownStart
	}
	shown += reeve.RedactWindow // what stands behind a snippet tells of secrets in it
	found, err := all(ctx, s.Snap, scanFound(q.Inboxes, shown), w.found,
		numbers(list, func(r ranked) int64 { return r.id }), shown)
	if err != nil {
		return nil, err
	}
	place := map[int64]int{}
	for i, r := range list {
		place[r.id] = i
	}
	for i, f := range found {
		found[i].Place = list[place[f.row]].place(q.Newest, walk)
	}
	slices.SortFunc(found, func(a, b MailMatch) int { return cmp.Compare(place[a.row], place[b.row]) })
	return found, nil
}

const (
	shownText  = 262_144 // characters in which matches are looked for
	shownStart = 400     // characters of a mail in which nothing is looked for
)

// dated tells whether it matters when a mail was sent.
func (q MailSearch) dated() bool { return !q.From.IsZero() || !q.To.IsZero() }

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

func scanFound(inboxes []Inbox, most int) func(scanner) (MailMatch, error) {
	return func(r scanner) (m MailMatch, err error) {
		defer wrapCorrupt("emails", &m.MessageID, &err)
		var inbox, sent int64
		var recipients string
		if err := r.Scan(&m.row, &inbox, &m.MessageID, &m.Folder, &m.Subject, &m.From, &sent, &recipients, &m.Attached,
			&m.Body); err != nil {
			return m, err
		}
		if i := slices.IndexFunc(inboxes, func(i Inbox) bool { return i.ID == inbox }); i >= 0 {
			m.Inbox = inboxes[i].Name
		}
		m.More = len(m.Body) >= most && utf8.RuneCountInString(m.Body) == most
		m.Sender, _ = reeve.ParseAddress(m.From)
		m.Date = moment(sent)
		return m, decode("recipients", recipients, &m.Recipients)
	}
}

// numbers writes ids with commas between them: one argument, however many there are.
func numbers[T any](list []T, id func(T) int64) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id(v), 10))
	}
	return b.String()
}

// moment is a time, if there is one: 0 means none, and 1 is what mail of that very moment is kept with.
func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := reeve.FromMillis(ms)
	if ms == 1 {
		t = time.UnixMilli(0).UTC()
	}
	return &t
}
