//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	quickjs "modernc.org/libquickjs"
	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/lock"
)

//go:embed prelude.js
var prelude string

// Supported says whether there is an engine for this kind of machine.
const Supported = true

const preludeName = "reeve:prelude" // scriptFile makes no such name

// Serve is the whole life of a worker process: get ready, take one script, run it to its end.
func Serve(in io.Reader, out io.Writer) {
	// The Go side of a worker only holds frames: a small heap, collected often, keeps two hundred of them small.
	debug.SetGCPercent(50)
	in, out = attend(in, out)
	w := &worker{in: bufio.NewReader(in), out: newOutlet(out), calls: map[uint32]*pending{}, functions: map[uint32]value{}, thrown: map[uint32]value{}, last: map[uint32]uint32{}}
	e, err := newEngine()
	if err != nil {
		os.Exit(exitEngine)
	}
	w.engine = e
	w.prepare()
	debug.FreeOSMemory() // what the start of the program left behind
	w.out.send(wire.Ready(Version()))
	w.out.flush()
	f, err := wire.ReadFrame(w.in)
	if err != nil || f.Kind != wire.KindStart {
		os.Exit(exitHost)
	}
	w.heard++
	if w.start, err = wire.DecodeStart(f); err != nil {
		os.Exit(exitHost)
	}
	time.AfterFunc(w.start.Time, func() { e.stop.Store(true) })
	watchOver(w.start.Time)
	// What the engine counts, what its allocator wastes, the stack of the deepest recursion while it is copied, and frames.
	memory := uint64(w.start.Memory+w.start.Memory/2) + uint64(w.start.Stack)<<14 + 96<<20
	if err := lock.Down(memory); err != nil {
		os.Exit(exitLock)
	}
	w.run()
}

// How a worker ends that does not get as far as saying so.
const (
	exitEngine = 80 + iota // the engine did not start
	exitHost               // the host is gone or does not keep to the protocol
	exitLock               // the process could not be locked down
	exitLate               // the host should have ended this process long ago
)

// worker is the process that runs one script.
type worker struct {
	in     *bufio.Reader
	out    *outlet
	engine *engine
	start  wire.Start
	source *source
	heard  uint32 // frames of the host's
	hooks  struct{ fix, describe, fail, invoke, watch value }

	calls       map[uint32]*pending
	pendingSize int // bytes of arguments of calls
	lastCall    uint32
	functions   map[uint32]value // handed to the host, by handle
	lastHandle  uint32
	invocations int               // functions of the script's that the host has called and that have not settled
	thrown      map[uint32]value  // what invocations threw, until the call ends that they belong to
	last        map[uint32]uint32 // invocations whose outcome is that of a call
	foreseen    *foresight        // nil means that nothing is
	next        uint32            // the call whose function is to be called when the script has nothing else to do; 0 means none
	printed     int64             // bytes of console output

	settled bool   // the script has come to its end
	result  []byte // its value
}

// pending is a call that the host has not answered.
type pending struct {
	resolve, reject value
	where           value // an Error made at the call: it becomes the error if the call fails
	size            int
	given           []byte // what its function is called with, if that need not wait for the host
	functions       []uint32
	thrown          []uint32
}

// prepare does everything that needs no script, while the worker waits for one.
func (w *worker) prepare() {
	e := w.engine
	setup := e.eval(preludeName, prelude, quickjs.MJS_EVAL_TYPE_GLOBAL)
	natives := e.object()
	for name, f := range map[string]native{"log": w.log, "returned": w.returned, "threw": w.threw, "done": w.done, "failed": w.failed} {
		e.define(natives, name, e.function(f, 0), quickjs.MJS_PROP_ENUMERABLE)
	}
	hooks := e.call(setup, natives)
	if isException(hooks) {
		os.Exit(exitEngine)
	}
	for name, v := range map[string]*value{"fix": &w.hooks.fix, "describe": &w.hooks.describe, "fail": &w.hooks.fail, "invoke": &w.hooks.invoke, "watch": &w.hooks.watch} {
		*v = e.get(hooks, name)
	}
	e.free(setup, natives, hooks)
}

