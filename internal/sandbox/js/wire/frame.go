// Package wire defines the messages between a host and its worker process, and their encoding on the pipe.
//
// A message is a [Frame]. Types such as [Start], [Call] and [Fault] encode and decode the bodies. Both sides check
// every length: a frame longer than [MaxFrame] or a body that does not decode gives [ErrMalformed], and the reader then
// ends the run. The workers of package js use all messages; those of package py use Start, Ready, Log and Done.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame consists of four bytes of length, one byte of kind, four bytes of id, and a body. Numbers in bodies are
// varints. Values of variable length are preceded by their length.
const (
	MaxFrame  = 16 << 20 // bytes of kind, id and body
	MaxBody   = 8 << 20  // bytes of a source, a result or the arguments of one call
	MaxArgs   = 256      // arguments of one call
	MaxPlaces = 50       // lines of a stack trace

	// MaxPending is the maximum size of the arguments of all host calls in progress, which the host holds in memory.
	MaxPending = 32 << 20

	headerSize = 4 + 1 + 4
)

// Kind is the type of a frame.
type Kind byte

// The kinds.
const (
	// Sent by the host.
	KindStart       Kind = iota + 1 // the script and its limits
	KindResolve                     // the result of a host call
	KindReject                      // the error of a host call
	KindInvoke                      // call a function that the script passed to a host call
	KindStop                        // the time limit is exceeded
	KindAbort                       // a host call ends the run; the worker reports the position of the call and ends
	KindPlaceholder                 // a placeholder is the result of a host call that was not made

	// Sent by the worker.
	KindReady    // the worker is ready for a script
	KindCall     // the script called a host function
	KindReturned // an invoked function returned
	KindThrew    // an invoked function threw
	KindLog      // a line of console output
	KindDone     // the script's value
	KindFailed   // the script failed
)

// Frame is one message between host and worker.
type Frame struct {
	Kind Kind
	ID   uint32 // id of the call or invocation, or level of a log line; otherwise 0
	Body []byte
}

// ErrMalformed means that a frame is invalid.
var ErrMalformed = errors.New("malformed frame")

// ReadFrame reads the next frame. It allocates memory as bytes arrive, so a false length costs nothing.
func ReadFrame(r io.Reader) (Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	n := binary.LittleEndian.Uint32(h[:4])
	if n < headerSize-4 || n > MaxFrame {
		return Frame{}, fmt.Errorf("%w: length %d", ErrMalformed, n)
	}
	f := Frame{Kind: Kind(h[4]), ID: binary.LittleEndian.Uint32(h[5:])}
	if f.Kind == 0 || f.Kind > KindFailed {
		return Frame{}, fmt.Errorf("%w: kind %d", ErrMalformed, f.Kind)
	}
	size := int(n) - (headerSize - 4)
	if size <= 64<<10 {
		f.Body = make([]byte, size)
		_, err := io.ReadFull(r, f.Body)
		return f, unexpectedEOF(err)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return Frame{}, unexpectedEOF(err)
	}
	f.Body = b.Bytes()
	return f, nil
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF, for a frame that ends early.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// frameBuilder encodes a frame: newFrame, then one method call per field, then bytes.
type frameBuilder struct{ b []byte }

func newFrame(k Kind, id uint32) *frameBuilder {
	b := &frameBuilder{b: make([]byte, headerSize, 64)}
	b.b[4] = byte(k)
	binary.LittleEndian.PutUint32(b.b[5:], id)
	return b
}

func (b *frameBuilder) number(n int64) { b.b = binary.AppendVarint(b.b, n) }
func (b *frameBuilder) text(s string)  { b.number(int64(len(s))); b.b = append(b.b, s...) }
func (b *frameBuilder) block(p []byte) { b.number(int64(len(p))); b.b = append(b.b, p...) }
func (b *frameBuilder) raw(p []byte)   { b.b = append(b.b, p...) }
func (b *frameBuilder) texts(s []string) {
	b.number(int64(len(s)))
	for _, t := range s {
		b.text(t)
	}
}

// bytes sets the length and returns the encoded frame.
func (b *frameBuilder) bytes() []byte {
	binary.LittleEndian.PutUint32(b.b, uint32(len(b.b)-4))
	return b.b
}

// bodyReader decodes the fields of a frame's body. After the first invalid field, bad is true and all further fields
// are zero.
type bodyReader struct {
	b   []byte
	bad bool
}

func (r *bodyReader) number() int64 {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *bodyReader) block() []byte {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *bodyReader) text() string { return string(r.block()) }

func (r *bodyReader) texts() []string {
	n := r.number()
	if n < 0 || n > int64(len(r.b)) { // each text needs at least one byte
		r.b, r.bad = nil, true
		return nil
	}
	var out []string
	for range n {
		out = append(out, r.text())
	}
	return out
}

// checkEnd returns ErrMalformed if a field was invalid or bytes are left.
func (r *bodyReader) checkEnd() error {
	if r.bad || len(r.b) != 0 {
		return ErrMalformed
	}
	return nil
}
