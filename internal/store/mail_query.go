package store

import (
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

// mailWords is how an engine's full-text index is asked. It is all that the two say differently about mail.
type mailWords struct {
	term func(MailTerm) string // one term
	and  string
	or   string
	not  string // between what is asked for and what is ruled out
	rank func(rankForm) string
	// dated leaves mails without a date out. $1 inboxes, $2 and $3 times, $4 and $5 the time and the id to begin behind, $6 how many, $7 what is asked for, $8 what is ruled
	// out; both may be empty
	walk  func(dated bool) string
	found string // $1 ids, $2 how many characters of their text
	most  int    // how many mails are ranked
	bm25  bool   // scores are those of BM25, which tell how rare the words are
}

// rankForm says what is left out of a statement that ranks: $1 what, $2 and $3 the first and last id, $4 inboxes, $5 and $6 times, $7 how many to rank, $8 how many to give,
// $9 and $10 the mail to begin behind and the score it had. It gives ids and scores, the least first, and how many were ranked.
type rankForm struct {
	newest bool // the score is the mail's age
	some   bool // not every inbox between the ids
	dated  bool // the times matter; mails without a date are left out
	after  bool
	count  bool // how many were ranked is wanted; otherwise it may be left at 0
}

// text writes a query in the engine's own language.
func (w mailWords) text(q MailQuery) string {
	var all []string
	for _, any := range q.All {
		all = append(all, w.any(any))
	}
	s := strings.Join(all, w.and)
	if len(q.None) > 0 {
		s = "(" + s + ")" + w.not + w.any(q.None)
	}
	return s
}

func (w mailWords) any(terms []MailTerm) string {
	var some []string
	for _, t := range terms {
		some = append(some, w.term(t))
	}
	return "(" + strings.Join(some, w.or) + ")"
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
	rank: func(f rankForm) string {
		// The mails' own table is read only where it must be: the index alone answers in a fraction of the time. Ranking costs more than all else together, so it is not
		// left to the index, which would sort every match with all its places.
		score, join, where, after := "emails_words.rank", "", "", ""
		if f.newest {
			score = "CAST(-e.sent_at AS REAL)"
		}
		if f.newest || f.dated {
			join = " CROSS JOIN emails e ON e.id = emails_words.rowid"
		}
		if f.some {
			where += ` AND emails_words.rowid >> 28 IN (SELECT value FROM json_each('[' || $4 || ']'))`
		}
		if f.dated {
			where += ` AND e.sent_at BETWEEN $5 AND $6` + undated("e.sent_at", true)
		}
		if f.after { // the score it has now: it moves a little when mail is added
			after = `, (SELECT coalesce((SELECT score FROM c WHERE id = $9), $10) AS at) a WHERE c.score > a.at OR c.score = a.at AND c.id < $9`
		}
		matches := `SELECT emails_words.rowid AS id, ` + score + ` AS score FROM emails_words` + join + `
			WHERE emails_words MATCH $1 AND emails_words.rowid BETWEEN $2 AND $3` + where + ` LIMIT $7`
		if !f.count { // then nothing is written down
			return `SELECT c.id, c.score, 0 FROM (` + matches + `) c ORDER BY c.score, c.id DESC LIMIT $8`
		}
		return `WITH c AS MATERIALIZED (` + matches + `)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c` + after + ` ORDER BY c.score, c.id DESC LIMIT $8`
	},
	walk: func(dated bool) string {
		return `SELECT e.id, e.sent_at FROM json_each('[' || $1 || ']') i CROSS JOIN emails e WHERE e.id IN (SELECT id FROM emails WHERE inbox_id = i.value AND sent_at BETWEEN $2 AND $3 AND (sent_at < $4 OR id < $5)
		` + undated("sent_at", dated) + ` AND ($7 = '' OR id IN (SELECT rowid FROM emails_words WHERE emails_words MATCH $7)) AND ($8 = '' OR id NOT IN (SELECT rowid FROM emails_words WHERE emails_words MATCH $8))
		ORDER BY sent_at DESC, id DESC LIMIT $6) ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found: `SELECT ` + foundColumns + ` FROM emails e WHERE e.id IN (SELECT value FROM json_each('[' || $1 || ']'))`,
	most:  100_000,
	bm25:  true,
}

// weights are the labels that PostgreSQL's index knows the fields by.
var weights = map[MailField]string{SubjectField: "A", SenderField: "B", ReceiverField: "C", BodyField: "D", AttachedField: "D"}

var postgresWords = mailWords{
	term: func(t MailTerm) string {
		in := func(weight string) string {
			var words []string
			for i, w := range t.Words {
				if w = "'" + unmarked(w) + "'"; t.Prefix && i == len(t.Words)-1 {
					w += ":*" + weight
				} else if weight != "" {
					w += ":" + weight
				}
				words = append(words, w)
			}
			return "(" + strings.Join(words, " <-> ") + ")"
		}
		switch {
		case t.Field != AnyField:
			return in(weights[t.Field])
		case len(t.Words) == 1:
			return in("")
		}
		return "(" + in("A") + " | " + in("B") + " | " + in("C") + " | " + in("D") + ")" // words in a row are in one field
	},
	and: " & ", or: " | ", not: " & !",
	rank: func(f rankForm) string {
		score := "-ts_rank('{0.25, 0.125, 0.5, 1.0}', e.words, q, 1)::float8"
		if f.newest {
			score = "-e.sent_at::float8"
		}
		return `WITH c AS MATERIALIZED (SELECT e.id, ` + score + ` AS score FROM to_tsquery('reeve_mail', $1) q, emails e WHERE e.words @@ q AND e.id BETWEEN $2 AND $3
			AND ($4 = '' OR e.inbox_id = ANY (string_to_array($4, ',')::bigint[])) AND e.sent_at BETWEEN $5 AND $6` + undated("e.sent_at", f.dated) + ` LIMIT $7)
			SELECT c.id, c.score, (SELECT count(*) FROM c) FROM c, (SELECT coalesce((SELECT score FROM c WHERE id = $9), $10) AS at) a
			WHERE c.score > a.at OR c.score = a.at AND c.id < $9 ORDER BY c.score, c.id DESC LIMIT $8`
	},
	walk: func(dated bool) string {
		return `SELECT e.id, e.sent_at FROM unnest(string_to_array($1, ',')::bigint[]) i CROSS JOIN LATERAL (SELECT id, sent_at FROM emails WHERE inbox_id = i AND sent_at BETWEEN $2 AND $3 AND (sent_at < $4 OR id < $5)
		` + undated("sent_at", dated) + ` AND ($7 = '' OR words @@ to_tsquery('reeve_mail', $7)) AND ($8 = '' OR NOT words @@ to_tsquery('reeve_mail', $8)) ORDER BY sent_at DESC, id DESC LIMIT $6) e
		ORDER BY e.sent_at DESC, e.id DESC LIMIT $6`
	},
	found: `SELECT ` + foundColumns + ` FROM emails e WHERE e.id = ANY (string_to_array($1, ',')::bigint[])`,
	most:  20_000,
}