// run takes the script from its first line to its end. It does not return.
func (w *worker) run() {
	e, s := w.engine, &w.start
	e.limit(s.Memory, int(s.Stack))
	w.populate()
	code := w.compile()
	promise := e.run(code)
	w.check(promise)
	e.free(w.check(e.call(w.hooks.watch, promise)), promise)
	for {
		if exception, ok := e.drain(); !ok {
			w.fail(w.describe(wire.Thrown, exception))
		}
		if w.next != 0 {
			w.begin()
			continue
		}
		if len(w.calls) == 0 && w.invocations == 0 {
			w.finish()
		}
		w.out.send(wire.Idle(w.heard))
		w.out.flush()
		f, err := wire.ReadFrame(w.in)
		if err != nil {
			os.Exit(exitHost)
		}
		w.heard++
		if err := w.handle(f); err != nil {
			os.Exit(exitHost)
		}
	}
}

// finish ends the run when nothing is left that could go on.
func (w *worker) finish() {
	e := w.engine
	if len(e.rejections) > 0 {
		w.fail(w.describe(wire.Unhandled, e.dup(e.rejections[0].reason)))
	}
	if !w.settled && e.memory() > w.start.Memory/2 { // there was not even enough left to say that there was not enough
		w.fail(wire.Fault{Failure: wire.Memory, Message: "out of memory"})
	}
	if !w.settled {
		w.fail(wire.Fault{Failure: wire.Stalled, Message: "the script waits for a promise that nothing can settle any more"})
	}
	w.out.send(wire.JSON(wire.KindDone, 0, w.result))
	w.end()
}

// compile reads the script. One with a return at its top level is the body of a function.
func (w *worker) compile() value {
	e := w.engine
	src, problem := newSource(w.start.Name, w.start.Language, w.start.Source)
	if problem != nil {
		w.fail(*problem)
	}
	w.source, e.file = src, src.file
	code := e.compile(src.file, src.text)
	if !isException(code) {
		return code
	}
	first := w.describe(wire.Syntax, e.exception())
	src.wrap()
	if code = e.compile(src.file, src.text); isException(code) {
		w.fail(first)
	}
	return code
}

// populate gives the script its clock, its chance, its input and its functions.
func (w *worker) populate() {
	e, s := w.engine, &w.start
	h := fnv.New128a()
	_ = binary.Write(h, binary.LittleEndian, s.Seed) // never fails
	var seed [4]value
	for i := range seed {
		seed[i] = e.int(int(int32(binary.LittleEndian.Uint32(h.Sum(nil)[4*i:]))))
	}
	w.check(e.call(w.hooks.fix, e.number(s.Now), seed[0], seed[1], seed[2], seed[3]))
	if len(s.Input) > 0 {
		e.define(e.global, "input", w.check(e.parse(s.Input)), quickjs.MJS_PROP_CONFIGURABLE|quickjs.MJS_PROP_ENUMERABLE)
	}
	spaces := map[string]value{"": e.global}
	for i, name := range s.Functions {
		space, rest := "", name
		for {
			part, after, more := strings.Cut(rest, ".")
			if !more {
				break
			}
			inner := strings.TrimPrefix(space+"."+part, ".")
			if _, ok := spaces[inner]; !ok {
				spaces[inner] = e.object()
				e.define(spaces[space], part, e.dup(spaces[inner]), w.fixed(space))
			}
			space, rest = inner, after
		}
		f := e.function(w.call, int32(i))
		e.define(f, "name", e.string(rest), quickjs.MJS_PROP_CONFIGURABLE)
		e.define(spaces[space], rest, f, w.fixed(space))
	}
	for space, v := range spaces {
		if space != "" {
			quickjs.XJS_PreventExtensions(e.tls, e.ctx, v)
			e.free(v)
		}
	}
}

