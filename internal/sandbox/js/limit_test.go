package js_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

// TestK22_Bombs runs scripts that break sandboxes. Each must end within its limits with an error of the right kind, and
// leave this process unchanged.
func TestK22_Bombs(t *testing.T) {
	p := newPool(t, js.Config{Max: 2})
	short := js.Limits{Time: 500 * time.Millisecond, Memory: 32 << 20}
	long := js.Limits{Time: 20 * time.Second, Memory: 32 << 20}
	bombs := map[string]struct {
		source string
		limits js.Limits
		kinds  []js.Kind
	}{
		"array hog":         {`const a = []; for (;;) a.push(new Array(1000).fill(0))`, long, []js.Kind{js.Memory}},
		"object hog":        {`let o = null; for (;;) o = {o, s: 'x'}`, long, []js.Kind{js.Memory}},
		"doubling string":   {`let s = 'ab'; for (;;) s += s`, long, []js.Kind{js.Memory, js.Thrown}},
		"hundred megabytes": {`const s = 'x'.repeat(100e6); s.length`, long, []js.Kind{js.Memory, js.Thrown}},
		"many big buffers":  {`const b = []; for (;;) b.push(new Uint8Array(1 << 20))`, long, []js.Kind{js.Memory}},
		"map hog":           {`const m = new Map(); for (let i = 0;; i++) m.set(i, {})`, long, []js.Kind{js.Memory}},
		"closure hog":       {`let f = () => 1; for (;;) { const g = f; f = () => g }`, long, []js.Kind{js.Memory}},
		"promise hog":       {`const a = []; for (;;) a.push(new Promise(() => {}))`, long, []js.Kind{js.Memory}},
		"regexp hog": {`const a = []; for (let i = 0;; i++) a.push(new RegExp('a{' + i % 1000 + '}b' + i))`,
			long, []js.Kind{js.Memory}},
		"symbol hog":   {`const a = []; for (;;) a.push(Symbol('x'.repeat(100)))`, long, []js.Kind{js.Memory}},
		"big integers": {`let n = 3n; for (;;) n *= n`, short, []js.Kind{js.Memory, js.Thrown, js.Timeout}},
		"JSON of big things": {
			`const a = Array.from({length: 1e5}, (_, i) => 'item ' + i); let s = a; for (;;) s = [JSON.stringify(s), s]`, long, []js.Kind{js.Memory, js.Thrown}},
		"nested JSON": {`JSON.parse('['.repeat(3e6))`, long, []js.Kind{js.Memory, js.Stack, js.Thrown}},
		"memory in catch": {`const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(0)) } catch {}`,
			short, []js.Kind{js.Timeout, js.Memory}},
		"endless loop": {`for (;;) {}`, short, []js.Kind{js.Timeout}},
		"loop that catches": {`for (;;) try { for (;;) {} } catch {} finally { continue }`, short,
			[]js.Kind{js.Timeout}},
		// the chain grows
		"endless microtasks": {`const f = () => Promise.resolve().then(f); await f()`, short,
			[]js.Kind{js.Timeout, js.Memory}},
		"awaiting nothing": {`for (;;) await null`, short, []js.Kind{js.Timeout}},
		"endless generator": {`function* g() { for (;;) yield 1 } for (const x of g()) {}`, short,
			[]js.Kind{js.Timeout}},
		"endless async gen": {`async function* g() { for (;;) yield 1 } for await (const x of g()) {}`, short,
			[]js.Kind{js.Timeout}},
		"endless iterator": {`Array.from({ [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) })`,
			short, []js.Kind{js.Timeout, js.Memory}},
		"endless getter":   {`const o = { get x() { for (;;) {} } }; JSON.stringify(o)`, short, []js.Kind{js.Timeout}},
		"endless proxy":    {`const p = new Proxy({}, { get() { for (;;) {} } }); p.x`, short, []js.Kind{js.Timeout}},
		"endless toJSON":   {`({ toJSON() { for (;;) {} } })`, short, []js.Kind{js.Timeout}},
		"endless valueOf":  {`+{ valueOf() { for (;;) {} } }`, short, []js.Kind{js.Timeout}},
		"endless then":     {`await { then() { for (;;) {} } }`, short, []js.Kind{js.Timeout}},
		"endless sort":     {`[3, 1, 2].sort(() => { for (;;) {} })`, short, []js.Kind{js.Timeout}},
		"endless callback": {`await testWithCallback(() => { for (;;) {} })`, short, []js.Kind{js.Timeout}},
		"thrown at the end": {`throw { toString() { for (;;) {} }, get message() { for (;;) {} } }`, long,
			[]js.Kind{js.Thrown}},
		"catastrophic regexp": {`/^(a+)+$/.test('a'.repeat(60) + '!')`, short, []js.Kind{js.Timeout}},
		"regexp with lookbehind": {`/(?<=(a+)+)$/.test('a'.repeat(60) + '!'); for (;;) /(x+x+)+y/.test('x'.repeat(60))`,
			short, []js.Kind{js.Timeout}},
		"regexp replace": {`'a'.repeat(5e4).replace(/(a*)*b/g, '')`, short,
			[]js.Kind{js.Timeout, js.Thrown, js.Memory}},
		"native loop": {`new Array(1e9) + ''`, short, []js.Kind{js.Timeout, js.Memory}},
		"native search": {`const a = new Array(1e9); a.indexOf(1); a.includes(2); a.lastIndexOf(3)`, short,
			[]js.Kind{js.Timeout}},
		"native sort": {`const a = []; a.length = 4e9; a.sort()`, short,
			[]js.Kind{js.Timeout, js.Memory, js.Thrown}},
		"deep recursion": {`function f() { return f() + 1 } f()`, long, []js.Kind{js.Stack}},
		"deep getters":   {`const o = { get x() { return this.x } }; o.x`, long, []js.Kind{js.Stack}},
		"deep proxies": {`let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x`, long,
			[]js.Kind{js.Stack, js.Memory}},
		"deep toString": {`const a = []; a[0] = { toString: () => String(a) }; String(a)`, long, []js.Kind{js.Stack}},
		"deep source": {`eval('('.repeat(1e5) + '1' + ')'.repeat(1e5))`, long,
			[]js.Kind{js.Stack, js.Memory, js.Thrown}},
		"deep regexp": {`new RegExp('('.repeat(1e5) + ')'.repeat(1e5))`, long,
			[]js.Kind{js.Stack, js.Memory, js.Thrown}},
		"deep object to host": {`let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; await echo(o)`, long,
			[]js.Kind{js.Stack, js.Memory, js.Thrown}},
		"output":        {`for (;;) console.log('x'.repeat(1000))`, long, []js.Kind{js.Output}},
		"one huge line": {`console.log('x'.repeat(10e6))`, long, []js.Kind{js.Output, js.Memory}},
		"huge result":   {`'x'.repeat(2e6)`, long, []js.Kind{js.Output}},
		"calls not awaited": {`const s = 'x'.repeat(1e6); for (;;) never(s).catch(() => {})`, short,
			[]js.Kind{js.Timeout, js.Memory}},
	}
	names := make([]string, 0, len(bombs))
	for name := range bombs {
		names = append(names, name)
	}
	slices.Sort(names)
	before := heap()
	for _, name := range names {
		b := bombs[name]
		t.Run(name, func(t *testing.T) {
			begin := reeve.Monotonic()
			got, err := run(t, p, b.source, b.limits)
			if !slices.Contains(b.kinds, js.KindOf(err)) {
				t.Errorf("got %.100s, %v (%s); want one of %v", got, err, js.KindOf(err), b.kinds)
			}
			if took := reeve.Since(begin); took > b.limits.Time+10*time.Second { // generous: the machine may be busy
				t.Errorf("took %s", took)
			}
			want(t, p, `1 + 1`, `2`)
		})
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("this process holds %d MB more than before", grown>>20)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestK22_CodeAtTheEdgeOfMemory compiles and runs code with less and less memory left, which has crashed this engine.
// Only the worker may die.
func TestK22_CodeAtTheEdgeOfMemory(t *testing.T) {
	p := newPool(t, js.Config{Max: 2})
	list, err := json.Marshal([]string{
		"(() => { class K { #v = 1; static s = 2; static { K.t = K.s } get v() { return this.#v } async *it() { for " +
			"await (const x of []) yield x } }" +
			" let { q: { r = 3 } = {}, ...rest } = { z: 1 }; return `${new K().v}${r}${rest.z}` })()",
		`for (const x of [1, 2]) { switch (x) { case 1: let y = 1; break; default: try { (() => x)() } finally {} } }`,
		`JSON.stringify(JSON.parse('{"k":[1,{"m":"nnnnnnnnnnnn"}]}'))`,
		`[...'p1q2'.matchAll(/(?<w>[a-z])(?<n>\d)/g)].map(m => m.groups.w).join(); (7n ** 90n).toString()`,
		`async function f() { await null; throw new Error('e') } f().catch(() => {}); Promise.allSettled([f(), f()]); new Proxy({}, { get: (t, k) => k }).z`,
	})
	if err != nil {
		t.Fatal(err)
	}
	snippets := "const snippets = " + string(list) + "; const evaluate = (0, eval); let good = 0, bad = 0;\n"
	for name, source := range map[string]string{
		"by kilobytes": `const hog = []; try { for (;;) hog.push(new Uint8Array(65536)) } catch {}; try { for (;;) hog.push(new Uint8Array(1024)) } catch {}
			for (let i = 0; i < 150; i++) { hog.length--; for (const s of snippets) try { evaluate(s); good++ } catch { bad++ } }; good + bad`,
		"by objects": `const slots = new Array(4000).fill(null), hog = []; let k = 0
			try { for (;;) hog.push(new Uint8Array(65536)) } catch {}; hog.length--; try { while (k < 4000) slots[k++] = {k} } catch {}
			for (let i = 0; i < 1500 && k > 0; i++) { slots[--k] = null; try { evaluate(snippets[i % snippets.length]); good++ } catch { bad++ } }; good + bad`,
		"across awaits": `const hog = []; try { for (;;) hog.push(new Uint8Array(262144)) } catch {}; hog.length -= 2; const small = []
			for (let i = 0; i < 60; i++) { for (const s of snippets) try { evaluate(s); good++ } catch { bad++ }
				try { small.push(new Uint8Array(4096 + i % 7 * 48)) } catch {}; await null }; good + bad`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, memory := range []int64{4 << 20, 16 << 20, 64 << 20} {
				got, err := run(t, p, snippets+source, js.Limits{Memory: memory, Time: 20 * time.Second})
				if kind := js.KindOf(err); err != nil && kind != js.Memory && kind != js.Crashed &&
					kind != js.Unhandled && kind != js.Thrown {
					t.Errorf("%d MB: got %s, %v (%s)", memory>>20, got, err, kind)
				}
				want(t, p, `1 + 1`, `2`)
			}
		})
	}
}

