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

// mailWords is how an engine's full-text index is asked. It is all that the two say differently about mail.
type mailWords struct {
	term   func(MailTerm) string // one term
	and    string
	or     string
	not    string // between what is asked for and what is ruled out
	search string // $1 what, $2 and $3 ids, $4 and $5 times, $6 how many
	list   string // $1 an inbox, $2 and $3 times, $4 how many, $5 what is ruled out, $6 what is asked for; both may be empty
	marked string // $1 what, $2 an id: the snippets of sender, recipients and attachments
	cut    func(snippet) string
}

// snippet is a text in which an engine marked what matched; Text is the original where the engine marked a copy.
type snippet struct {
	marked, text string
	words        int
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

const (
	open, closed = "<mark>", "</mark>"

	hitColumns = `e.id, e.inbox_id, e.message_id, e.folder, e.subject, e.sender, e.sent_at, `
)

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
	search: `SELECT ` + hitColumns + `emails_words.rank, snippet(emails_words, 0, '<mark>', '</mark>', '…', 32), snippet(emails_words, 1, '<mark>', '</mark>', '…', 48), ''
		FROM emails_words JOIN emails e ON e.id = emails_words.rowid
		WHERE emails_words MATCH $1 AND emails_words.rowid BETWEEN $2 AND $3 AND e.sent_at BETWEEN $4 AND $5 ORDER BY emails_words.rank LIMIT $6`,
	list: `SELECT ` + hitColumns + `0.0, e.subject, substr(e.body, 1, 400), '' FROM emails e WHERE e.inbox_id = $1 AND e.sent_at BETWEEN $2 AND $3
		AND ($5 = '' OR e.id NOT IN (SELECT rowid FROM emails_words WHERE emails_words MATCH $5))
		AND ($6 = '' OR e.id IN (SELECT rowid FROM emails_words WHERE emails_words MATCH $6)) ORDER BY e.sent_at DESC, e.id DESC LIMIT $4`,
	marked: `SELECT snippet(emails_words, 2, '<mark>', '</mark>', '…', 24), snippet(emails_words, 3, '<mark>', '</mark>', '…', 24), snippet(emails_words, 4, '<mark>', '</mark>', '…', 24), '', '', ''
		FROM emails_words WHERE emails_words MATCH $1 AND emails_words.rowid = $2`,
	cut: func(s snippet) string { return s.marked },
}

// weights are the labels that PostgreSQL's index knows the fields by.
var weights = map[MailField]string{SubjectField: "A", SenderField: "B", ReceiverField: "C", BodyField: "D", AttachedField: "D"}

// PostgreSQL marks a copy of the text in which signs are spaces, since its parser would take an address for one word. The marks are then put into the original.
const headline = `ts_headline('reeve_mail', reeve_plain(%), q, 'HighlightAll=true, StartSel=` + "\x01, StopSel=\x02" + `')`

func headlineOf(column string) string { return strings.Replace(headline, "%", column, 1) }

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
	search: `SELECT ` + hitColumns + `-f.score, ` + headlineOf("e.subject") + `, ` + headlineOf("left(e.body, 262144)") + `, left(e.body, 262144)
		FROM to_tsquery('reeve_mail', $1) q CROSS JOIN LATERAL (SELECT id, ts_rank('{0.25, 0.125, 0.5, 1.0}', words, q, 1)::float8 AS score FROM emails
			WHERE words @@ q AND id BETWEEN $2 AND $3 AND sent_at BETWEEN $4 AND $5 ORDER BY score DESC, id DESC LIMIT $6) f
		JOIN emails e ON e.id = f.id ORDER BY f.score DESC, e.id DESC`,
	list: `SELECT ` + hitColumns + `0.0::float8, e.subject, substr(e.body, 1, 400), '' FROM emails e WHERE e.inbox_id = $1 AND e.sent_at BETWEEN $2 AND $3
		AND ($5 = '' OR NOT e.words @@ to_tsquery('reeve_mail', $5)) AND ($6 = '' OR e.words @@ to_tsquery('reeve_mail', $6)) ORDER BY e.sent_at DESC, e.id DESC LIMIT $4`,
	marked: `SELECT ` + headlineOf("e.sender") + `, ` + headlineOf("e.recipients") + `, ` + headlineOf("e.attached") + `, e.sender, e.recipients, e.attached
		FROM emails e, to_tsquery('reeve_mail', $1) q WHERE e.id = $2`,
	cut: snippet.cut,
}