// fixed are the flags of a property that a script cannot change by mistake. A global can still be shadowed by a declaration.
func (w *worker) fixed(space string) int32 {
	if space == "" {
		return quickjs.MJS_PROP_CONFIGURABLE | quickjs.MJS_PROP_ENUMERABLE
	}
	return quickjs.MJS_PROP_ENUMERABLE
}

// call is every host function: it sends the arguments off and gives a promise.
func (w *worker) call(args []value, index int32) value {
	e := w.engine
	promise, resolve, reject := e.promise()
	if isException(promise) {
		return promise
	}
	p := &pending{resolve: resolve, reject: reject, where: e.here()}
	if isException(p.where) { // no memory or no stack left, as the script will see
		e.free(promise, resolve, reject)
		return p.where
	}
	refuse := func(format string, args ...any) value {
		w.refuse(p, fmt.Sprintf(format, args...))
		return promise
	}
	if len(w.calls) >= int(w.start.Calls) {
		return refuse("%d calls are waiting for the host, and no more may at once; await some first", len(w.calls))
	}
	if len(args) > wire.MaxArgs {
		return refuse("a host function was given %d arguments; at most %d are possible", len(args), wire.MaxArgs)
	}
	m := wire.Call{Function: int64(index), Args: make([]wire.Argument, len(args))}
	for i, v := range args {
		if e.isFunction(v) {
			w.lastHandle++
			m.Args[i].Function = w.lastHandle
			p.functions = append(p.functions, w.lastHandle)
			w.functions[w.lastHandle] = e.dup(v)
			continue
		}
		text, ok := e.stringify(v)
		if !ok {
			w.forget(p)
			reason := e.exception()
			if isBigInt(v) {
				e.free(reason)
				reason = e.typeError("a host function was given a BigInt, which JSON does not have; pass Number(n) or String(n)")
			}
			e.free(e.call(reject, reason), reason)
			w.release(p)
			return promise
		}
		m.Args[i].JSON = text
		p.size += len(text)
	}
	if p.size > wire.MaxBody {
		return refuse("the arguments of one call have %d bytes and are too large; at most %d MB are possible, so pass them on in parts", p.size, wire.MaxBody>>20)
	}
	if w.pendingSize+p.size > wire.MaxPending {
		return refuse("the arguments of all calls that wait for the host have %d bytes and are too large together; at most %d MB are possible, so await some first",
			w.pendingSize+p.size, wire.MaxPending>>20)
	}
	m.Begun = w.ahead(index, m.Args)
	w.lastCall++
	w.calls[w.lastCall] = p
	w.pendingSize += p.size
	w.out.send(m.Encode(w.lastCall))
	if m.Begun != nil {
		w.next, p.given = w.lastCall, m.Begun
	}
	return promise
}

// refuse rejects a call that is not made.
func (w *worker) refuse(p *pending, message string) {
	e := w.engine
	w.forget(p)
	text, code := e.string(message), e.string("TOO_LARGE")
	e.free(e.call(w.hooks.fail, p.where, text, code, undefined, e.number(wire.Refused)), text, code)
	e.free(e.call(p.reject, p.where))
	w.release(p)
}

// forget drops the functions and thrown values that belong to a call.
func (w *worker) forget(p *pending) {
	for _, h := range p.functions {
		w.engine.free(w.functions[h])
		delete(w.functions, h)
	}
	for _, id := range p.thrown {
		w.engine.free(w.thrown[id])
		delete(w.thrown, id)
	}
}

func (w *worker) release(p *pending) { w.engine.free(p.resolve, p.reject, p.where) }