func TestK22_SmallLimits(t *testing.T) {
	p := newPool(t, js.Config{})
	fails(t, p, `new Uint8Array(3 << 20).length`, js.Limits{Memory: 2 << 20}, js.Memory)
	fails(t, p, `const f = n => n && 1 + f(n - 1); f(500)`, js.Limits{Stack: 100}, js.Stack)
	fails(t, p, `console.log('12345'); console.log('12345')`, js.Limits{Output: 10}, js.Output)
	fails(t, p, `'123456789'`, js.Limits{Output: 10}, js.Output)
	want(t, p, `const f = n => n && 1 + f(n - 1); f(1000)`, `1000`)
	// a script may catch the error of its own recursion
	want(t, p, `try { (function f() { f() })() } catch (e) { e.name }`, `"InternalError"`)
}

// TestK22_TimeoutSeenByHostCallFirst checks that a run is reported as timed out even if the script fails with the error
// of a host call that saw the timeout first.
func TestK22_TimeoutSeenByHostCallFirst(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	h.functions["lasts"] = func(ctx context.Context, _ []js.Arg) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	for _, source := range []string{"\n  await lasts()", "\n  lasts(); await never()",
		"\n  await lasts().catch(() => {}); throw 1"} {
		for range 10 {
			_, err := runWith(t, p, js.Script{Source: source}, js.Limits{Time: 30 * time.Millisecond}, h)
			var e *js.Error
			if !errors.As(err, &e) || e.Kind != js.Timeout || e.Line != 2 && e.Line != 0 {
				t.Fatalf("%s: %v (%s)", source, err, js.KindOf(err))
			}
		}
	}
}

