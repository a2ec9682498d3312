//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"bufio"
	_ "embed"
	"encoding/binary"
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
	w := &worker{in: bufio.NewReader(in), out: bufio.NewWriter(out), calls: map[uint32]*pending{},
		functions: map[uint32]value{}, thrown: map[uint32]value{}, last: map[uint32]uint32{}}
	e, err := newEngine()
	if err != nil {
		os.Exit(exitEngine)
	}
	w.engine = e
	w.prepare()
	debug.FreeOSMemory() // what the start of the program left behind
	w.send(wire.Ready(Version()))
	w.flush()
	f, err := wire.ReadFrame(w.in)
	if err != nil || f.Kind != wire.KindStart {
		os.Exit(exitHost)
	}
	if w.start, err = wire.DecodeStart(f); err != nil {
		os.Exit(exitHost)
	}
	time.AfterFunc(w.start.Time, func() { e.stop.Store(true) })
	watchOver(w.start.Time)
	// What the engine counts, what its allocator wastes, the stack of the deepest recursion while it is copied, and
	// frames.
	memory := uint64(w.start.Memory+w.start.Memory/2) + uint64(w.start.Stack)<<14 + 96<<20
	if err := lock.Restrict(memory); err != nil {
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

// watchOver ends a worker that its host has left behind: soon after the host is gone, and some time after the run's
// last moment.
func watchOver(limit time.Duration) {
	time.AfterFunc(limit+10*Grace, func() { os.Exit(exitLate) })
	lock.WatchHost(func() { os.Exit(exitHost) })
}

// worker is the process that runs one script.
type worker struct {
	in     *bufio.Reader
	out    *bufio.Writer
	engine *engine
	start  wire.Start
	source *source
	hooks  struct{ fix, describe, fail, invoke, watch value }

	calls       map[uint32]*pending
	pendingSize int // bytes of arguments of calls
	lastCall    uint32
	functions   map[uint32]value // handed to the host, by handle
	lastHandle  uint32
	invocations int               // functions of the script's that the host has called and that have not settled
	thrown      map[uint32]value  // what invocations threw, until the call ends that they belong to
	last        map[uint32]uint32 // invocations whose outcome is that of a call
	printed     int64             // bytes of console output

	settled bool   // the script has come to its end
	result  []byte // its value
}

// prepare does everything that needs no script, while the worker waits for one.
func (w *worker) prepare() {
	e := w.engine
	setup := e.eval(preludeName, prelude, quickjs.MJS_EVAL_TYPE_GLOBAL)
	natives := e.object()
	for name, f := range map[string]native{"log": w.log, "returned": w.returned, "threw": w.threw, "done": w.done,
		"failed": w.failed} {
		e.define(natives, name, e.function(f, 0), quickjs.MJS_PROP_ENUMERABLE)
	}
	hooks := e.call(setup, natives)
	if isException(hooks) {
		os.Exit(exitEngine)
	}
	for name, v := range map[string]*value{"fix": &w.hooks.fix, "describe": &w.hooks.describe, "fail": &w.hooks.fail,
		"invoke": &w.hooks.invoke, "watch": &w.hooks.watch} {
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
		if len(w.calls) == 0 && w.invocations == 0 {
			w.finish()
		}
		w.flush()
		f, err := wire.ReadFrame(w.in)
		if err != nil {
			os.Exit(exitHost)
		}
		if err := w.handle(f); err != nil {
			os.Exit(exitHost)
		}
	}
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
		e.define(e.global, "input", w.check(e.parse(s.Input)),
			quickjs.MJS_PROP_CONFIGURABLE|quickjs.MJS_PROP_ENUMERABLE)
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

// fixed are the flags of a property that a script cannot change by mistake. A global can still be shadowed by a
// declaration.
func (w *worker) fixed(space string) int32 {
	if space == "" {
		return quickjs.MJS_PROP_CONFIGURABLE | quickjs.MJS_PROP_ENUMERABLE
	}
	return quickjs.MJS_PROP_ENUMERABLE
}

// send queues a frame for the host. Frames are written together when the script waits.
func (w *worker) send(frame []byte) {
	if _, err := w.out.Write(frame); err != nil {
		os.Exit(exitHost)
	}
}

// flush writes the queued frames.
func (w *worker) flush() {
	if err := w.out.Flush(); err != nil {
		os.Exit(exitHost)
	}
}

// handle takes one message of the host's.
func (w *worker) handle(f wire.Frame) error {
	switch f.Kind {
	case wire.KindResolve, wire.KindReject:
		return w.answer(f)
	case wire.KindInvoke:
		return w.invoke(f)
	case wire.KindStop:
		w.late()
		return nil
	case wire.KindAbort:
		w.abort(f.ID)
		return nil
	case wire.KindStart, wire.KindReady, wire.KindCall, wire.KindReturned, wire.KindThrew, wire.KindLog, wire.KindDone,
		wire.KindFailed:
	}
	return wire.ErrMalformed
}