// handle takes one message of the host's.
func (w *worker) handle(f wire.Frame) error {
	switch f.Kind {
	case wire.KindResolve, wire.KindReject:
		return w.answer(f)
	case wire.KindInvoke:
		return w.invoke(f)
	case wire.KindForesee:
		return w.foresee(f)
	case wire.KindStop:
		w.late()
		return nil
	case wire.KindAbort:
		w.abort(f.ID)
		return nil
	case wire.KindStart, wire.KindReady, wire.KindCall, wire.KindReturned, wire.KindThrew, wire.KindLog, wire.KindDone, wire.KindFailed, wire.KindIdle:
	}
	return wire.ErrMalformed
}

// answer settles a call.
func (w *worker) answer(f wire.Frame) error {
	e, p := w.engine, w.calls[f.ID]
	if p == nil {
		return wire.ErrMalformed
	}
	if f.Kind == wire.KindResolve {
		v := w.check(e.parse(f.Body))
		w.check(e.call(p.resolve, v))
		e.free(v)
	} else {
		m, err := wire.DecodeReject(f)
		if err != nil {
			return err
		}
		reason, ok := w.thrown[m.Invocation]
		if reason = e.dup(reason); !ok {
			text, code, hint := e.string(m.Message), e.string(m.Code), e.string(m.Hint)
			reason = w.check(e.call(w.hooks.fail, p.where, text, code, hint, e.number(int64(f.ID))))
			e.free(text, code, hint)
		}
		w.check(e.call(p.reject, reason))
		e.free(reason)
	}
	w.drop(f.ID, p)
	return nil
}

// drop ends a call that is settled.
func (w *worker) drop(id uint32, p *pending) {
	w.forget(p)
	w.release(p)
	w.pendingSize -= p.size
	delete(w.calls, id)
}

// settleLast settles the call whose outcome an invocation is, with the very value. The host was told, and does not answer: what the
// script says next goes along with that.
func (w *worker) settleLast(invocation uint32, v value, how func(*pending) value) {
	e, id := w.engine, w.last[invocation]
	p := w.calls[id]
	delete(w.last, invocation)
	e.free(w.check(e.call(how(p), v)))
	w.drop(id, p)
}

// invoke calls a function that the script gave to the host. The hook tells the host how it went.
func (w *worker) invoke(f wire.Frame) error {
	m, err := wire.DecodeInvoke(f)
	if err != nil {
		return err
	}
	function, ok := w.functions[m.Function]
	if !ok {
		return wire.ErrMalformed
	}
	for id, p := range w.calls {
		for _, h := range p.functions {
			switch {
			case h != m.Function:
			case m.Last:
				w.last[f.ID] = id
			default:
				p.thrown = append(p.thrown, f.ID)
			}
		}
	}
	args := make([]json.RawMessage, len(m.Args))
	for i, a := range m.Args {
		args[i] = a.JSON
	}
	w.enter(f.ID, function, args)
	return nil
}

// enter calls a function of the script's.
func (w *worker) enter(id uint32, function value, args []json.RawMessage) {
	e := w.engine
	list := e.array()
	for i, a := range args {
		e.push(list, i, w.check(e.parse(a)))
	}
	w.invocations++
	e.free(w.check(e.call(w.hooks.invoke, e.number(int64(id)), function, list)), list)
}

// returned is told by the hook that an invocation is over, and how.
func (w *worker) returned(args []value, _ int32) value {
	id := w.engine.id(args[0])
	if _, last := w.last[id]; last {
		w.invocations--
		w.out.send(wire.JSON(wire.KindReturned, id, nil))
		w.settleLast(id, args[1], func(p *pending) value { return p.resolve })
		return undefined
	}
	text, ok := w.engine.stringify(args[1])
	if !ok {
		return w.engine.rethrow()
	}
	w.invocations--
	w.out.send(wire.JSON(wire.KindReturned, id, w.fit(text)))
	return undefined
}

