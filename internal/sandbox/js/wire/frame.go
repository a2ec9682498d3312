// Package wire is what a script's host and its worker say to each other, and how it looks on the pipe between them.
// Neither side trusts the other's arithmetic: a frame longer than [MaxFrame], or a body that does not add up, ends the
// conversation.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is four bytes of length, one of kind, four of id, and a body. Numbers in bodies are varints, and everything
// of variable length says its length first.
const (
	MaxFrame  = 16 << 20 // kind, id and body
	MaxBody   = 8 << 20  // what one message may carry: the arguments of a call, a result, a source
	MaxArgs   = 256      // arguments of one call
	MaxPlaces = 50       // of a stack

	// MaxPending bounds the bytes of arguments of all calls that wait at once, which the host's process has to hold.
	MaxPending = 32 << 20

	head = 4 + 1 + 4
)

// Kind says what a frame means.
type Kind byte

// The kinds.

const (
	// From the host.
	KindStart   Kind = iota + 1 // the script and its limits
	KindResolve                 // a call's result
	KindReject                  // a call's error
	KindInvoke                  // call a function that the script handed over
	KindStop                    // the time is over
	KindAbort                   // the run ends for what a call did: say where that was made, and nothing else

	// From the worker.
	KindReady    // it can take a script
	KindCall     // the script called the host
	KindReturned // a function that the host called has returned
	KindThrew    // a function that the host called has thrown
	KindLog      // a line on the console
	KindDone     // the script's value
	KindFailed   // how the script failed
)

// Frame is one message between host and worker.
type Frame struct {
	Kind Kind
	ID   uint32 // of the call or invocation, the level of a log; 0 where there is none
	Body []byte
}

// ErrMalformed says that a frame does not add up.
var ErrMalformed = errors.New("malformed frame")

// ReadFrame reads the next frame. It takes memory as bytes arrive, not as the length promises.
func ReadFrame(r io.Reader) (Frame, error) {
	var h [head]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	n := binary.LittleEndian.Uint32(h[:4])
	if n < head-4 || n > MaxFrame {
		return Frame{}, fmt.Errorf("%w: length %d", ErrMalformed, n)
	}
	f := Frame{Kind: Kind(h[4]), ID: binary.LittleEndian.Uint32(h[5:])}
	if f.Kind == 0 || f.Kind > KindFailed {
		return Frame{}, fmt.Errorf("%w: kind %d", ErrMalformed, f.Kind)
	}
	size := int(n) - (head - 4)
	if size <= 64<<10 {
		f.Body = make([]byte, size)
		_, err := io.ReadFull(r, f.Body)
		return f, noEOF(err)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return Frame{}, noEOF(err)
	}
	f.Body = b.Bytes()
	return f, nil
}

// noEOF keeps a frame cut in the middle from looking like a clean end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// builder puts a frame together: begin, then fields, then bytes.
type builder struct{ b []byte }

func newFrame(k Kind, id uint32) *builder {
	b := &builder{b: make([]byte, head, 64)}
	b.b[4] = byte(k)
	binary.LittleEndian.PutUint32(b.b[5:], id)
	return b
}

func (b *builder) number(n int64) { b.b = binary.AppendVarint(b.b, n) }
func (b *builder) text(s string)  { b.number(int64(len(s))); b.b = append(b.b, s...) }
func (b *builder) block(p []byte) { b.number(int64(len(p))); b.b = append(b.b, p...) }
func (b *builder) rest(p []byte)  { b.b = append(b.b, p...) }
func (b *builder) texts(s []string) {
	b.number(int64(len(s)))
	for _, t := range s {
		b.text(t)
	}
}

// bytes is the whole frame.
func (b *builder) bytes() []byte {
	binary.LittleEndian.PutUint32(b.b, uint32(len(b.b)-4))
	return b.b
}

// body takes a frame's body apart. After the first field that does not add up, bad is set and every field is zero.
type body struct {
	b   []byte
	bad bool
}

func (r *body) number() int64 {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *body) block() []byte {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *body) text() string { return string(r.block()) }

func (r *body) texts() []string {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) { // each takes a byte at least
		r.b, r.bad = nil, true
		return nil
	}
	var out []string
	for range n {
		out = append(out, r.text())
	}
	return out
}

// end says whether everything added up and nothing is left over.
func (r *body) end() error {
	if r.bad || len(r.b) != 0 {
		return ErrMalformed
	}
	return nil
}
