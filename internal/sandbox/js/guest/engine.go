//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"bytes"
	"errors"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	quickjs "modernc.org/libquickjs"
)

// engine is QuickJS, as translated to Go by modernc.org/libquickjs, cut down to what a worker needs. The idiomatic
// wrapper around the same translation cannot name a script, watch for unhandled rejections or evaluate a top-level
// await, so the calls are made here. Values are counted by hand: whoever gets one from a method frees it, unless it
// says otherwise.
//
// There is one engine in a worker process, it is used by one goroutine, and the process ends with its run: what a
// failing path forgets to free lives for milliseconds.
type engine struct {
	tls *libc.TLS
	rt  uintptr
	ctx uintptr

	global   value
	newError value // the Error constructor as it was before the script could touch it

	stop     atomic.Bool // tells the interrupt handler to stop whatever runs
	timedOut bool        // it did so: nothing the script says after that counts
	// the most memory between two jobs: a chain of promises that had no memory is gone when its end is told
	peak       int64
	where      value  // an Error made at the place where it did
	looking    bool   // which takes a moment
	blind      int    // how often that was nowhere
	file       string // how places in the script begin
	rejections []rejection
	keep       []any // functions that the engine holds as bare pointers
}

type value = quickjs.TJSValue

// rejection is a promise that was rejected while nobody listened.
type rejection struct{ promise, reason value }

var undefined = value{Ftag: quickjs.EJS_TAG_UNDEFINED}

const valueSize = unsafe.Sizeof(value{})

// errEngine says that the engine could not be set up at all.
var errEngine = errors.New("no memory for the JavaScript engine")

func newEngine() (*engine, error) {
	tls := libc.NewTLS()
	rt := quickjs.XJS_NewRuntime(tls)
	if rt == 0 {
		return nil, errEngine
	}
	ctx := quickjs.XJS_NewContext(tls, rt)
	if ctx == 0 {
		return nil, errEngine
	}
	e := &engine{tls: tls, rt: rt, ctx: ctx, where: undefined}
	quickjs.XJS_SetInterruptHandler(tls, rt, e.pointer(e.interrupt), 0)
	quickjs.XJS_SetHostPromiseRejectionTracker(tls, rt, e.pointer(e.track), 0)
	e.global = quickjs.XJS_GetGlobalObject(tls, ctx)
	e.newError = e.get(e.global, "Error")
	return e, nil
}

// limit sets how much memory the engine may take, in bytes, and how deep calls may nest.
func (e *engine) limit(memory int64, stack int) {
	quickjs.XJS_SetMemoryLimit(e.tls, e.rt, quickjs.Tsize_t(memory))
	quickjs.XJS_SetMaxStackSize(e.tls, e.rt, quickjs.Tsize_t(stack))
}

// memory is how many bytes the engine has taken.
func (e *engine) memory() int64 {
	return int64((*quickjs.TJSRuntime)(address(e.rt)).Fmalloc_ctx.Fmalloc_state.Fmalloc_size)
}

// address is a place in the engine's memory, which is not Go's and never moves.
func address(p uintptr) unsafe.Pointer { return unsafe.Add(nil, p) }

// pointer makes a Go function callable by the engine, which takes it for a C function pointer.
func (e *engine) pointer(f any) uintptr {
	e.keep = append(e.keep, f)
	type iface struct{ typ, data uintptr }
	return (*iface)(unsafe.Pointer(&f)).data
}

// interrupt is asked by the engine every few thousand steps, in loops, calls and regular expressions.
func (e *engine) interrupt(_ *libc.TLS, _, _ uintptr) int32 {
	if !e.stop.Load() || e.looking {
		return 0
	}
	if !e.timedOut {
		e.looking = true
		e.free(e.where)
		e.where = e.here()
		e.looking = false
		if e.blind++; e.blind < mostBlind && !e.placed(e.where) {
			e.hurry()
			return 0
		}
		e.timedOut = true
	}
	return 1
}

// mostBlind is how often the engine is asked where the script stands before it is stopped without an answer: between
// two jobs, and where a job begins, there is none.
const mostBlind = 1000

// hurry has the interrupt handler asked at the next opportunity.
func (e *engine) hurry() { (*quickjs.TJSContext)(address(e.ctx)).Finterrupt_counter = 0 }

// placed tells whether an Error knows a line of the script's.
func (e *engine) placed(where value) bool {
	if isException(where) {
		return true // there is no memory to look any further
	}
	stack := e.get(where, "stack")
	defer e.free(stack)
	text, ok := e.bytes(stack)
	if !ok {
		e.free(e.exception())
	}
	return e.file == "" || bytes.Contains(text, []byte(e.file+":"))
}

// track keeps the list of rejected promises that nobody listens to. One that gets a listener later is taken off it.
func (e *engine) track(_ *libc.TLS, _ uintptr, promise, reason value, handled int32, _ uintptr) {
	if handled == 0 {
		e.rejections = append(e.rejections, rejection{e.dup(promise), e.dup(reason)})
		return
	}
	for i, r := range e.rejections {
		if r.promise.Fu == promise.Fu {
			e.free(r.promise, r.reason)
			e.rejections = append(e.rejections[:i], e.rejections[i+1:]...)
			return
		}
	}
}

