package store

import (
	"strconv"
	"strings"
)

// MailQuery selects mails that match at least one term of each list in All and no term of None.
type MailQuery struct {
	All  [][]MailTerm
	None []MailTerm
}

// MailTerm is a word or a sequence of words.
type MailTerm struct {
	Field  MailField // the field that must contain it. Default: any field
	Words  []string  // letters and digits only
	Prefix bool      // the last word is a prefix
}

// IsExact reports whether the term matches words as they are written, instead of their stems. Prefixes do not work
// with stems, and names must not match by stems: Harry is not Harris.
func (t MailTerm) IsExact() bool {
	return t.Prefix || t.Field == SenderField || t.Field == ReceiverField
}

// MailField is a part of a mail that can be searched separately.
type MailField string

// The searchable fields.
const (
	AnyField      MailField = ""
	SubjectField  MailField = "subject"
	BodyField     MailField = "body"
	SenderField   MailField = "sender"
	ReceiverField MailField = "recipients"
	AttachedField MailField = "attached"
)

// hasTerms reports whether the query has terms that must match.
func (q MailQuery) hasTerms() bool { return len(q.All) > 0 }

// countTerms returns the number of terms that may match, and whether all of them must match.
func (q MailQuery) countTerms() (n int, all bool) {
	for _, any := range q.All {
		n += len(any)
	}
	return n, n == len(q.All)
}

// mailDialect is an engine's dialect of full-text search. It contains all differences between the engines for mail.
type mailDialect struct {
	term func(MailTerm) string // renders one term
	and  string
	or   string
	not  string // between required and excluded terms
	rank func(rankOptions, compiledQuery, *matchArgs) string
	// walk returns the statement for the newest mails. dated leaves out mails without a date. Parameters: $1 inboxes,
	// $2 and $3 time range, $4 and $5 time and id of the last mail of the previous page, $6 limit, then args.
	walk      func(dated bool, m compiledQuery, args *matchArgs) string
	found     string // statement for the mails of a page: $1 ids, $2 number of characters of the body
	maxRanked int    // the number of mails that are ranked
	bm25      bool   // scores are BM25 scores, which depend on how rare the words are
}

// rankOptions selects the parts of a ranking statement. Its parameters are: $1 and $2 first and last id, $3 inboxes, $4
// and $5 time range, $6 number of mails to rank, $7 limit, $8 and $9 id and score of the last mail of the previous
// page, then the args of the query. It returns ids and scores, lowest first, and the number of ranked mails.
type rankOptions struct {
	newest bool // order by age
	some   bool // restrict to the inboxes in $3
	dated  bool // restrict to the time range and leave out mails without a date
	after  bool
	count  bool // return the number of ranked mails; without count, the number may be 0
}

// indexQuery is a condition in the engine's query language: a mail matches either text. An empty text matches nothing.
type indexQuery struct {
	forms   string // query for the index of stems
	written string // query for the index of words as written
}

func (a indexQuery) isEmpty() bool { return a == indexQuery{} }

// usesBoth reports whether the condition uses both indexes.
func (a indexQuery) usesBoth() bool { return a.forms != "" && a.written != "" }

// compiledQuery is a query in the engine's query language.
type compiledQuery struct {
	all  []indexQuery // each must match; those that use one index come first
	none indexQuery   // must not match
}

// isSingle reports whether one query of one index is sufficient.
func (m compiledQuery) isSingle() bool {
	return len(m.all) == 1 && !m.all[0].usesBoth() && m.none.isEmpty()
}

// matchArgs collects the texts of a query as arguments after a statement's own.
type matchArgs struct {
	own  int // the number of the statement's own arguments
	list []any
}

func (a *matchArgs) add(text string) string {
	a.list = append(a.list, text)
	return "$" + strconv.Itoa(a.own+len(a.list))
}

