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
	"slices"
	"strings"
	"time"

	quickjs "modernc.org/libquickjs"
	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/lock"
)

//go:embed prelude.js
var prelude string

// Supported reports whether the engine supports this platform.
const Supported = true

const preludeName = "reeve:prelude" // file name in stack traces; scriptFile never returns it

// Serve is the main function of a worker process. It prepares the engine, receives one script and runs it. It does not
// return.
func Serve(in io.Reader, out io.Writer) {
	// The Go heap of a worker holds only frames. Frequent collections keep it small.
	debug.SetGCPercent(50)
	w := &worker{in: bufio.NewReader(in), out: bufio.NewWriter(out), calls: map[uint32]*pendingCall{},
		functions: map[uint32]value{}, thrown: map[uint32]value{}, delegated: map[uint32]uint32{}}
	e, err := newEngine()
	if err != nil {
		os.Exit(exitEngine)
	}
	w.engine = e
	w.loadPrelude()
	debug.FreeOSMemory() // garbage of the program's initialization
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
	w.computing = newComputeTimer(e, w.start.Compute)
	startWatchdogs(w.start.Time)
	// The engine's own limit, half of it again for allocator overhead, the Go stack of the deepest recursion while it
	// is copied, and frames.
	memory := uint64(w.start.Memory+w.start.Memory/2) + uint64(w.start.Stack)<<14 + 96<<20
	if err := lock.Restrict(memory); err != nil {
		os.Exit(exitLock)
	}
	w.run()
}

// Exit codes of a worker that cannot report an error to its host.
const (
	exitEngine = 80 + iota // the engine did not start
	exitHost               // the host is gone or violated the protocol
	exitLock               // lock.Restrict failed
	exitLate               // the host did not end this process in time
)

// startWatchdogs ends the process soon after the host has ended, and 10*Grace after the time limit of the run.
func startWatchdogs(limit time.Duration) {
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
	hooks  struct{ fix, describe, fail, origin, handleInvoke, watch, placeholder, isPlaceholder value }

	computing *computeTimer
	methods   value        // an object with the methods of the first argument of the script's functions
	deferred  []wire.Frame // frames that arrived while a synchronous call waited

	calls       map[uint32]*pendingCall
	pendingSize int // bytes of arguments of calls
	lastCall    uint32
	functions   map[uint32]value // functions passed to the host, by handle
	lastHandle  uint32
	invocations int               // invocations by the host that have not settled
	thrown      map[uint32]value  // values that invocations threw, by invocation, until their host call ends
	delegated   map[uint32]uint32 // invocation to the host call whose result it provides
	outputSize  int64             // bytes of console output

	hasResult bool   // the script has ended with a value
	result    []byte // the value as JSON
}

// loadPrelude evaluates prelude.js and reads its hooks. It runs before a script arrives.
func (w *worker) loadPrelude() {
	e := w.engine
	setup := e.eval(preludeName, prelude, quickjs.MJS_EVAL_TYPE_GLOBAL)
	natives := e.newObject()
	for name, f := range map[string]native{"log": w.onLog, "returned": w.onReturned, "threw": w.onThrew,
		"done":   w.onDone,
		"failed": w.onFailed} {
		e.defineProperty(natives, name, e.newFunction(f, 0), quickjs.MJS_PROP_ENUMERABLE)
	}
	hooks := e.call(setup, natives)
	if isException(hooks) {
		os.Exit(exitEngine)
	}
	for name, v := range map[string]*value{"fix": &w.hooks.fix, "describe": &w.hooks.describe, "fail": &w.hooks.fail,
		"origin": &w.hooks.origin, "invoke": &w.hooks.handleInvoke, "watch": &w.hooks.watch,
		"placeholder": &w.hooks.placeholder, "isPlaceholder": &w.hooks.isPlaceholder} {
		*v = e.getProperty(hooks, name)
	}
	e.free(setup, natives, hooks)
}

// run runs the script to its end. It does not return.
func (w *worker) run() {
	e, s := w.engine, &w.start
	e.setLimits(s.Memory, int(s.Stack))
	w.defineGlobals()
	code := w.compile()
	promise := e.runCode(code)
	w.must(promise)
	e.free(w.must(e.call(w.hooks.watch, promise)), promise)
	for {
		if exception, ok := e.runJobs(); !ok {
			w.fail(w.describe(wire.Thrown, exception))
		}
		if len(w.calls) == 0 && w.invocations == 0 {
			w.finish()
		}
		if err := w.handleFrame(w.nextFrame()); err != nil {
			os.Exit(exitHost)
		}
	}
}

