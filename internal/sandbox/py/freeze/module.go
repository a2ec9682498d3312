package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Sections of a WebAssembly module, by their numbers.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
)

const (
	kindFunction = 0
	kindMemory   = 2
	kindGlobal   = 3

	opEnd      = 0x0b
	opCall     = 0x10
	opDrop     = 0x1a
	opI32Const = 0x41
	typeI32    = 0x7f
	typeFunc   = 0x60
)

var header = []byte("\x00asm\x01\x00\x00\x00")

var errModule = errors.New("not a WebAssembly module of the kind expected")

// section is a part of a module.
type section struct {
	id   byte
	body []byte
}

// module is a program, in its sections.
type module []section

// parse takes a module apart, and leaves out custom sections, which only debuggers read.
func parse(b []byte) (m module, err error) {
	b, ok := bytes.CutPrefix(b, header)
	if !ok {
		return nil, errModule
	}
	for r := (reader{b: b}); len(r.b) > 0; {
		s := section{id: r.byte(), body: r.take(int(r.number()))}
		if r.bad {
			return nil, errModule
		}
		if s.id != sectionCustom {
			m = append(m, s)
		}
	}
	return m, nil
}

// bytes puts a module together.
func (m module) bytes() []byte {
	out := slices.Clone(header)
	for _, s := range m {
		out = append(number(append(out, s.id), uint64(len(s.body))), s.body...)
	}
	return out
}

// get is a section's content; nil if there is none.
func (m module) get(id byte) []byte {
	for _, s := range m {
		if s.id == id {
			return s.body
		}
	}
	return nil
}

// set replaces a section.
func (m module) set(id byte, body []byte) error {
	for i := range m {
		if m[i].id == id {
			m[i].body = body
			return nil
		}
	}
	return fmt.Errorf("%w: section %d is missing", errModule, id)
}

// add appends an entry to a section that is a list.
func (m module) add(id byte, entry []byte) (index uint64, err error) {
	r := reader{b: m.get(id)}
	n := r.number()
	if r.bad {
		return 0, fmt.Errorf("%w: section %d", errModule, id)
	}
	return n, m.set(id, append(append(number(nil, n+1), r.b...), entry...))
}

// export gives something a name.
func (m module) export(name string, kind byte, index uint64) error {
	_, err := m.add(sectionExport, number(append(append(number(nil, uint64(len(name))), name...), kind), index))
	return err
}

// imports counts the functions that come from outside, which have the first numbers. The modules at hand import nothing
// else.
func (m module) imports() uint64 {
	r := reader{b: m.get(sectionImport)}
	return r.number()
}

// element is the function at a place of the table. The modules at hand have one segment of plain function numbers.
func (m module) element(at uint64) (function uint64, err error) {
	r := reader{b: m.get(sectionElement)}
	segments, flags := r.number(), r.number()
	op, first, end := r.byte(), r.number(), r.byte()
	n := r.number()
	if r.bad || segments != 1 || flags != 0 || op != opI32Const || end != opEnd || at < first || at >= first+n {
		return 0, fmt.Errorf("%w: no function at %d of the table", errModule, at)
	}
	for range at - first + 1 {
		function = r.number()
	}
	if r.bad {
		return 0, errModule
	}
	return function, nil
}

// caller adds a function without arguments or results that calls another one with these arguments and forgets what it
// gives.
func (m module) caller(function uint64, args ...int32) (index uint64, err error) {
	kind, err := m.add(sectionType, []byte{typeFunc, 0, 0})
	if err != nil {
		return 0, err
	}
	defined, err := m.add(sectionFunction, number(nil, kind))
	if err != nil {
		return 0, err
	}
	body := []byte{0} // no local variables
	for _, a := range args {
		body = signed(append(body, opI32Const), a)
	}
	body = append(number(append(body, opCall), function), opDrop, opEnd)
	_, err = m.add(sectionCode, append(number(nil, uint64(len(body))), body...))
	return m.imports() + defined, err
}

// restart makes a module begin where a machine stands: with memory of this size, which is filled by others, and this
// number in the global variable that is its only one.
func (m module) restart(memory int, stack int32) (module, error) {
	r := reader{b: m.get(sectionMemory)}
	if n, flags := r.number(), r.number(); r.bad || n != 1 || flags != 0 {
		return nil, fmt.Errorf("%w: memory", errModule)
	}
	r = reader{b: m.get(sectionGlobal)}
	if n := r.number(); r.bad || n != 1 {
		return nil, fmt.Errorf("%w: global variables", errModule)
	}
	m = slices.DeleteFunc(m, func(s section) bool { return s.id == sectionData })
	return m, errors.Join(m.set(sectionMemory, number([]byte{1, 0}, uint64(memory>>16))),
		m.set(sectionGlobal, append(signed([]byte{1, typeI32, 1, opI32Const}, stack), opEnd)))
}

// reader takes bytes apart. After the first thing that does not add up, bad is set and everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) number() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[k:]
	return n
}

// number appends a number as WebAssembly writes those without a sign.
func number(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// signed appends a number as WebAssembly writes those with one.
func signed(b []byte, n int32) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
