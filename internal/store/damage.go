package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"reeve"
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

// err is what is wrong with a row that is not to be used at all.
func (d *damage) err() error {
	if len(d.columns) == 0 {
		return nil
	}
	return unfit(strings.Join(d.columns, ", ") + " cannot be read")
}

// unfit says which columns of a row cannot be read.
type unfit string

func (u unfit) Error() string { return string(u) }

// count reads a number, which is never less than 0.
func (d *damage) count(column string, n number) int64 {
	if !n.damaged && n.value < 0 {
		n = number{damaged: true, was: n.value}
	}
	if n.damaged {
		d.note(column, n.was)
	}
	return n.value
}

// truth reads what flag wrote.
func (d *damage) truth(column string, n number) bool {
	if !n.damaged && n.value > 1 {
		n = number{damaged: true, was: n.value}
	}
	return d.count(column, n) == 1
}

// word checks that a column holds one of the words that are known. What it does hold is kept, and so written back.
func (d *damage) word(column, s string, known bool) {
	if !known {
		d.note(column, s)
	}
}

// whole reads JSON that is kept as it is.
func (d *damage) whole(column, s string) json.RawMessage {
	if s != "" && !(json.Valid([]byte(s)) && utf8.ValidString(s)) {
		d.note(column, s)
		return nil
	}
	return raw(s)
}

// object reads JSON that is kept as it is, and is an object.
func (d *damage) object(column, s string) json.RawMessage {
	if !strings.HasPrefix(strings.TrimSpace(s), "{") {
		d.note(column, s)
		return nil
	}
	return d.whole(column, s)
}

// readBack reads what text wrote and nothing else: what is left out, null, or under a name that is not known would be lost without a word, and may have forbidden something.
func readBack[T any](d *damage, column, s string, v *T, valid func(T) bool) {
	if fromText(s, v) == nil && same(text(*v), s) && (valid == nil || valid(*v)) {
		return
	}
	d.note(column, s)
	*v = *new(T)
}

// same tells whether two texts are the same JSON, whatever the space in it.
func same(a, b string) bool {
	if a == b {
		return true
	}
	one, err := reeve.Canonical([]byte(a))
	if err != nil {
		return false
	}
	two, err := reeve.Canonical([]byte(b))
	return err == nil && bytes.Equal(one, two)
}

// readInto reads what text wrote, or nothing, where that stands for none. Half of it would pass for the whole, so what is damaged is read as nothing.
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