// nextFrame waits for the next frame of the host.
func (w *worker) nextFrame() wire.Frame {
	if len(w.deferred) > 0 {
		f := w.deferred[0]
		w.deferred = w.deferred[1:]
		return f
	}
	return w.readFrame()
}

// readFrame reads a frame. The time it waits is not computing time.
func (w *worker) readFrame() wire.Frame {
	w.flush()
	w.computing.stop()
	f, err := wire.ReadFrame(w.in)
	if err != nil {
		os.Exit(exitHost)
	}
	w.computing.restart()
	return f
}

// compile translates and compiles the script. If that fails, it tries again with the script as the body of a function,
// which allows a return at the top level.
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
	first := w.describe(wire.Syntax, e.takeException())
	src.wrap()
	if code = e.compile(src.file, src.text); isException(code) {
		w.fail(first)
	}
	return code
}

// defineGlobals sets the script's clock and random seed, and defines its input and host functions.
func (w *worker) defineGlobals() {
	e, s := w.engine, &w.start
	h := fnv.New128a()
	_ = binary.Write(h, binary.LittleEndian, s.Seed) // writing to a hash does not fail
	var seed [4]value
	for i := range seed {
		seed[i] = e.newInt(int(int32(binary.LittleEndian.Uint32(h.Sum(nil)[4*i:]))))
	}
	w.must(e.call(w.hooks.fix, e.newNumber(s.Now), seed[0], seed[1], seed[2], seed[3]))
	if len(s.Input) > 0 {
		e.defineProperty(e.global, "input", w.must(e.parseJSON(s.Input)),
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
				spaces[inner] = e.newObject()
				e.defineProperty(spaces[space], part, e.dup(spaces[inner]), w.propertyFlags(space))
			}
			space, rest = inner, after
		}
		call := w.callHost
		if slices.Contains(s.Sync, name) {
			call = w.callHostSync
		}
		f := e.newFunction(call, int32(i))
		e.defineProperty(f, "name", e.newString(rest), quickjs.MJS_PROP_CONFIGURABLE)
		e.defineProperty(spaces[space], rest, f, w.propertyFlags(space))
	}
	w.methods = e.newObject()
	for i, name := range s.Methods {
		f := e.newFunction(w.callHost, int32(len(s.Functions)+i))
		e.defineProperty(w.methods, name, f, quickjs.MJS_PROP_ENUMERABLE)
	}
	for space, v := range spaces {
		if space != "" {
			quickjs.XJS_PreventExtensions(e.tls, e.ctx, v)
			e.free(v)
		}
	}
}

// propertyFlags returns the flags of a host function's property, which is read-only. A global is configurable, so that
// the script can shadow it by a declaration.
func (w *worker) propertyFlags(space string) int32 {
	if space == "" {
		return quickjs.MJS_PROP_CONFIGURABLE | quickjs.MJS_PROP_ENUMERABLE
	}
	return quickjs.MJS_PROP_ENUMERABLE
}

// send buffers a frame for the host. The run loop flushes the buffer when the script waits.
func (w *worker) send(frame []byte) {
	if _, err := w.out.Write(frame); err != nil {
		os.Exit(exitHost)
	}
}

// flush writes the buffered frames.
func (w *worker) flush() {
	if err := w.out.Flush(); err != nil {
		os.Exit(exitHost)
	}
}

// handleFrame handles a frame from the host.
func (w *worker) handleFrame(f wire.Frame) error {
	switch f.Kind {
	case wire.KindResolve, wire.KindReject, wire.KindPlaceholder:
		return w.handleAnswer(f)
	case wire.KindInvoke:
		return w.handleInvoke(f)
	case wire.KindStop:
		w.handleStop()
		return nil
	case wire.KindAbort:
		w.handleAbort(f.ID)
		return nil
	case wire.KindStart, wire.KindReady, wire.KindCall, wire.KindReturned, wire.KindThrew, wire.KindLog, wire.KindDone,
		wire.KindFailed:
	}
	return wire.ErrMalformed
}
