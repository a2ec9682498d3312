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
	Inboxes []Inbox // the inboxes to search
	All     bool    // Inboxes are all inboxes of the workspace
	Newest  bool    // order by date instead of by rank
	From    time.Time
	To      time.Time // exclusive. Default: no end
	After   *MailCursor
	Limit   int
	// MaxRanked is the number of matches that are ranked. If there are more, the newest come first. Default: the number
	// that the engine ranks in less than a second.
	MaxRanked int
}

// MailCursor is the position of a mail in the results of a search.
type MailCursor struct {
	Newest bool    // the results are ordered by date
	ByDate bool    // there were too many results to rank, so they are read by date
	Score  float64 // the mail's score, lowest first
	ID     int64   // the mail's id
}

// MailPage is a page of search results.
type MailPage struct {
	Mails         []MailMatch
	Next          *MailCursor // nil on the last page
	TooManyToRank bool        // there are too many results to rank, so they are ordered by date
}

// MailMatch is a mail that was found, with the texts for its snippet.
type MailMatch struct {
	reeve.MailHit
	From       string   // the sender with name
	Recipients []string // with names
	Attached   string   // file names, one on each line
	Body       string   // the beginning of the body
	More       bool     // the body continues; the last [reeve.RedactWindow] bytes of Body must not be shown
	Place      MailCursor

	row int64
}

// rankedMail is the id and score of a mail in the results.
type rankedMail struct {
	id    int64
	score float64
	of    int // the number of ranked mails
}

func (r rankedMail) cursor(newest, walk bool) MailCursor {
	return MailCursor{Newest: newest, ByDate: walk, Score: r.score, ID: r.id}
}

