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

// engine wraps QuickJS, as translated to Go by modernc.org/libquickjs. It has only the functions that a worker needs.
// The idiomatic Go wrapper around the same translation cannot name a script, track unhandled rejections or evaluate
// top-level await, so engine calls the translated C functions directly.
//
// Values are reference counted. The caller of a method owns the returned value and must free it, unless the method
// says otherwise. A worker process has one engine, used by one goroutine, and the process ends with its run. So a value
// that is not freed on an error path does not matter.
type engine struct {
	tls *libc.TLS
	rt  uintptr
	ctx uintptr

	global           value
	errorConstructor value // Error, read before the script could replace it

	stop     atomic.Bool // makes the interrupt handler stop the script
	timedOut bool        // the interrupt handler stopped the script; its later results are ignored
	tooLong  atomic.Bool // the script is stopped because it computed for too long without a call
	// the highest memory use between two jobs, because a promise chain that ran out of memory is already freed when
	// its failure is reported
	peakMemory     int64
	stoppedAt      value       // an Error created where the interrupt handler stopped the script
	isLocating     bool        // stoppedAt is being created, which must not be interrupted
	locateAttempts int         // attempts to find a position of the script
	file           string      // the script's file name in stack traces
	rejections     []rejection // rejected promises without a handler
	pinned         []any       // Go functions that the engine holds as C pointers, so that they are not collected
}

type value = quickjs.TJSValue

// rejection is a rejected promise without a handler.
type rejection struct{ promise, reason value }

var undefined = value{Ftag: quickjs.EJS_TAG_UNDEFINED}

const valueSize = unsafe.Sizeof(value{})

// errEngine means that the engine could not be created.
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
	e := &engine{tls: tls, rt: rt, ctx: ctx, stoppedAt: undefined}
	quickjs.XJS_SetInterruptHandler(tls, rt, e.functionPointer(e.onInterrupt), 0)
	quickjs.XJS_SetHostPromiseRejectionTracker(tls, rt, e.functionPointer(e.trackRejection), 0)
	e.global = quickjs.XJS_GetGlobalObject(tls, ctx)
	e.errorConstructor = e.getProperty(e.global, "Error")
	return e, nil
}

// setLimits sets the engine's memory limit in bytes and its maximum call depth.
func (e *engine) setLimits(memory int64, stack int) {
	quickjs.XJS_SetMemoryLimit(e.tls, e.rt, quickjs.Tsize_t(memory))
	quickjs.XJS_SetMaxStackSize(e.tls, e.rt, quickjs.Tsize_t(stack))
}

// memoryUsed returns the bytes that the engine has allocated.
func (e *engine) memoryUsed() int64 {
	return int64((*quickjs.TJSRuntime)(toPointer(e.rt)).Fmalloc_ctx.Fmalloc_state.Fmalloc_size)
}

// toPointer converts an address in the engine's memory, which Go does not manage and which never moves.
func toPointer(p uintptr) unsafe.Pointer { return unsafe.Add(nil, p) }

// functionPointer returns a Go function in the form that the translated C code uses for function pointers.
func (e *engine) functionPointer(f any) uintptr {
	e.pinned = append(e.pinned, f)
	type iface struct{ typ, data uintptr }
	return (*iface)(unsafe.Pointer(&f)).data
}

// onInterrupt is called by the engine every few thousand steps of loops, calls and regular expressions. It returns 1 to
// stop the script once stop is set. First it records the position, and waits for a step that has one.
func (e *engine) onInterrupt(_ *libc.TLS, _, _ uintptr) int32 {
	if !e.stop.Load() || e.isLocating {
		return 0
	}
	if !e.timedOut {
		e.isLocating = true
		e.free(e.stoppedAt)
		e.stoppedAt = e.newErrorHere()
		e.isLocating = false
		if e.locateAttempts++; e.locateAttempts < maxLocateAttempts && !e.hasScriptLine(e.stoppedAt) {
			e.forceInterrupt()
			return 0
		}
		e.timedOut = true
	}
	return 1
}