// TestCancel cancels runs in different states.
func TestCancel(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, source := range map[string]string{
		"computing": `await started(); for (;;) {}`, "native": `await started(); new Array(1e9) + ''`,
		"waiting":      `await started(); await never()`,
		"calling back": `await started(); await testWithCallback(() => new Promise(() => {}))`,
		"told first":   `await stopped()`, // the call's error may be with the script before its worker is killed
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			h := standard()
			h.functions["started"] = func(context.Context, []js.Arg) (any, error) {
				cancel(errors.New("enough"))
				return nil, nil
			}
			h.functions["stopped"] = func(ctx context.Context, _ []js.Arg) (any, error) {
				cancel(errors.New("enough"))
				return nil, ctx.Err()
			}
			_, err := p.Run(ctx, js.Script{Source: source, Functions: h.names()}, js.Limits{Time: time.Hour}, h)
			if js.KindOf(err) != js.Canceled {
				t.Errorf("got %v (%s)", err, js.KindOf(err))
			}
		})
	}
	full := newPool(t, js.Config{Max: 1})
	busy, free := make(chan struct{}), make(chan struct{})
	h := &host{functions: map[string]function{"hold": func(context.Context, []js.Arg) (any, error) {
		close(busy)
		<-free
		return nil, nil
	}}}
	done := make(chan error)
	go func() { _, err := runWith(t, full, js.Script{Source: `await hold()`}, js.Limits{}, h); done <- err }()
	<-busy
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := full.Run(ctx, js.Script{Source: "1"}, js.Limits{}, h); js.KindOf(err) != js.Timeout {
		t.Errorf("waiting for a place: %v", err)
	}
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRunsLeaveNothingBehind counts files, processes and goroutines after many runs of all kinds. With REEVE_LONG=1 it
// makes thousands of runs.
func TestRunsLeaveNothingBehind(t *testing.T) {
	runs := 300
	if os.Getenv("REEVE_LONG") != "" {
		runs = 5000
	}
	p := newPool(t, js.Config{Max: 4})
	sources := []string{`1`, `throw new Error('x')`, `await echo({a: 1})`, `await abort()`,
		`await testWithCallback(() => 1)`, `await testWithCallback(() => { throw 1 })`,
		`let x = ;`, `refuse(); 1`, `const a = []; for (;;) a.push({})`, `function f() { f() } f()`,
		`console.log('x'); await Promise.all([echo(1), echo(2)])`}
	round := func(n int) {
		jobs := make(chan string)
		done := make(chan struct{})
		for range 4 {
			go func() {
				for s := range jobs {
					_, _ = run(t, p, s, js.Limits{Memory: 2 << 20})
				}
				done <- struct{}{}
			}()
		}
		for i := range n {
			jobs <- sources[i%len(sources)]
		}
		close(jobs)
		for range 4 {
			<-done
		}
	}
	round(20)
	settle(t, p)
	goroutines, files, memory := runtime.NumGoroutine(), openFiles(t), heap()
	round(runs)
	settle(t, p)
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
	if grown := heap() - memory; grown > 4<<20 {
		t.Errorf("%d KB more memory", grown>>10)
	}
	if n := children(t); n > 2 {
		t.Errorf("%d worker processes are left, 2 are kept warm", n)
	}
}

// settle waits until the pool has refilled.
func settle(t *testing.T, p *js.Pool) {
	t.Helper()
	if err := p.Warm(); err != nil {
		t.Fatal(err)
	}
	before := -1
	for deadline := reeve.Monotonic().Add(10 * time.Second); reeve.Since(deadline) < 0; time.Sleep(
		20 * time.Millisecond) {
		if n := runtime.NumGoroutine() + children(t); n == before {
			return
		} else {
			before = n
		}
	}
}
