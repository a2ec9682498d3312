package wire

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Ready is a worker's first word: that it can take a script, and which version of the worker it is.
func Ready(version string) []byte {
	b := newFrame(KindReady, 0)
	b.rest([]byte(version))
	return b.bytes()
}

// Stop tells a worker that its time is over.
func Stop() []byte { return newFrame(KindStop, 0).bytes() }

// Abort tells a worker that its run ends because of a call.
func Abort(call uint32) []byte { return newFrame(KindAbort, call).bytes() }

// Start is everything a worker learns about its run.
type Start struct {
	Name      string // the script's
	Language  string
	Source    string
	Functions []string // names the script can call, by their index
	Input     []byte   // JSON for the global input; empty means there is none
	Now       int64    // what the clock says, in milliseconds
	Seed      int64    // where chance begins
	Memory    int64
	Stack     int64
	Time      time.Duration
	Output    int64
	Calls     int64
}

// Encode makes the frame.
func (s *Start) Encode() []byte {
	b := newFrame(KindStart, 0)
	b.text(s.Name)
	b.text(s.Language)
	b.text(s.Source)
	b.texts(s.Functions)
	b.block(s.Input)
	for _, n := range []int64{s.Now, s.Seed, s.Memory, s.Stack, int64(s.Time), s.Output, s.Calls} {
		b.number(n)
	}
	return b.bytes()
}

// DecodeStart reads one.
func DecodeStart(f Frame) (Start, error) {
	r := body{b: f.Body}
	s := Start{Name: r.text(), Language: r.text(), Source: r.text(), Functions: r.texts(), Input: r.block()}
	s.Now, s.Seed, s.Memory, s.Stack = r.number(), r.number(), r.number(), r.number()
	s.Time, s.Output, s.Calls = time.Duration(r.number()), r.number(), r.number()
	return s, r.end()
}

// Argument is a value on its way between the processes: JSON, nothing (undefined), or a function by its handle.
type Argument struct {
	JSON     []byte
	Function uint32 // 0 means it is none
}

func encodeArguments(b *builder, args []Argument) {
	b.number(int64(len(args)))
	for _, a := range args {
		b.number(int64(a.Function))
		if a.Function == 0 {
			b.block(a.JSON)
		}
	}
}

// arguments reads what encodeArguments wrote, and sees to it that what should be JSON is.
func (r *body) arguments() []Argument {
	n := r.number()
	if n < 0 || n > MaxArgs {
		r.b, r.bad = nil, true
		return nil
	}
	out := make([]Argument, 0, min(n, int64(len(r.b))))
	for range n {
		var a Argument
		if h := r.number(); h < 0 || h > 1<<31 {
			r.b, r.bad = nil, true
			return nil
		} else if a.Function = uint32(h); h == 0 {
			a.JSON = r.json(r.block())
		}
		out = append(out, a)
	}
	return out
}

// json passes text on if it is JSON, or nothing.
func (r *body) json(text []byte) []byte {
	if len(text) > 0 && (len(text) > MaxBody || !json.Valid(text) || !utf8.Valid(text)) {
		r.b, r.bad = nil, true
		return nil
	}
	return text
}

// Call is a call of the host by the script.
type Call struct {
	Function int64 // index in Start.Functions
	Args     []Argument
}

// Encode makes the frame.
func (c *Call) Encode(id uint32) []byte {
	b := newFrame(KindCall, id)
	b.number(c.Function)
	encodeArguments(b, c.Args)
	return b.bytes()
}

// DecodeCall reads one.
func DecodeCall(f Frame) (Call, error) {
	r := body{b: f.Body}
	c := Call{Function: r.number(), Args: r.arguments()}
	return c, r.end()
}

// Invoke is a call of the script by the host.
type Invoke struct {
	Function uint32
	// what it comes to is what the host call comes to that the function was given to: no answer to that follows
	Last bool
	Args []Argument
}

// Encode makes the frame.
func (m *Invoke) Encode(id uint32) []byte {
	b := newFrame(KindInvoke, id)
	b.number(int64(m.Function))
	last := int64(0)
	if m.Last {
		last = 1
	}
	b.number(last)
	encodeArguments(b, m.Args)
	return b.bytes()
}

