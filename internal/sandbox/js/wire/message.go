package wire

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Ready returns the frame by which a worker reports that it is ready, with its version.
func Ready(version string) []byte {
	b := newFrame(KindReady, 0)
	b.raw([]byte(version))
	return b.bytes()
}

// Stop returns the frame by which the host reports that the time limit is exceeded.
func Stop() []byte { return newFrame(KindStop, 0).bytes() }

// Abort returns the frame by which the host ends a run because of a host call.
func Abort(call uint32) []byte { return newFrame(KindAbort, call).bytes() }

// Start is the message that starts a run.
type Start struct {
	Name      string // name of the script
	Language  string
	Source    string
	Functions []string // names of the host functions; a call refers to them by index
	Methods   []string // further host functions, as methods of the first argument of the script's functions
	Sync      []string // those of Functions that return their result and not a promise
	Input     []byte   // JSON of the global input; empty means none
	Now       int64    // current time that the script sees, in milliseconds since 1970
	Seed      int64    // seed of Math.random
	Memory    int64    // limits, see js.Limits
	Stack     int64
	Time      time.Duration
	Output    int64
	Calls     int64
	Compute   time.Duration
}

// Encode returns the frame of s.
func (s *Start) Encode() []byte {
	b := newFrame(KindStart, 0)
	b.text(s.Name)
	b.text(s.Language)
	b.text(s.Source)
	b.texts(s.Functions)
	b.texts(s.Methods)
	b.texts(s.Sync)
	b.block(s.Input)
	for _, n := range []int64{s.Now, s.Seed, s.Memory, s.Stack, int64(s.Time), s.Output, s.Calls, int64(s.Compute)} {
		b.number(n)
	}
	return b.bytes()
}

// DecodeStart decodes a Start frame.
func DecodeStart(f Frame) (Start, error) {
	r := bodyReader{b: f.Body}
	s := Start{Name: r.text(), Language: r.text(), Source: r.text(), Functions: r.texts(), Methods: r.texts(),
		Sync: r.texts(), Input: r.block()}
	s.Now, s.Seed, s.Memory, s.Stack = r.number(), r.number(), r.number(), r.number()
	s.Time, s.Output, s.Calls, s.Compute = time.Duration(r.number()), r.number(), r.number(), time.Duration(r.number())
	return s, r.checkEnd()
}

// Argument is an argument of a call: JSON, a function, the error of a host call, or undefined if all fields are empty.
type Argument struct {
	JSON     []byte
	Function uint32 // handle of the function; 0 means none
	Failed   uint32 // the argument is the error of this host call; 0 means no. JSON is empty
}

func encodeArguments(b *frameBuilder, args []Argument) {
	b.number(int64(len(args)))
	for _, a := range args {
		b.number(int64(a.Function))
		if a.Function == 0 {
			b.number(int64(a.Failed))
			b.block(a.JSON)
		}
	}
}

// arguments decodes arguments and checks that each is a handle or valid JSON.
func (r *bodyReader) arguments() []Argument {
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
			a.Failed = uint32(r.number()) // an id that does not exist names no error
			a.JSON = r.checkJSON(r.block())
		}
		out = append(out, a)
	}
	return out
}

// checkJSON returns text if it is empty or valid JSON of an allowed size. Otherwise it sets bad and returns nil.
func (r *bodyReader) checkJSON(text []byte) []byte {
	if len(text) > 0 && (len(text) > MaxBody || !json.Valid(text) || !utf8.Valid(text)) {
		r.b, r.bad = nil, true
		return nil
	}
	return text
}

// Call is the message by which a script calls a host function.
type Call struct {
	Function int64 // index in Start.Functions
	Args     []Argument
}

// Encode returns the frame of c.
func (c *Call) Encode(id uint32) []byte {
	b := newFrame(KindCall, id)
	b.number(c.Function)
	encodeArguments(b, c.Args)
	return b.bytes()
}

// DecodeCall decodes a Call frame.
func DecodeCall(f Frame) (Call, error) {
	r := bodyReader{b: f.Body}
	c := Call{Function: r.number(), Args: r.arguments()}
	return c, r.checkEnd()
}

