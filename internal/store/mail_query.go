package store

import (
	"strconv"
	"strings"
)

// MailQuery is what is asked for: mails that have one of each list in All, and nothing of None.
type MailQuery struct {
	All  [][]MailTerm
	None []MailTerm
}

// MailTerm is a word, or several in a row.
type MailTerm struct {
	Field  MailField // where it must be. Default: anywhere
	Words  []string  // letters and digits only
	Prefix bool      // the last word may go on
}

// AsWritten reports whether the term matches words as they are written, and not their other forms. Stems say nothing of
// how a word begins, and names have no forms: Harry is not Harris.
func (t MailTerm) AsWritten() bool {
	return t.Prefix || t.Field == SenderField || t.Field == ReceiverField
}

// MailField is a part of a mail that can be searched by itself.
type MailField string

// The fields.
const (
	AnyField      MailField = ""
	SubjectField  MailField = "subject"
	BodyField     MailField = "body"
	SenderField   MailField = "sender"
	ReceiverField MailField = "recipients"
	AttachedField MailField = "attached"
)

// positive tells whether something is asked for, and not only ruled out.
func (q MailQuery) positive() bool { return len(q.All) > 0 }

// terms counts what is asked for, and tells whether every one must be there.
func (q MailQuery) terms() (n int, all bool) {
	for _, any := range q.All {
		n += len(any)
	}
	return n, n == len(q.All)
}

// mailWords is how an engine's full-text indexes are asked. It is all that the two say differently about mail.
type mailWords struct {
	term func(MailTerm) string // one term
	and  string
	or   string
	not  string // between what is asked for and what is ruled out
	rank func(rankForm, mailMatch, *matchArgs) string
	// walk gives the newest mails. dated leaves mails without a date out. $1 inboxes, $2 and $3 times, $4 and $5 the
	// time and the id to begin behind, $6 how many; the match adds its own.
	walk  func(dated bool, m mailMatch, args *matchArgs) string
	found string // $1 ids, $2 how many characters of their text
	most  int    // how many mails are ranked
	bm25  bool   // scores are those of BM25, which tell how rare the words are
}

// rankForm says what is left out of a statement that ranks: $1 and $2 the first and last id, $3 inboxes, $4 and $5
// times, $6 how many to rank, $7 how many to give, $8 and $9 the mail to begin behind and the score it had; the match
// adds its own. It gives ids and scores, the least first, and how many were ranked.
type rankForm struct {
	newest bool // the score is the mail's age
	some   bool // not every inbox between the ids
	dated  bool // the times matter; mails without a date are left out
	after  bool
	count  bool // how many were ranked is wanted; otherwise it may be left at 0
}

// mailAsk is a condition in the engine's own language: a mail matches one text or the other. An empty text matches
// nothing.
type mailAsk struct {
	forms   string // asks the index of stems
	written string // asks the index of words as they are written
}

func (a mailAsk) none() bool { return a == mailAsk{} }

// both reports whether two indexes are asked.
func (a mailAsk) both() bool { return a.forms != "" && a.written != "" }

// mailMatch is a query in the engine's own language.
type mailMatch struct {
	all  []mailAsk // each must be met. Those that ask one index come first
	none mailAsk   // must not be met
}

// single reports whether one question to one index says it all.
func (m mailMatch) single() bool { return len(m.all) == 1 && !m.all[0].both() && m.none.none() }

// matchArgs are the texts of a match, as arguments of a statement behind its own.
type matchArgs struct {
	own  int // how many arguments the statement has besides
	list []any
}

func (a *matchArgs) add(text string) string {
	a.list = append(a.list, text)
	return "$" + strconv.Itoa(a.own+len(a.list))
}

// match writes a query in the engine's own language. Terms that ask the same index become one text.
func (w mailWords) match(q MailQuery) (m mailMatch) {
	var forms, written []string
	var mixed []mailAsk
	for _, any := range q.All {
		switch a := w.ask(any); {
		case a.both():
			mixed = append(mixed, a)
		case a.forms != "":
			forms = append(forms, a.forms)
		default:
			written = append(written, a.written)
		}
	}
	m.none = w.ask(q.None)
	// without writes what must be there, and rules out what must not if the same index knows.
	without := func(list []string, none *string) string {
		s := strings.Join(list, w.and)
		if *none != "" {
			s, *none = "("+s+")"+w.not+*none, ""
		}
		return s
	}
	if len(forms) > 0 {
		m.all = append(m.all, mailAsk{forms: without(forms, &m.none.forms)})
	}
	if len(written) > 0 {
		m.all = append(m.all, mailAsk{written: without(written, &m.none.written)})
	}
	m.all = append(m.all, mixed...)
	return m
}

