package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Numbers of the sections of a WebAssembly module.
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

var errModule = errors.New("unexpected WebAssembly module")

// section is one section of a module.
type section struct {
	id   byte
	body []byte
}

// module is a WebAssembly module.
type module []section

// parseModule splits a module into its sections, without the custom ones, which only debuggers read.
func parseModule(b []byte) (m module, err error) {
	b, ok := bytes.CutPrefix(b, header)
	if !ok {
		return nil, errModule
	}
	for r := (reader{b: b}); len(r.b) > 0; {
		s := section{id: r.byte(), body: r.bytes(int(r.number()))}
		if r.bad {
			return nil, errModule
		}
		if s.id != sectionCustom {
			m = append(m, s)
		}
	}
	return m, nil
}

// encode returns the module in binary form.
func (m module) encode() []byte {
	out := slices.Clone(header)
	for _, s := range m {
		out = append(appendUnsigned(append(out, s.id), uint64(len(s.body))), s.body...)
	}
	return out
}

// get returns the content of a section, or nil if there is none.
func (m module) get(id byte) []byte {
	for _, s := range m {
		if s.id == id {
			return s.body
		}
	}
	return nil
}

// set replaces the content of a section.
func (m module) set(id byte, body []byte) error {
	for i := range m {
		if m[i].id == id {
			m[i].body = body
			return nil
		}
	}
	return fmt.Errorf("%w: section %d is missing", errModule, id)
}

// addEntry appends an entry to a section that is a list, and returns its index.
func (m module) addEntry(id byte, entry []byte) (index uint64, err error) {
	r := reader{b: m.get(id)}
	n := r.number()
	if r.bad {
		return 0, fmt.Errorf("%w: section %d", errModule, id)
	}
	return n, m.set(id, append(append(appendUnsigned(nil, n+1), r.b...), entry...))
}

// addExport exports a function, memory or global variable under a name.
func (m module) addExport(name string, kind byte, index uint64) error {
	_, err := m.addEntry(sectionExport, appendUnsigned(append(append(appendUnsigned(nil, uint64(len(name))), name...),
		kind), index))
	return err
}

// countImports returns the number of imported functions, which have the first indexes. The interpreter imports only
// functions.
func (m module) countImports() uint64 {
	r := reader{b: m.get(sectionImport)}
	return r.number()
}

// findElement returns the index of the function at a position of the table. The interpreter's table has one segment of
// plain function indexes.
func (m module) findElement(at uint64) (function uint64, err error) {
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

// addCaller adds a function without parameters that calls another one with args and discards its result. It returns the
// index of the new function.
func (m module) addCaller(function uint64, args ...int32) (index uint64, err error) {
	kind, err := m.addEntry(sectionType, []byte{typeFunc, 0, 0})
	if err != nil {
		return 0, err
	}
	defined, err := m.addEntry(sectionFunction, appendUnsigned(nil, kind))
	if err != nil {
		return 0, err
	}
	body := []byte{0} // no local variables
	for _, a := range args {
		body = appendSigned(append(body, opI32Const), a)
	}
	body = append(appendUnsigned(append(body, opCall), function), opDrop, opEnd)
	_, err = m.addEntry(sectionCode, append(appendUnsigned(nil, uint64(len(body))), body...))
	return m.countImports() + defined, err
}

// setInitialState returns a module whose machines start with memory of this size and with stack in the only global
// variable. The content of the memory is not part of the module.
func (m module) setInitialState(memory int, stack int32) (module, error) {
	r := reader{b: m.get(sectionMemory)}
	if n, flags := r.number(), r.number(); r.bad || n != 1 || flags != 0 {
		return nil, fmt.Errorf("%w: memory", errModule)
	}
	r = reader{b: m.get(sectionGlobal)}
	if n := r.number(); r.bad || n != 1 {
		return nil, fmt.Errorf("%w: global variables", errModule)
	}
	m = slices.DeleteFunc(m, func(s section) bool { return s.id == sectionData })
	return m, errors.Join(m.set(sectionMemory, appendUnsigned([]byte{1, 0}, uint64(memory>>16))),
		m.set(sectionGlobal, append(appendSigned([]byte{1, typeI32, 1, opI32Const}, stack), opEnd)))
}

// reader decodes a section. After the first invalid value, bad is true and all further values are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.bytes(1); p != nil {
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

// appendUnsigned appends a number in unsigned LEB128 encoding.
func appendUnsigned(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// appendSigned appends a number in signed LEB128 encoding.
func appendSigned(b []byte, n int32) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