// compile renders a query in the engine's query language. Terms for the same index become one text.
func (w mailDialect) compile(q MailQuery) (m compiledQuery) {
	var forms, written []string
	var mixed []indexQuery
	for _, any := range q.All {
		switch a := w.anyOf(any); {
		case a.usesBoth():
			mixed = append(mixed, a)
		case a.forms != "":
			forms = append(forms, a.forms)
		default:
			written = append(written, a.written)
		}
	}
	m.none = w.anyOf(q.None)
	// without joins the required terms and excludes none, if the same index can do that.
	without := func(list []string, none *string) string {
		s := strings.Join(list, w.and)
		if *none != "" {
			s, *none = "("+s+")"+w.not+*none, ""
		}
		return s
	}
	if len(forms) > 0 {
		m.all = append(m.all, indexQuery{forms: without(forms, &m.none.forms)})
	}
	if len(written) > 0 {
		m.all = append(m.all, indexQuery{written: without(written, &m.none.written)})
	}
	m.all = append(m.all, mixed...)
	return m
}

// anyOf returns the condition that any of the terms matches.
func (w mailDialect) anyOf(terms []MailTerm) indexQuery {
	var forms, written []string
	for _, t := range terms {
		if t.IsExact() {
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
	return indexQuery{forms: any(forms), written: any(written)}
}

const foundColumns = `e.id, e.inbox_id, e.message_id, e.folder, e.subject, e.sender, e.sent_at, e.recipients,
	e.attached, substr(e.body, 1, $2)`

// excludeUndated returns the condition that a mail has a date, if exclude is true. 0 means no date.
func excludeUndated(column string, exclude bool) string {
	if !exclude {
		return ""
	}
	return ` AND ` + column + ` <> 0`
}

// mailSearchDialect returns the dialect of this store's engine.
func (db *DB) mailSearchDialect() mailDialect {
	if db.Engine() == "postgres" {
		return postgresMail
	}
	return sqliteMail
}

var sqliteMail = mailDialect{
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
	rank: func(f rankOptions, m compiledQuery, args *matchArgs) string {
		// The table of mails is joined only if needed, because the index alone takes a fraction of the time. Sorting is
		// not left to the index, which would sort every match together with its positions.
		table, where := sqliteSource(m.all[0], args)
		score, join, after := "i.rank", "", ""
		if f.newest {
			score = "CAST(-e.sent_at AS REAL)"
		}
		if f.newest || f.dated {
			join = " CROSS JOIN emails e ON e.id = i.rowid"
		}
		where += sqliteFilter("i.rowid", compiledQuery{all: m.all[1:], none: m.none}, args)
		if f.some {
			where += ` AND i.rowid >> 28 IN (SELECT value FROM json_each('[' || $3 || ']'))`
		}
		if f.dated {
			where += ` AND e.sent_at BETWEEN $4 AND $5` + excludeUndated("e.sent_at", true)
		}
		if f.after { // the current score, because scores change slightly when mail is added
			after = `, (SELECT coalesce((SELECT score FROM c WHERE id = $8), $9) AS at) a WHERE c.score > a.at
				OR c.score = a.at AND c.id < $8`
		}
		matches := `SELECT i.rowid AS id, ` + score + ` AS score FROM ` + table + join + `
			WHERE ` + where + ` LIMIT $6`
		if !f.count { // avoids materializing the matches
			return `SELECT c.id, c.score, 0 FROM (` + matches + `) c ORDER BY c.score, c.id DESC LIMIT $7`
		}
		return `WITH c AS MATERIALIZED (` + matches + `)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c` + after + ` ORDER BY c.score, c.id DESC LIMIT $7`
	},
	walk: func(dated bool, m compiledQuery, args *matchArgs) string {
		return `SELECT e.id, e.sent_at FROM json_each('[' || $1 || ']') i CROSS JOIN emails e WHERE e.id IN (SELECT id
			FROM emails WHERE inbox_id = i.value AND sent_at BETWEEN $2 AND $3 AND (sent_at < $4 OR id < $5)
		` + excludeUndated("sent_at", dated) + sqliteFilter("id", m, args) + `
		ORDER BY sent_at DESC, id DESC LIMIT $6) ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found: `SELECT ` + foundColumns + ` FROM emails e WHERE e.id IN (SELECT value
		FROM json_each('[' || $1 || ']'))`,
	maxRanked: 100_000,
	bm25:      true,
}

// sqliteSource returns the table i, with the columns rowid and rank, and the condition that select the matching mails.
func sqliteSource(a indexQuery, args *matchArgs) (table, where string) {
	const forms, written = "emails_words", "emails_written"
	is := func(of, table, text string) string {
		return of + table + ` MATCH ` + args.add(text) + ` AND ` + of + `rowid BETWEEN $1 AND $2`
	}
	switch {
	case a.usesBoth(): // the better of the two ranks
		return `(SELECT id AS rowid, min(rank) AS rank FROM (
			SELECT rowid AS id, rank FROM ` + forms + ` WHERE ` + is("", forms, a.forms) + ` UNION ALL
			SELECT rowid, rank FROM ` + written + ` WHERE ` + is("", written, a.written) + `) GROUP BY id) i`, "true"
	case a.written != "":
		return written + " i", is("i.", written, a.written)
	}
	return forms + " i", is("i.", forms, a.forms)
}

// sqliteFilter returns a condition that restricts an id to matching mails.
func sqliteFilter(id string, m compiledQuery, args *matchArgs) (where string) {
	ids := func(a indexQuery) string {
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
	if !m.none.isEmpty() {
		where += " AND " + id + " NOT IN " + ids(m.none)
	}
	return where
}

// postgresWeights are the weights that mark the fields in PostgreSQL's index.
var postgresWeights = map[MailField]string{SubjectField: "A", SenderField: "B", ReceiverField: "C", BodyField: "D",
	AttachedField: "D"}

var postgresMail = mailDialect{
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
		write, attached := stripMarks, stripMarks
		if t.IsExact() {
			write, attached = foldWord, foldAttachmentWord
		}
		if t.Field == AttachedField {
			return in(postgresWeights[t.Field], attached)
		} else if t.Field != AnyField {
			return in(postgresWeights[t.Field], write)
		}
		var some []string
		if len(t.Words) == 1 {
			some = append(some, in("", write))
		} else { // a sequence of words must be in one field
			some = append(some, in("A", write), in("B", write), in("C", write), in("D", write))
		}
		if t.IsExact() {
			some = append(some, in("D", attached))
		}
		return "(" + strings.Join(some, " | ") + ")"
	},
	and: " & ", or: " | ", not: " & !",
	rank: func(f rankOptions, m compiledQuery, args *matchArgs) string {
		p := postgresMatch{args: args}
		where := p.where(m)
		score := "-(" + strings.Join(p.ranks, " + ") + ")::float8"
		if f.newest {
			score = "-e.sent_at::float8"
		}
		return `WITH c AS MATERIALIZED (SELECT e.id, ` + score + ` AS score FROM ` + p.from + `emails e
			WHERE e.id BETWEEN $1 AND $2` + where + `
			AND ($3 = '' OR e.inbox_id = ANY (string_to_array($3, ',')::bigint[])) AND e.sent_at BETWEEN $4
			AND $5` + excludeUndated("e.sent_at", f.dated) + ` LIMIT $6)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c, (SELECT coalesce((SELECT score FROM c WHERE id = $8),
			$9) AS at) a
			WHERE c.score > a.at OR c.score = a.at AND c.id < $8 ORDER BY c.score, c.id DESC LIMIT $7`
	},
	walk: func(dated bool, m compiledQuery, args *matchArgs) string {
		p := postgresMatch{args: args}
		where := p.where(m)
		return `SELECT e.id, e.sent_at FROM ` + p.from + `unnest(string_to_array($1, ',')::bigint[]) i
			CROSS JOIN LATERAL (SELECT e.id, e.sent_at FROM emails e
		WHERE e.inbox_id = i AND e.sent_at BETWEEN $2 AND $3 AND (e.sent_at < $4 OR e.id < $5)
		` + excludeUndated("e.sent_at", dated) + where + ` ORDER BY e.sent_at DESC, e.id DESC LIMIT $6) e
		ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found:     `SELECT ` + foundColumns + ` FROM emails e WHERE e.id = ANY (string_to_array($1, ',')::bigint[])`,
	maxRanked: 20_000,
}

// postgresMatch builds conditions on the mails e. Each text is parsed once, by a function in the FROM clause.
type postgresMatch struct {
	args  *matchArgs
	from  string
	ranks []string // the rank of a mail for each text
}

func (p *postgresMatch) where(m compiledQuery) (where string) {
	for _, a := range m.all {
		where += " AND (" + p.condition(a, true) + ")"
	}
	if !m.none.isEmpty() {
		where += " AND NOT (" + p.condition(m.none, false) + ")"
	}
	return where
}

func (p *postgresMatch) condition(a indexQuery, ranks bool) string {
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