// Invoke is the message by which the host calls a function of the script.
type Invoke struct {
	Function uint32 // handle of the function
	// the function's result becomes the result of the host call that received it; no Resolve or Reject follows
	Last bool
	Args []Argument
}

// Encode returns the frame of m.
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

// DecodeInvoke decodes an Invoke frame.
func DecodeInvoke(f Frame) (Invoke, error) {
	r := bodyReader{b: f.Body}
	m := Invoke{Function: uint32(r.number()), Last: r.number() == 1, Args: r.arguments()}
	return m, r.checkEnd()
}

// Reject is the error of a host call. It is either a new error with a message, or the value that an invocation threw,
// which the script receives unchanged.
type Reject struct {
	Invocation          uint32 // id of the invocation that threw; 0 means a new error
	Message, Code, Hint string
}

// Encode returns the frame of m.
func (m *Reject) Encode(id uint32) []byte {
	b := newFrame(KindReject, id)
	b.number(int64(m.Invocation))
	b.text(m.Message)
	b.text(m.Code)
	b.text(m.Hint)
	return b.bytes()
}

// DecodeReject decodes a Reject frame.
func DecodeReject(f Frame) (Reject, error) {
	r := bodyReader{b: f.Body}
	m := Reject{Invocation: uint32(r.number()), Message: r.text(), Code: r.text(), Hint: r.text()}
	return m, r.checkEnd()
}

// Failure is the way in which a script failed, as its worker reports it. Kind of package js describes the values.
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
	Compute   Failure = "COMPUTE"
)

// Messages of faults that both the worker and the host report.
const (
	TimeoutMessage = "time limit exceeded"
	OutputMessage  = "output limit exceeded"
)

// Fault describes a thrown value or another failure of a script.
type Fault struct {
	Failure Failure
	Name    string
	Message string
	Stack   []Place // innermost first
	Call    uint32  // host call that returned the error, or Refused; 0 means an error of the script itself
}

// Refused is the Call of a Fault for host calls that the worker did not send, because a limit was exceeded.
const Refused = 1<<32 - 1

// Place is one line of a stack trace, as a position in the script as written.
type Place struct {
	Function string // empty at the top level
	Line     int    // counted from 1
	Column   int    // counted from 1
}

// Encode returns the frame of t, of kind Failed or Threw.
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

// DecodeFault decodes a Failed or Threw frame.
func DecodeFault(f Frame) (Fault, error) {
	r := bodyReader{b: f.Body}
	t := Fault{Failure: Failure(r.text()), Name: r.text(), Message: r.text(), Stack: r.places()}
	t.Call = uint32(r.number())
	switch t.Failure {
	case Syntax, Thrown, Unhandled, Stalled, Timeout, Memory, Stack, Output, Compute:
	default:
		r.bad = true
	}
	return t, r.checkEnd()
}

func (r *bodyReader) places() []Place {
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

// Placeholder returns the frame by which a host call returns a placeholder with a text.
func Placeholder(id uint32, text string) []byte {
	b := newFrame(KindPlaceholder, id)
	b.raw([]byte(text))
	return b.bytes()
}

// ComputeMessage is the message of a fault of kind Compute.
func ComputeMessage(limit time.Duration) string {
	return "the script computed for more than " + limit.String() + " without a call"
}

// JSON returns a frame whose body is JSON, or empty for undefined.
func JSON(k Kind, id uint32, text []byte) []byte {
	b := newFrame(k, id)
	b.raw(text)
	return b.bytes()
}

// DecodeJSON decodes a frame whose body is JSON. It returns ErrMalformed if the body is invalid.
func DecodeJSON(f Frame) (json.RawMessage, error) {
	r := bodyReader{}
	text := r.checkJSON(f.Body)
	return text, r.checkEnd()
}

// Levels are the console's log levels. The id of a log frame is an index of Levels.
var Levels = []string{"debug", "log", "info", "warn", "error"}

// Log returns the frame of a line of console output.
func Log(level uint32, text []byte) []byte {
	b := newFrame(KindLog, level)
	b.raw(text)
	return b.bytes()
}