func (w *worker) threw(args []value, _ int32) value {
	w.stopIfLate()
	e, id := w.engine, w.engine.id(args[0])
	w.invocations--
	t := w.describe(wire.Thrown, e.dup(args[1]))
	w.out.send(t.Encode(wire.KindThrew, id))
	if _, last := w.last[id]; last {
		w.settleLast(id, args[1], func(p *pending) value { return p.reject })
	} else {
		w.thrown[id] = e.dup(args[1])
	}
	return undefined
}

// done is told by the hook that the script has ended with a value.
func (w *worker) done(args []value, _ int32) value {
	text, ok := w.engine.stringify(args[0])
	if !ok {
		return w.engine.rethrow()
	}
	if w.printed+int64(len(text)) > w.start.Output {
		w.fail(w.overflow())
	}
	w.settled, w.result = true, text
	return undefined
}

// failed is told by the hook that the script has thrown.
func (w *worker) failed(args []value, _ int32) value {
	w.fail(w.describe(wire.Thrown, w.engine.dup(args[0])))
	return undefined
}

// log is the script's console.
func (w *worker) log(args []value, _ int32) value {
	text, ok := w.engine.bytes(args[1])
	if !ok {
		return w.engine.rethrow()
	}
	if w.printed += int64(len(text)) + 1; w.printed > w.start.Output {
		w.fail(w.overflow())
	}
	w.out.send(wire.Log(uint32(w.engine.toInt(args[0])), text))
	w.out.flush() // what was said before a crash should be seen
	return undefined
}

// overflow is the fault of a script that says too much.
func (w *worker) overflow() wire.Fault {
	t := w.describe(wire.Output, w.engine.here())
	t.Name, t.Message = "", "more output than allowed"
	return t
}

// fit keeps a frame within bounds.
func (w *worker) fit(text []byte) []byte {
	if len(text) > wire.MaxBody {
		w.fail(w.overflow())
	}
	return text
}

// fail ends the run with a fault, whatever the script is doing. It does not return.
func (w *worker) fail(t wire.Fault) {
	w.out.send(t.Encode(wire.KindFailed, 0))
	w.end()
}

// end ends the process when the host has read everything, which it shows by closing its end.
func (w *worker) end() {
	w.out.flush()
	_, _ = io.Copy(io.Discard, w.in)
	os.Exit(0)
}

// check passes a value on, or ends the run: it is for steps of our own, which fail only when memory or time is used up.
func (w *worker) check(v value) value {
	if isException(v) {
		w.fail(w.describe(wire.Thrown, w.engine.exception()))
	}
	w.stopIfLate()
	return v
}

// stopIfLate ends the run if the interrupt handler has struck: what the script makes of it does not count.
func (w *worker) stopIfLate() {
	if w.engine.timedOut {
		w.fail(w.describe(wire.Timeout, undefined))
	}
}

// late ends a run that was waiting when its time was over. The oldest call that it waits for says where.
func (w *worker) late() {
	oldest := uint32(0)
	for id := range w.calls {
		if oldest == 0 || id < oldest {
			oldest = id
		}
	}
	if p := w.calls[oldest]; p != nil {
		w.engine.where = w.engine.dup(p.where)
	}
	w.engine.timedOut = true
	w.fail(w.describe(wire.Timeout, undefined))
}

// abort ends the run for what a call did, and says where that was made. The script learns nothing of it.
func (w *worker) abort(call uint32) {
	t := wire.Fault{Failure: wire.Thrown}
	if p := w.calls[call]; p != nil {
		t.Stack = w.describe(wire.Thrown, w.engine.dup(p.where)).Stack
	}
	w.fail(t)
}

// watchOver ends a worker that its host has left behind: soon after the host is gone, and some time after the run's last moment.
func watchOver(limit time.Duration) {
	time.AfterFunc(limit+10*Grace, func() { os.Exit(exitLate) })
	lock.WatchHost(func() { os.Exit(exitHost) })
}