// SearchMail returns a page of mails, ordered by rank or by date. If more mails match than can be ranked, it orders
// them by date. Mails that are added between two pages neither repeat nor skip earlier results.
func (s Mail) SearchMail(ctx context.Context, q MailSearch) (page MailPage, err error) {
	if len(q.Inboxes) == 0 || q.Limit < 1 {
		return page, nil
	}
	w := s.db.mailSearchDialect()
	q.MaxRanked = cmp.Or(q.MaxRanked, w.maxRanked)
	if q.After != nil {
		q.Newest = q.After.Newest
	}
	var list []rankedMail
	walk := !q.Query.hasTerms() || q.After != nil && q.After.ByDate
	page.TooManyToRank = walk && q.Query.hasTerms()
	if !walk {
		if list, err = s.rankMail(ctx, w, q); err != nil {
			return page, err
		}
		if q.After == nil && len(list) > 0 && list[0].of > q.MaxRanked {
			page.TooManyToRank, walk = true, true
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
		last := list[q.Limit-1].cursor(q.Newest, walk)
		page.Next = &last
	}
	page.Mails, err = s.loadMatches(ctx, w, q, list, walk)
	return page, err
}

// rankMail returns the matching mails in the order of their scores.
func (s Mail) rankMail(ctx context.Context, w mailDialect, q MailSearch) ([]rankedMail, error) {
	first, last := q.Inboxes[0].idRange(), q.Inboxes[0].idRange()
	some := ""
	if q.All {
		n := q.Inboxes[0].ID >> inboxBits
		first.first, last.last = n<<(inboxBits+mailBits), (n+1)<<(inboxBits+mailBits)-1
	} else if len(q.Inboxes) > 1 {
		some = joinIDs(q.Inboxes, func(i Inbox) int64 { return i.ID })
		for _, i := range q.Inboxes {
			first.first, last.last = min(first.first, i.idRange().first), max(last.last, i.idRange().last)
		}
	}
	from, to := q.timeRange()
	after := MailCursor{Score: -math.MaxFloat64}
	if q.After != nil {
		after = *q.After
	}
	form := rankOptions{newest: q.Newest, some: some != "", dated: q.hasDates(), after: q.After != nil}
	terms, alone := q.Query.countTerms()
	match := w.compile(q.Query)
	form.count = !w.bm25 || q.Newest || form.after || !alone || !match.isSingle()
	own := []any{first.first, last.last, some, from, to, q.MaxRanked + 1, q.Limit + 1, after.ID, after.Score}
	for {
		args := &matchArgs{own: len(own)}
		statement := w.rank(form, match, args)
		list, err := queryAll(ctx, s.Snap, func(r scanner) (v rankedMail, err error) {
			return v, r.Scan(&v.id, &v.score, &v.of)
		},
			statement, slices.Concat(own, args.list)...)
		if err != nil || form.count || len(list) == 0 {
			return list, err
		}
		total, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT coalesce(sum(messages), 0) FROM inboxes`)
		if err != nil || total <= int64(q.MaxRanked) || -list[0].score > maxBM25(terms, total, int64(q.MaxRanked)) {
			return list, err
		}
		form.count = true
	}
}

// maxBM25 returns the highest score that a mail can have if each term occurs in more than limit of total mails. A term
// contributes at most 2.2 times the logarithm of its rarity. If a mail has a higher score, a term is rarer, so at most
// limit mails match and they need not be counted. Counting costs a tenth of the search.
func maxBM25(terms int, total, limit int64) float64 {
	return float64(terms) * 2.2 * max(1e-6, math.Log((float64(total-limit)+0.5)/(float64(limit)+0.5)))
}

// walkMail returns the matching mails, newest first.
func (s Mail) walkMail(ctx context.Context, w mailDialect, q MailSearch) ([]rankedMail, error) {
	from, to := q.timeRange()
	sent, id := int64(math.MaxInt64), int64(math.MaxInt64)
	if q.After != nil {
		sent, id = -int64(q.After.Score), q.After.ID
	}
	own := []any{joinIDs(q.Inboxes, func(i Inbox) int64 { return i.ID }), from, min(to, sent), sent, id, q.Limit + 1}
	args := &matchArgs{own: len(own)}
	statement := w.walk(q.hasDates(), w.compile(q.Query), args)
	return queryAll(ctx, s.Snap, func(r scanner) (v rankedMail, err error) {
		var at int64
		err = r.Scan(&v.id, &at)
		v.score = -float64(at)
		return v, err
	}, statement, slices.Concat(own, args.list)...)
}

// loadMatches reads the mails of a page.
func (s Mail) loadMatches(ctx context.Context, w mailDialect, q MailSearch, list []rankedMail, walk bool) ([]MailMatch,
	error) {
	if len(list) == 0 {
		return nil, nil
	}
	shown := shownText
	if !q.Query.hasTerms() {
		shown = shownStart
	}
	shown += reeve.RedactWindow // text after a snippet is needed to find secrets in it
	found, err := queryAll(ctx, s.Snap, scanFound(q.Inboxes, shown), w.found,
		joinIDs(list, func(r rankedMail) int64 { return r.id }), shown)
	if err != nil {
		return nil, err
	}
	place := map[int64]int{}
	for i, r := range list {
		place[r.id] = i
	}
	for i, f := range found {
		found[i].Place = list[place[f.row]].cursor(q.Newest, walk)
	}
	slices.SortFunc(found, func(a, b MailMatch) int { return cmp.Compare(place[a.row], place[b.row]) })
	return found, nil
}

const (
	shownText  = 262_144 // characters in which matches are highlighted
	shownStart = 400     // characters of a mail if the query has no terms
)

// hasDates reports whether the search has a time range.
func (q MailSearch) hasDates() bool { return !q.From.IsZero() || !q.To.IsZero() }

// timeRange returns the time range in milliseconds, including both ends.
func (q MailSearch) timeRange() (from, to int64) {
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
		m.Date = mailTime(sent)
		return m, decodeJSON("recipients", recipients, &m.Recipients)
	}
}

// joinIDs joins ids with commas, so that any number of ids is one argument.
func joinIDs[T any](list []T, id func(T) int64) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id(v), 10))
	}
	return b.String()
}

// mailTime converts a stored time. 0 means no date, and 1 stands for the time 0.
func mailTime(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := reeve.FromMillis(ms)
	if ms == 1 {
		t = time.UnixMilli(0).UTC()
	}
	return &t
}