// native is a Go function for the script to call. Its arguments are borrowed; its result is the engine's.
type native func(args []value, magic int32) value

func (e *engine) function(f native, magic int32) value {
	c := func(_ *libc.TLS, _ uintptr, _ value, argc int32, argv uintptr, magic int32, _ uintptr) value {
		return f(unsafe.Slice((*value)(address(argv)), argc), magic)
	}
	return quickjs.XJS_NewCFunctionData(e.tls, e.ctx, e.pointer(c), 0, magic, 0, 0)
}

// c copies s to the engine's side of memory, zero-terminated. 0 means there is no memory left.
func (e *engine) c(s string) uintptr {
	p := libc.Xmalloc(e.tls, libc.Tsize_t(len(s)+1))
	if p == 0 {
		return 0
	}
	b := unsafe.Slice((*byte)(address(p)), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return p
}

// with calls f with s on the engine's side. Without memory it gives an exception, as f would.
func (e *engine) with(s string, f func(p uintptr, n quickjs.Tsize_t) value) value {
	p := e.c(s)
	if p == 0 {
		return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx)
	}
	defer libc.Xfree(e.tls, p)
	return f(p, quickjs.Tsize_t(len(s)))
}

func (e *engine) string(s string) value {
	return e.with(s, func(p uintptr, n quickjs.Tsize_t) value { return quickjs.XJS_NewStringLen(e.tls, e.ctx, p, n) })
}

func (e *engine) int(n int) value { return quickjs.XNewInt32(e.tls, e.ctx, int32(n)) }

// number is for what may not fit 32 bits. It is exact up to 2^53.
func (e *engine) number(n int64) value {
	f := float64(n)
	v := value{Ftag: quickjs.EJS_TAG_FLOAT64}
	*(*float64)(unsafe.Pointer(&v)) = f
	return v
}

// toInt is the 32-bit number in v, 0 if v is something else.
func (e *engine) toInt(v value) int {
	if v.Ftag != quickjs.EJS_TAG_INT {
		return 0
	}
	return int(int32(*(*uint64)(unsafe.Pointer(&v))))
}

// parse is JSON.parse, out of the script's reach. Nothing at all is undefined.
func (e *engine) parse(text []byte) value {
	if len(text) == 0 {
		return undefined
	}
	return e.with(string(text), func(p uintptr, n quickjs.Tsize_t) value {
		name := e.c("JSON")
		defer libc.Xfree(e.tls, name)
		return quickjs.XJS_ParseJSON(e.tls, e.ctx, p, n, name)
	})
}

// stringify is JSON.stringify, out of the script's reach. What JSON cannot say is nil, as undefined. False means it
// threw.
func (e *engine) stringify(v value) ([]byte, bool) {
	s := quickjs.XJS_JSONStringify(e.tls, e.ctx, v, undefined, undefined)
	defer e.free(s)
	switch s.Ftag {
	case quickjs.EJS_TAG_EXCEPTION:
		return nil, false
	case quickjs.EJS_TAG_UNDEFINED:
		return nil, true
	}
	return e.bytes(s)
}

// bytes is v as text, converted as the script would convert it. False means that threw.
func (e *engine) bytes(v value) ([]byte, bool) {
	size := libc.Xmalloc(e.tls, 8)
	if size == 0 {
		quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx)
		return nil, false
	}
	defer libc.Xfree(e.tls, size)
	p := quickjs.XJS_ToCStringLen2(e.tls, e.ctx, size, v, 0)
	if p == 0 {
		return nil, false
	}
	defer quickjs.XJS_FreeCString(e.tls, e.ctx, p)
	b := make([]byte, *(*quickjs.Tsize_t)(address(size)))
	copy(b, unsafe.Slice((*byte)(address(p)), len(b)))
	return b, true
}

func (e *engine) get(v value, name string) value {
	return e.with(name, func(p uintptr, _ quickjs.Tsize_t) value {
		return quickjs.XJS_GetPropertyStr(e.tls, e.ctx, v,
			p)
	})
}

// define gives an object a property and takes over v. Flags are quickjs.MJS_PROP_*; none means fixed and hidden.
func (e *engine) define(object value, name string, v value, flags int32) bool {
	p := e.c(name)
	if p == 0 {
		return false
	}
	defer libc.Xfree(e.tls, p)
	return quickjs.XJS_DefinePropertyValueStr(e.tls, e.ctx, object, p, v, flags) >= 0
}

func (e *engine) object() value { return quickjs.XJS_NewObject(e.tls, e.ctx) }

// call calls f with borrowed arguments.
func (e *engine) call(f value, args ...value) value {
	argv := uintptr(0)
	if len(args) > 0 {
		if argv = libc.Xmalloc(e.tls, libc.Tsize_t(valueSize)*libc.Tsize_t(len(args))); argv == 0 {
			return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx)
		}
		defer libc.Xfree(e.tls, argv)
		copy(unsafe.Slice((*value)(address(argv)), len(args)), args)
	}
	return quickjs.XJS_Call(e.tls, e.ctx, f, undefined, int32(len(args)), argv)
}