// DecodeInvoke reads one.
func DecodeInvoke(f Frame) (Invoke, error) {
	r := body{b: f.Body}
	m := Invoke{Function: uint32(r.number()), Last: r.number() == 1, Args: r.arguments()}
	return m, r.end()
}

// Reject is a host's error: either words, or what an invocation threw, to be thrown on unchanged.
type Reject struct {
	Invocation          uint32 // 0 means words
	Message, Code, Hint string
}

// Encode makes the frame.
func (m *Reject) Encode(id uint32) []byte {
	b := newFrame(KindReject, id)
	b.number(int64(m.Invocation))
	b.text(m.Message)
	b.text(m.Code)
	b.text(m.Hint)
	return b.bytes()
}

// DecodeReject reads one.
func DecodeReject(f Frame) (Reject, error) {
	r := body{b: f.Body}
	m := Reject{Invocation: uint32(r.number()), Message: r.text(), Code: r.text(), Hint: r.text()}
	return m, r.end()
}

// Failure says how a script failed, as far as its worker can tell. Package js says what each means.
type Failure string

// The failures.
const (
	Syntax    Failure = "SYNTAX"
	Thrown    Failure = "THROWN"
	Unhandled Failure = "UNHANDLED"
	Stalled   Failure = "STALLED"
	Timeout   Failure = "TIMEOUT"
	Memory    Failure = "MEMORY"
	Stack     Failure = "STACK"
	Output    Failure = "OUTPUT"
)

// Fault is something thrown, taken apart.
type Fault struct {
	Failure Failure
	Name    string
	Message string
	Stack   []Place // innermost first
	Call    uint32  // the host call whose error it is, or Refused; 0 means the script's own
}

// Refused stands for every call that the worker did not make, because it or its arguments are beyond bounds.
const Refused = 1<<32 - 1

// Place is one line of a stack, in the script as written.
type Place struct {
	Function string // empty at the top level
	Line     int    // both count from 1
	Column   int
}

// Encode makes a frame of kind Failed or Threw.
func (t *Fault) Encode(k Kind, id uint32) []byte {
	b := newFrame(k, id)
	b.text(string(t.Failure))
	b.text(t.Name)
	b.text(t.Message)
	b.number(int64(len(t.Stack)))
	for _, p := range t.Stack {
		b.text(p.Function)
		b.number(int64(p.Line))
		b.number(int64(p.Column))
	}
	b.number(int64(t.Call))
	return b.bytes()
}

// DecodeFault reads one.
func DecodeFault(f Frame) (Fault, error) {
	r := body{b: f.Body}
	t := Fault{Failure: Failure(r.text()), Name: r.text(), Message: r.text(), Stack: r.places()}
	t.Call = uint32(r.number())
	switch t.Failure {
	case Syntax, Thrown, Unhandled, Stalled, Timeout, Memory, Stack, Output:
	default:
		r.bad = true
	}
	return t, r.end()
}

func (r *body) places() []Place {
	n := r.number()
	if n < 0 || n > MaxPlaces {
		r.b, r.bad = nil, true
		return nil
	}
	var out []Place
	for range n {
		out = append(out, Place{Function: r.text(), Line: int(r.number()), Column: int(r.number())})
	}
	return out
}

// JSON makes a frame whose body is nothing but JSON, or empty for undefined.
func JSON(k Kind, id uint32, text []byte) []byte {
	b := newFrame(k, id)
	b.rest(text)
	return b.bytes()
}

// DecodeJSON reads one, and sees to it that it is JSON.
func DecodeJSON(f Frame) (json.RawMessage, error) {
	r := body{}
	text := r.json(f.Body)
	return text, r.end()
}

// Levels of the console, by their number in a log frame's id.
var Levels = []string{"debug", "log", "info", "warn", "error"}

// Log makes the frame of a line on the console.
func Log(level uint32, text []byte) []byte {
	b := newFrame(KindLog, level)
	b.rest(text)
	return b.bytes()
}