// ask asks for any of some terms.
func (w mailWords) ask(terms []MailTerm) mailAsk {
	var forms, written []string
	for _, t := range terms {
		if t.AsWritten() {
			written = append(written, w.term(t))
		} else {
			forms = append(forms, w.term(t))
		}
	}
	any := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return "(" + strings.Join(list, w.or) + ")"
	}
	return mailAsk{forms: any(forms), written: any(written)}
}

const foundColumns = `e.id, e.inbox_id, e.message_id, e.folder, e.subject, e.sender, e.sent_at, e.recipients, e.attached, substr(e.body, 1, $2)`

// undated rules out mails without a date, where dates are asked for: 0 means none.
func undated(column string, out bool) string {
	if !out {
		return ""
	}
	return ` AND ` + column + ` <> 0`
}

// words is how this store's engine is asked.
func (db *DB) words() mailWords {
	if db.Engine() == "postgres" {
		return postgresWords
	}
	return sqliteWords
}

var sqliteWords = mailWords{
	term: func(t MailTerm) string {
		s := `"` + strings.Join(t.Words, " ") + `"`
		if t.Prefix {
			s += " *"
		}
		if t.Field != AnyField {
			s = string(t.Field) + " : " + s
		}
		return s
	},
	and: " AND ", or: " OR ", not: " NOT ",
	rank: func(f rankForm, m mailMatch, args *matchArgs) string {
		// The mails' own table is read only where it must be: the index alone answers in a fraction of the time.
		// Ranking costs more than all else together, so it is not left to the index, which would sort every match with
		// all its places.
		table, where := sqliteRanked(m.all[0], args)
		score, join, after := "i.rank", "", ""
		if f.newest {
			score = "CAST(-e.sent_at AS REAL)"
		}
		if f.newest || f.dated {
			join = " CROSS JOIN emails e ON e.id = i.rowid"
		}
		where += sqliteAmong("i.rowid", mailMatch{all: m.all[1:], none: m.none}, args)
		if f.some {
			where += ` AND i.rowid >> 28 IN (SELECT value FROM json_each('[' || $3 || ']'))`
		}
		if f.dated {
			where += ` AND e.sent_at BETWEEN $4 AND $5` + undated("e.sent_at", true)
		}
		if f.after { // the score it has now: it moves a little when mail is added
			after = `, (SELECT coalesce((SELECT score FROM c WHERE id = $8), $9) AS at) a WHERE c.score > a.at OR c.score = a.at AND c.id < $8`
		}
		matches := `SELECT i.rowid AS id, ` + score + ` AS score FROM ` + table + join + `
			WHERE ` + where + ` LIMIT $6`
		if !f.count { // then nothing is written down
			return `SELECT c.id, c.score, 0 FROM (` + matches + `) c ORDER BY c.score, c.id DESC LIMIT $7`
		}
		return `WITH c AS MATERIALIZED (` + matches + `)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c` + after + ` ORDER BY c.score, c.id DESC LIMIT $7`
	},
	walk: func(dated bool, m mailMatch, args *matchArgs) string {
		return `SELECT e.id, e.sent_at FROM json_each('[' || $1 || ']') i CROSS JOIN emails e WHERE e.id IN (SELECT id FROM emails WHERE inbox_id = i.value AND sent_at BETWEEN $2 AND $3 AND (sent_at < $4 OR id < $5)
		` + undated("sent_at", dated) + sqliteAmong("id", m, args) + `
		ORDER BY sent_at DESC, id DESC LIMIT $6) ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found: `SELECT ` + foundColumns + ` FROM emails e WHERE e.id IN (SELECT value FROM json_each('[' || $1 || ']'))`,
	most:  100_000,
	bm25:  true,
}

// sqliteRanked is where to read the mails that meet a condition, as i with rowid and rank, and what they must be.
func sqliteRanked(a mailAsk, args *matchArgs) (table, where string) {
	const forms, written = "emails_words", "emails_written"
	is := func(of, table, text string) string {
		return of + table + ` MATCH ` + args.add(text) + ` AND ` + of + `rowid BETWEEN $1 AND $2`
	}
	switch {
	case a.both(): // the better of its two ranks
		return `(SELECT id AS rowid, min(rank) AS rank FROM (
			SELECT rowid AS id, rank FROM ` + forms + ` WHERE ` + is("", forms, a.forms) + ` UNION ALL
			SELECT rowid, rank FROM ` + written + ` WHERE ` + is("", written, a.written) + `) GROUP BY id) i`, "true"
	case a.written != "":
		return written + " i", is("i.", written, a.written)
	}
	return forms + " i", is("i.", forms, a.forms)
}

// sqliteAmong restricts an id to the mails that match.
func sqliteAmong(id string, m mailMatch, args *matchArgs) (where string) {
	ids := func(a mailAsk) string {
		var list []string
		if a.forms != "" {
			list = append(list, `SELECT rowid FROM emails_words WHERE emails_words MATCH `+args.add(a.forms))
		}
		if a.written != "" {
			list = append(list, `SELECT rowid FROM emails_written WHERE emails_written MATCH `+args.add(a.written))
		}
		return "(" + strings.Join(list, " UNION ALL ") + ")"
	}
	for _, a := range m.all {
		where += " AND " + id + " IN " + ids(a)
	}
	if !m.none.none() {
		where += " AND " + id + " NOT IN " + ids(m.none)
	}
	return where
}

// weights are the labels that PostgreSQL's index knows the fields by.
var weights = map[MailField]string{SubjectField: "A", SenderField: "B", ReceiverField: "C", BodyField: "D",
	AttachedField: "D"}

var postgresWords = mailWords{
	term: func(t MailTerm) string {
		in := func(weight string, write func(string) string) string {
			var words []string
			for i, w := range t.Words {
				if w = "'" + write(w) + "'"; t.Prefix && i == len(t.Words)-1 {
					w += ":*" + weight
				} else if weight != "" {
					w += ":" + weight
				}
				words = append(words, w)
			}
			return "(" + strings.Join(words, " <-> ") + ")"
		}
		write, attached := unmarked, unmarked
		if t.AsWritten() {
			write, attached = foldWritten, foldAttached
		}
		if t.Field == AttachedField {
			return in(weights[t.Field], attached)
		} else if t.Field != AnyField {
			return in(weights[t.Field], write)
		}
		var some []string
		if len(t.Words) == 1 {
			some = append(some, in("", write))
		} else { // words in a row are in one field
			some = append(some, in("A", write), in("B", write), in("C", write), in("D", write))
		}
		if t.AsWritten() {
			some = append(some, in("D", attached))
		}
		return "(" + strings.Join(some, " | ") + ")"
	},
	and: " & ", or: " | ", not: " & !",
	rank: func(f rankForm, m mailMatch, args *matchArgs) string {
		p := postgresMatch{args: args}
		where := p.where(m)
		score := "-(" + strings.Join(p.ranks, " + ") + ")::float8"
		if f.newest {
			score = "-e.sent_at::float8"
		}
		return `WITH c AS MATERIALIZED (SELECT e.id, ` + score + ` AS score FROM ` + p.from + `emails e WHERE e.id BETWEEN $1 AND $2` + where + `
			AND ($3 = '' OR e.inbox_id = ANY (string_to_array($3, ',')::bigint[])) AND e.sent_at BETWEEN $4 AND $5` + undated("e.sent_at", f.dated) + ` LIMIT $6)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c, (SELECT coalesce((SELECT score FROM c WHERE id = $8), $9) AS at) a
			WHERE c.score > a.at OR c.score = a.at AND c.id < $8 ORDER BY c.score, c.id DESC LIMIT $7`
	},
	walk: func(dated bool, m mailMatch, args *matchArgs) string {
		p := postgresMatch{args: args}
		where := p.where(m)
		return `SELECT e.id, e.sent_at FROM ` + p.from + `unnest(string_to_array($1, ',')::bigint[]) i CROSS JOIN LATERAL (SELECT e.id, e.sent_at FROM emails e
		WHERE e.inbox_id = i AND e.sent_at BETWEEN $2 AND $3 AND (e.sent_at < $4 OR e.id < $5)
		` + undated("e.sent_at", dated) + where + ` ORDER BY e.sent_at DESC, e.id DESC LIMIT $6) e
		ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found: `SELECT ` + foundColumns + ` FROM emails e WHERE e.id = ANY (string_to_array($1, ',')::bigint[])`,
	most:  20_000,
}

// postgresMatch writes conditions on the mails e. Each text is read once, by a function in front of the mails.
type postgresMatch struct {
	args  *matchArgs
	from  string
	ranks []string // how well a mail matches each text
}

func (p *postgresMatch) where(m mailMatch) (where string) {
	for _, a := range m.all {
		where += " AND (" + p.ask(a, true) + ")"
	}
	if !m.none.none() {
		where += " AND NOT (" + p.ask(m.none, false) + ")"
	}
	return where
}

func (p *postgresMatch) ask(a mailAsk, ranks bool) string {
	var list []string
	ask := func(column, config, text string) {
		if text == "" {
			return
		}
		q := "q" + strconv.Itoa(len(p.args.list))
		p.from += "to_tsquery('" + config + "', " + p.args.add(text) + ") " + q + ", "
		list = append(list, "e."+column+" @@ "+q)
		if ranks {
			p.ranks = append(p.ranks, "ts_rank('{0.25, 0.125, 0.5, 1.0}', e."+column+", "+q+", 1)")
		}
	}
	ask("words", "reeve_mail", a.forms)
	ask("written", "simple", a.written)
	return strings.Join(list, " OR ")
}