// here is a new Error that knows where the script stands.
func (e *engine) here() value { return quickjs.XJS_CallConstructor(e.tls, e.ctx, e.newError, 0, 0) }

// compile reads a script that may await at its top level, without running it. An exception is a syntax error.
func (e *engine) compile(name, source string) value {
	const flags = quickjs.MJS_EVAL_TYPE_GLOBAL | quickjs.MJS_EVAL_FLAG_ASYNC | quickjs.MJS_EVAL_FLAG_STRICT |
		quickjs.MJS_EVAL_FLAG_COMPILE_ONLY
	return e.eval(name, source, flags)
}

// run starts a compiled script, taking it over. It gives a promise of an object whose value is that of the last
// expression.
func (e *engine) run(code value) value { return quickjs.XJS_EvalFunction(e.tls, e.ctx, code) }

func (e *engine) eval(name, source string, flags int32) value {
	return e.with(name, func(file uintptr, _ quickjs.Tsize_t) value {
		return e.with(source, func(p uintptr, n quickjs.Tsize_t) value {
			return quickjs.XJS_Eval(e.tls, e.ctx, p, n,
				file, flags)
		})
	})
}

// promise makes one, with the two functions that settle it.
func (e *engine) promise() (promise, resolve, reject value) {
	both := libc.Xmalloc(e.tls, 2*libc.Tsize_t(valueSize))
	if both == 0 {
		return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx), undefined, undefined
	}
	defer libc.Xfree(e.tls, both)
	if promise = quickjs.XJS_NewPromiseCapability(e.tls, e.ctx, both); isException(promise) {
		return promise, undefined, undefined
	}
	f := unsafe.Slice((*value)(address(both)), 2)
	return promise, f[0], f[1]
}

// drain runs what promises have ready. It gives false, with the exception if there is one, when a job was stopped.
func (e *engine) drain() (value, bool) {
	ctx := libc.Xmalloc(e.tls, libc.Tsize_t(unsafe.Sizeof(uintptr(0))))
	if ctx == 0 {
		return undefined, false
	}
	defer libc.Xfree(e.tls, ctx)
	for {
		if e.stop.Load() { // short jobs may never reach the handler by themselves
			if e.blind++; e.timedOut || e.blind >= mostBlind {
				e.timedOut = true
				return undefined, false
			}
			e.hurry()
		}
		e.peak = max(e.peak, e.memory())
		switch r := quickjs.XJS_ExecutePendingJob(e.tls, e.rt, ctx); {
		case r < 0:
			return e.exception(), false
		case r == 0:
			return undefined, true
		}
	}
}

// exception takes the pending exception.
func (e *engine) exception() value { return quickjs.XJS_GetException(e.tls, e.ctx) }

// typeError makes an error for the script. The text has no % in it.
func (e *engine) typeError(text string) value {
	if p := e.c(text); p != 0 {
		defer libc.Xfree(e.tls, p)
		quickjs.XJS_ThrowTypeError(e.tls, e.ctx, p, 0)
	}
	return e.exception()
}

func (e *engine) dup(v value) value { return quickjs.XDupValue(e.tls, e.ctx, v) }

func (e *engine) free(values ...value) {
	for _, v := range values {
		quickjs.XFreeValue(e.tls, e.ctx, v)
	}
}

func (e *engine) isFunction(v value) bool { return quickjs.XJS_IsFunction(e.tls, e.ctx, v) != 0 }

func isException(v value) bool { return v.Ftag == quickjs.EJS_TAG_EXCEPTION }
func isNull(v value) bool      { return v.Ftag == quickjs.EJS_TAG_NULL }
func isBigInt(v value) bool {
	return v.Ftag == quickjs.EJS_TAG_BIG_INT || v.Ftag == quickjs.EJS_TAG_SHORT_BIG_INT
}

func (e *engine) array() value { return quickjs.XJS_NewArray(e.tls, e.ctx) }

// push puts v, which it takes over, at place i.
func (e *engine) push(array value, i int, v value) {
	quickjs.XJS_DefinePropertyValueUint32(e.tls, e.ctx, array, uint32(i), v, quickjs.MJS_PROP_C_W_E)
}

func (e *engine) at(array value, i int) value {
	return quickjs.XJS_GetPropertyUint32(e.tls, e.ctx, array, uint32(i))
}

// id is a number that the engine was given by number or int.
func (e *engine) id(v value) uint32 {
	if v.Ftag == quickjs.EJS_TAG_FLOAT64 {
		return uint32(*(*float64)(unsafe.Pointer(&v)))
	}
	return uint32(e.toInt(v))
}

// rethrow is what a native returns whose own call into the engine has thrown.
func (e *engine) rethrow() value { return value{Ftag: quickjs.EJS_TAG_EXCEPTION} }