// maxLocateAttempts is the number of attempts to find the script's position before the script is stopped without one.
// Between two jobs, and at the start of a job, there is no position.
const maxLocateAttempts = 1000

// forceInterrupt makes the engine call onInterrupt at its next check.
func (e *engine) forceInterrupt() { (*quickjs.TJSContext)(toPointer(e.ctx)).Finterrupt_counter = 0 }

// hasScriptLine reports whether the stack of an Error contains a line of the script.
func (e *engine) hasScriptLine(where value) bool {
	if isException(where) {
		return true // there is no memory for another attempt
	}
	stack := e.getProperty(where, "stack")
	defer e.free(stack)
	text, ok := e.toBytes(stack)
	if !ok {
		e.free(e.takeException())
	}
	return e.file == "" || bytes.Contains(text, []byte(e.file+":"))
}

// trackRejection maintains e.rejections. The engine calls it when a promise without a handler is rejected, and when
// such a promise gets a handler later.
func (e *engine) trackRejection(_ *libc.TLS, _ uintptr, promise, reason value, handled int32, _ uintptr) {
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

// forgetRejection removes a promise from e.rejections, as if it had a handler.
func (e *engine) forgetRejection(promise value) {
	e.trackRejection(nil, 0, promise, undefined, 1, 0)
}

// native is a Go function that JavaScript can call. It does not own its arguments. The engine owns the result.
type native func(args []value, magic int32) value

func (e *engine) newFunction(f native, magic int32) value {
	c := func(_ *libc.TLS, _ uintptr, _ value, argc int32, argv uintptr, magic int32, _ uintptr) value {
		return f(unsafe.Slice((*value)(toPointer(argv)), argc), magic)
	}
	return quickjs.XJS_NewCFunctionData(e.tls, e.ctx, e.functionPointer(c), 0, magic, 0, 0)
}

// newCString copies s to the engine's memory as a C string. It returns 0 if there is no memory left.
func (e *engine) newCString(s string) uintptr {
	p := libc.Xmalloc(e.tls, libc.Tsize_t(len(s)+1))
	if p == 0 {
		return 0
	}
	b := unsafe.Slice((*byte)(toPointer(p)), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return p
}

// withCString calls f with a temporary C string of s. It returns an exception if there is no memory left.
func (e *engine) withCString(s string, f func(p uintptr, n quickjs.Tsize_t) value) value {
	p := e.newCString(s)
	if p == 0 {
		return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx)
	}
	defer libc.Xfree(e.tls, p)
	return f(p, quickjs.Tsize_t(len(s)))
}

func (e *engine) newString(s string) value {
	return e.withCString(s, func(p uintptr, n quickjs.Tsize_t) value {
		return quickjs.XJS_NewStringLen(e.tls, e.ctx, p, n)
	})
}

func (e *engine) newInt(n int) value { return quickjs.XNewInt32(e.tls, e.ctx, int32(n)) }

// newNumber returns a number that may not fit 32 bits. It is exact up to 2^53.
func (e *engine) newNumber(n int64) value {
	f := float64(n)
	v := value{Ftag: quickjs.EJS_TAG_FLOAT64}
	*(*float64)(unsafe.Pointer(&v)) = f
	return v
}

// toInt returns the 32-bit integer in v, or 0 if v is not one.
func (e *engine) toInt(v value) int {
	if v.Ftag != quickjs.EJS_TAG_INT {
		return 0
	}
	return int(int32(*(*uint64)(unsafe.Pointer(&v))))
}

// parseJSON works like JSON.parse, and the script cannot replace it. Empty text gives undefined.
func (e *engine) parseJSON(text []byte) value {
	if len(text) == 0 {
		return undefined
	}
	return e.withCString(string(text), func(p uintptr, n quickjs.Tsize_t) value {
		name := e.newCString("JSON")
		defer libc.Xfree(e.tls, name)
		return quickjs.XJS_ParseJSON(e.tls, e.ctx, p, n, name)
	})
}

// stringify works like JSON.stringify, and the script cannot replace it. It returns nil for a value that JSON cannot
// represent, such as undefined, and false if it threw an exception.
func (e *engine) stringify(v value) ([]byte, bool) {
	s := quickjs.XJS_JSONStringify(e.tls, e.ctx, v, undefined, undefined)
	defer e.free(s)
	switch s.Ftag {
	case quickjs.EJS_TAG_EXCEPTION:
		return nil, false
	case quickjs.EJS_TAG_UNDEFINED:
		return nil, true
	}
	return e.toBytes(s)
}

// toBytes returns v converted to a string as JavaScript does it. It returns false if that threw an exception.
func (e *engine) toBytes(v value) ([]byte, bool) {
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
	b := make([]byte, *(*quickjs.Tsize_t)(toPointer(size)))
	copy(b, unsafe.Slice((*byte)(toPointer(p)), len(b)))
	return b, true
}

func (e *engine) getProperty(v value, name string) value {
	return e.withCString(name, func(p uintptr, _ quickjs.Tsize_t) value {
		return quickjs.XJS_GetPropertyStr(e.tls, e.ctx, v, p)
	})
}

// defineProperty defines a property of an object and takes ownership of v. Flags are quickjs.MJS_PROP_* values. Without
// flags the property is read-only and not enumerable.
func (e *engine) defineProperty(object value, name string, v value, flags int32) bool {
	p := e.newCString(name)
	if p == 0 {
		return false
	}
	defer libc.Xfree(e.tls, p)
	return quickjs.XJS_DefinePropertyValueStr(e.tls, e.ctx, object, p, v, flags) >= 0
}

func (e *engine) newObject() value { return quickjs.XJS_NewObject(e.tls, e.ctx) }

// call calls f. The caller keeps ownership of the arguments.
func (e *engine) call(f value, args ...value) value {
	argv := uintptr(0)
	if len(args) > 0 {
		if argv = libc.Xmalloc(e.tls, libc.Tsize_t(valueSize)*libc.Tsize_t(len(args))); argv == 0 {
			return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx)
		}
		defer libc.Xfree(e.tls, argv)
		copy(unsafe.Slice((*value)(toPointer(argv)), len(args)), args)
	}
	return quickjs.XJS_Call(e.tls, e.ctx, f, undefined, int32(len(args)), argv)
}

