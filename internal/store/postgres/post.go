package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"reeve/internal/store"
)

// Most transactions are a few statements that give nothing back, and go as one batch. What pgx does for each of them, and for each of their arguments, costs more than writing them does, and it asks the
// server each time what rows such a statement gives. So they are written here as the protocol has them: for each a Bind and an Execute, then a Sync, which ends the transaction that they are.

// mostPosted is how many statements are sent so. The server answers each while others are still being sent, and of so many the answers have room.
const mostPosted = 256

// postable tells whether statements can be sent so.
func postable(held []statement) bool {
	for _, s := range held {
		if s.read != nil {
			return false
		}
		for _, a := range s.args {
			switch a.(type) {
			case string, []byte, int, int64:
			default:
				return false
			}
		}
	}
	return len(held) <= mostPosted
}

// post sends statements as one transaction, and waits for what becomes of it.
func (t *conn) post(ctx context.Context, held []statement) error {
	mail := newMail()
	defer mail.done()
	_ = t.hurry(t.engine.haste.enter(t)) // one that is shut says so itself
	for _, s := range held {
		known, err := t.c.Prepare(ctx, s.query, s.query)
		if err != nil {
			return s.judge(t.fault(err))
		}
		mail.add(known, s.args)
	}
	mail.end()
	if n, err := t.c.PgConn().Conn().Write(mail.b); err != nil {
		_ = t.c.Close(ctx)
		if n == 0 {
			return store.Fault{Kind: store.FaultDown, Err: err} // it has heard nothing
		}
		return t.unsure(t.fault(err))
	}
	if err := t.heard(ctx, held); err != nil {
		return t.unsure(err)
	}
	return t.settled(nil)
}

// heard reads the answers up to the last. After a statement that was refused there is none to those behind it.
func (t *conn) heard(ctx context.Context, held []statement) (refusal error) {
	for done := 0; ; {
		m, err := t.c.PgConn().Frontend().Receive()
		if err != nil {
			_ = t.c.Close(ctx)
			return t.fault(errors.Join(refusal, err))
		}
		switch m := m.(type) {
		case *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse:
			done++
		case *pgproto3.ErrorResponse:
			refusal = t.fault(pgconn.ErrorResponseToPgError(m))
			if done < len(held) { // otherwise it is the commit's
				refusal = held[done].judge(refusal)
			}
		case *pgproto3.ReadyForQuery:
			return refusal
		}
	}
}

// mail is what is being written to the server.
type mail struct{ b []byte }

// mails are those that are written to again.
var mails = sync.Pool{New: func() any { return &mail{} }}

func newMail() *mail { return mails.Get().(*mail) }

func (m *mail) done() {
	if m.b = m.b[:0]; cap(m.b) <= 1<<20 { // what was large once is no reason to hold as much for good
		mails.Put(m)
	}
}

// add writes a statement and its arguments.
func (m *mail) add(known *pgconn.StatementDescription, args []any) {
	m.part('B', func() {
		m.b = append(m.b, 0) // a portal without a name
		m.b = append(append(m.b, known.Name...), 0)
		m.short(len(known.ParamOIDs))
		for _, is := range known.ParamOIDs {
			if is == pgtype.ByteaOID {
				m.short(1) // as they are
			} else {
				m.short(0) // as text
			}
		}
		m.short(len(args))
		for _, a := range args {
			m.measured(func() { m.value(a) })
		}
		m.short(0) // the rows, of which there are none, as text
	})
	m.part('E', func() { m.b = append(m.b, 0, 0, 0, 0, 0) }) // that portal, and all of its rows
}

// end has the server make the transaction, and answer.
func (m *mail) end() { m.part('S', func() {}) }

func (m *mail) value(a any) {
	switch v := a.(type) {
	case string:
		m.b = append(m.b, v...)
	case []byte:
		m.b = append(m.b, v...)
	case int:
		m.b = strconv.AppendInt(m.b, int64(v), 10)
	case int64:
		m.b = strconv.AppendInt(m.b, v, 10)
	}
}

func (m *mail) short(n int) { m.b = binary.BigEndian.AppendUint16(m.b, uint16(n)) }

// part writes a message: its kind, its length with that of the length, and what it says.
func (m *mail) part(kind byte, write func()) {
	m.b = append(m.b, kind, 0, 0, 0, 0)
	at := len(m.b)
	write()
	binary.BigEndian.PutUint32(m.b[at-4:], uint32(len(m.b)-at+4))
}

// measured writes something behind its length.
func (m *mail) measured(write func()) {
	m.b = append(m.b, 0, 0, 0, 0)
	at := len(m.b)
	write()
	binary.BigEndian.PutUint32(m.b[at-4:], uint32(len(m.b)-at))
}
