package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// damage gathers the columns of a row that cannot be read. Such a row is one broken thing, and harms no other.
type damage struct {
	of      string // default: its row
	columns []string
	was     map[string]any // what is in them
}

func (d *damage) note(column string, was any) {
	if d.was == nil {
		d.was = map[string]any{}
	}
	d.columns, d.was[column] = append(d.columns, column), was
}

// String says what is wrong with the row; empty means nothing.
func (d *damage) String() string {
	if len(d.columns) == 0 {
		return ""
	}
	return cmp.Or(d.of, "its row") + " in the database is damaged: " + strings.Join(d.columns, ", ") + " cannot be read"
}

func (d *damage) count(column string, n number) int64 {
	if n.damaged {
		d.note(column, n.was)
	}
	return n.value
}

// whole reads JSON that is kept as it is.
func (d *damage) whole(column, s string) json.RawMessage {
	if s != "" && !(json.Valid([]byte(s)) && utf8.ValidString(s)) {
		d.note(column, s)
		return nil
	}
	return raw(s)
}

// readInto reads what text wrote. Half of it would pass for the whole, so what is damaged is read as nothing.
func readInto[T any](d *damage, column, s string, v *T) {
	if fromText(s, v) != nil {
		d.note(column, s)
		*v = *new(T)
	}
}

// number is a column of whole numbers. SQLite keeps in one whatever was put there, and what is no whole number is told apart.
type number struct {
	value   int64
	damaged bool
	was     any
}

// Scan never fails: one damaged column would make the whole list unreadable.
func (n *number) Scan(src any) error {
	v, ok := src.(int64)
	*n = number{value: v, damaged: !ok}
	if b, is := src.([]byte); is {
		src = bytes.Clone(b) // which is the driver's
	}
	if !ok {
		n.was = src
	}
	return nil
}