// newErrorHere returns a new Error with the current stack of the script.
func (e *engine) newErrorHere() value {
	return quickjs.XJS_CallConstructor(e.tls, e.ctx, e.errorConstructor, 0, 0)
}

// compile compiles a script with top-level await. It returns an exception for a syntax error.
func (e *engine) compile(name, source string) value {
	const flags = quickjs.MJS_EVAL_TYPE_GLOBAL | quickjs.MJS_EVAL_FLAG_ASYNC | quickjs.MJS_EVAL_FLAG_STRICT |
		quickjs.MJS_EVAL_FLAG_COMPILE_ONLY
	return e.eval(name, source, flags)
}

// runCode starts a compiled script and takes ownership of code. It returns a promise of an object whose property value
// is the value of the script's last expression.
func (e *engine) runCode(code value) value { return quickjs.XJS_EvalFunction(e.tls, e.ctx, code) }

func (e *engine) eval(name, source string, flags int32) value {
	return e.withCString(name, func(file uintptr, _ quickjs.Tsize_t) value {
		return e.withCString(source, func(p uintptr, n quickjs.Tsize_t) value {
			return quickjs.XJS_Eval(e.tls, e.ctx, p, n, file, flags)
		})
	})
}

// newPromise returns a promise and the two functions that settle it.
func (e *engine) newPromise() (promise, resolve, reject value) {
	both := libc.Xmalloc(e.tls, 2*libc.Tsize_t(valueSize))
	if both == 0 {
		return quickjs.XJS_ThrowOutOfMemory(e.tls, e.ctx), undefined, undefined
	}
	defer libc.Xfree(e.tls, both)
	if promise = quickjs.XJS_NewPromiseCapability(e.tls, e.ctx, both); isException(promise) {
		return promise, undefined, undefined
	}
	f := unsafe.Slice((*value)(toPointer(both)), 2)
	return promise, f[0], f[1]
}

// runJobs runs all pending jobs (microtasks). It returns false if a job was stopped, with the exception if there is
// one.
func (e *engine) runJobs() (value, bool) {
	ctx := libc.Xmalloc(e.tls, libc.Tsize_t(unsafe.Sizeof(uintptr(0))))
	if ctx == 0 {
		return undefined, false
	}
	defer libc.Xfree(e.tls, ctx)
	for {
		if e.stop.Load() { // short jobs may never reach the interrupt check by themselves
			if e.locateAttempts++; e.timedOut || e.locateAttempts >= maxLocateAttempts {
				e.timedOut = true
				return undefined, false
			}
			e.forceInterrupt()
		}
		e.peakMemory = max(e.peakMemory, e.memoryUsed())
		switch r := quickjs.XJS_ExecutePendingJob(e.tls, e.rt, ctx); {
		case r < 0:
			return e.takeException(), false
		case r == 0:
			return undefined, true
		}
	}
}

// throw throws v and takes ownership of it. It returns the result of a native function that throws.
func (e *engine) throw(v value) value { return quickjs.XJS_Throw(e.tls, e.ctx, v) }

// takeException returns the pending exception and clears it.
func (e *engine) takeException() value { return quickjs.XJS_GetException(e.tls, e.ctx) }

// newTypeError returns a new TypeError. The text must not contain %.
func (e *engine) newTypeError(text string) value {
	if p := e.newCString(text); p != 0 {
		defer libc.Xfree(e.tls, p)
		quickjs.XJS_ThrowTypeError(e.tls, e.ctx, p, 0)
	}
	return e.takeException()
}

func (e *engine) dup(v value) value { return quickjs.XDupValue(e.tls, e.ctx, v) }

func (e *engine) free(values ...value) {
	for _, v := range values {
		quickjs.XFreeValue(e.tls, e.ctx, v)
	}
}

func (e *engine) isTrue(v value) bool { return quickjs.XJS_ToBool(e.tls, e.ctx, v) > 0 }

func (e *engine) isFunction(v value) bool { return quickjs.XJS_IsFunction(e.tls, e.ctx, v) != 0 }

func isException(v value) bool { return v.Ftag == quickjs.EJS_TAG_EXCEPTION }
func isNull(v value) bool      { return v.Ftag == quickjs.EJS_TAG_NULL }
func isBigInt(v value) bool {
	return v.Ftag == quickjs.EJS_TAG_BIG_INT || v.Ftag == quickjs.EJS_TAG_SHORT_BIG_INT
}

func (e *engine) newArray() value { return quickjs.XJS_NewArray(e.tls, e.ctx) }

// setElement sets element i of an array and takes ownership of v.
func (e *engine) setElement(array value, i int, v value) {
	quickjs.XJS_DefinePropertyValueUint32(e.tls, e.ctx, array, uint32(i), v, quickjs.MJS_PROP_C_W_E)
}

func (e *engine) getElement(array value, i int) value {
	return quickjs.XJS_GetPropertyUint32(e.tls, e.ctx, array, uint32(i))
}

// toID returns the number in a value made by newNumber or newInt.
func (e *engine) toID(v value) uint32 {
	if v.Ftag == quickjs.EJS_TAG_FLOAT64 {
		return uint32(*(*float64)(unsafe.Pointer(&v)))
	}
	return uint32(e.toInt(v))
}

// exceptionResult is the result of a native function whose call into the engine has thrown an exception.
func (e *engine) exceptionResult() value { return value{Ftag: quickjs.EJS_TAG_EXCEPTION} }
