package js_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js"
)

// globals are all globals of a script except its host functions. Review a global that a new engine version adds before
// adding it to this list.
const globals = `AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
	FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map
	Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol SyntaxError TypeError
	URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet console decodeURI decodeURIComponent encodeURI
	encodeURIComponent escape eval globalThis input isFinite isNaN parseFloat parseInt undefined unescape`

func TestK23_NoAmbientGlobals(t *testing.T) {
	p := newPool(t, js.Config{})
	h := &host{functions: map[string]function{}}
	got, err := runWith(t, p, js.Script{Source: `Object.getOwnPropertyNames(globalThis)`, Input: []byte(`1`)},
		js.Limits{}, h)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := json.Unmarshal([]byte(got), &names); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if want := strings.Fields(globals); !slices.Equal(names, want) {
		t.Errorf("a script finds\n%v\nwant\n%v", names, want)
	}
	for source, value := range map[string]string{
		`try { await import('std') } catch (e) { e.name }`:                                                                 `"ReferenceError"`,
		`try { await import('/etc/passwd') } catch (e) { e.name }`:                                                         `"ReferenceError"`,
		`typeof require + typeof process + typeof fetch + typeof setTimeout + typeof performance + typeof std + typeof os`: `"undefinedundefinedundefinedundefinedundefinedundefinedundefined"`,
		`new Function('return typeof process')()`:                                                                          `"undefined"`,
		`(0, eval)('this === globalThis')`:                                                                                 `true`,
		`(() => {}).constructor('return typeof require')()`:                                                                `"undefined"`,
		`try { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1) } catch (e) { e.name }`:                     `"TypeError"`,
		`console.log.constructor === Function`:                                                                             `true`,
		`(await (async () => { try { null.x } catch (e) { return e.stack } })()).includes('/')`:                            `false`,
	} {
		want(t, p, source, value)
	}
}

// TestK23_ClockAndRandomAreFixed gives two runs the same time and seed. Both see the same values, and neither sees the
// host's clock.
func TestK23_ClockAndRandomAreFixed(t *testing.T) {
	p := newPool(t, js.Config{})
	now := time.Date(2031, 2, 3, 4, 5, 6, 789e6, time.UTC)
	look := `const early = Date.now(); for (let i = 0; i < 1e5; i++);
		[early === Date.now(), new Date().toISOString(), Date().slice(0, 24), new (new Date().constructor)().getTime(), new Date(0).toISOString(),
		 new Date(2020, 1, 1).getTimezoneOffset(), Date.UTC(2020, 0), Date.parse('2020-01-01'), Date.length, Date.name, new Date() instanceof Date,
		 Reflect.construct(Date, []).getTime(), new (class D extends Date {})().getTime(), Math.random(), Math.random(), Math.random()]`
	var runs []string
	for _, seed := range []int64{7, 7, 8} {
		got, err := runWith(t, p, js.Script{Source: look, Now: now, Seed: seed}, js.Limits{}, standard())
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, got)
	}
	contains(t, runs[0], `[true,"2031-02-03T04:05:06.789Z","Mon Feb 03 2031 04:05:06",1927857906789,"1970-01-01T00:00:00.000Z",0,1577836800000,1577836800000,7,"Date",true,1927857906789,1927857906789,0.`)
	if runs[0] != runs[1] {
		t.Errorf("the same run differs:\n%s\n%s", runs[0], runs[1])
	}
	if runs[0] == runs[2] {
		t.Errorf("another seed gives the same chance: %s", runs[2])
	}
	want(t, p, `const n = 1e4; let s = 0, low = 1, high = 0; for (let i = 0; i < n; i++) { const x = Math.random(); s += x; low = Math.min(low, x); high = Math.max(high, x) }
		[s / n > 0.48, s / n < 0.52, low >= 0, low < 0.01, high < 1, high > 0.99]`, `[true,true,true,true,true,true]`)
}

// TestK23_PrototypePollutionStaysInside changes all prototypes that a script can reach. Neither the host nor the next
// script is affected.
func TestK23_PrototypePollutionStaysInside(t *testing.T) {
	p := newPool(t, js.Config{})
	h := &host{functions: map[string]function{"Box.echo": standard().functions["echo"], "Box.Inner.refuse": standard().
		functions["refuse"]}}
	pollute := `Object.prototype.polluted = 'yes'; Array.prototype.map = () => 'gone'; Promise.prototype.then = function () { return 'gone' };
		JSON.stringify = () => '"forged"'; JSON.parse = () => 'forged'; Error = null; Function.prototype.call = null; Function.prototype.apply = null; Reflect.apply = null;
		String.prototype.split = null; Object.defineProperty = null; globalThis.Promise = null; console.log('still', 'here');`
	for source, value := range map[string]string{
		pollute + `await Box.echo({a: [1]})`:                                                                           `{"a":[1]}`,
		pollute + `try { await Box.Inner.refuse() } catch (e) { e.code }`:                                              `"NOT_FOUND"`,
		`try { Box.echo = 1 } catch (e) { e.name }`:                                                                    `"TypeError"`,
		`try { Box.more = 1 } catch (e) { e.name }`:                                                                    `"TypeError"`,
		`try { delete Box.echo } catch (e) { e.name }`:                                                                 `"TypeError"`,
		`Object.keys(Box).sort().join() + typeof Box.Inner.refuse + Box.echo.name`:                                     `"Inner,echofunctionecho"`,
		`const Box = 5; Box`:                                                                                           `5`,
		`Object.setPrototypeOf(Object.prototype.__proto__ ?? {}, null); await Box.echo('x')`:                           `"x"`,
		`await Box.echo(JSON.parse('{"__proto__": {"admin": true}}'))`:                                                 `{"__proto__":{"admin":true}}`,
		`const o = await Box.echo(JSON.parse('{"__proto__": {"admin": true}}')); String(({}).admin) + String(o.admin)`: `"undefinedundefined"`,
		`input.list.push(3); input`:                                                                                    `{"list":[1,2,3]}`,
	} {
		got, err := runWith(t, p, js.Script{Source: source, Input: []byte(`{"list":[1,2]}`)}, js.Limits{}, h)
		if err != nil || got != value {
			t.Errorf("%s\n  is %s, %v; want %s", source, got, err, value)
		}
	}
	want(t, p, `[typeof ({}).polluted, [1].map(x => x + 1), JSON.stringify({}), typeof input]`,
		`["undefined",[2],"{}","undefined"]`)
}

// TestK23_WorkersGetNoEnvironment starts workers from a process with secrets in its environment.
func TestK23_WorkersGetNoEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_TEST", "x")
	seen := make(chan []string, 8)
	p := newPool(t, js.Config{Warm: -1, Confine: confine(seen)})
	want(t, p, `1`, `1`)
	for _, v := range <-seen {
		if strings.HasPrefix(v, "SECRET") || strings.HasPrefix(v, "HOME") || strings.HasPrefix(v, "PATH") {
			t.Errorf("a worker is given %s", v)
		}
	}
	if os.Getenv("SECRET_OF_THE_TEST") == "" {
		t.Error("the test tests nothing")
	}
}

// confine records the commands by which workers are started.
func confine(seen chan<- []string) child.Confine {
	return func(c *exec.Cmd, _ string) (func(), error) { seen <- c.Env; return func() {}, nil }
}

func TestConsole(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	_, err := runWith(t, p, js.Script{Source: `console.log('a', 1, {b: [true, null, undefined]}); console.error(new TypeError('bad')); console.debug(Symbol('s'), 10n, () => 1)
		console.info(new Map([['k', {v: 1}]]), new Set([1])); console.warn(new Date(0), [['deep', [['er', [['and', [[1]]]]]]]])
		const c = {}; c.c = c; console.log(c); console.log({get g() { throw 1 }}, new Proxy({}, {ownKeys() { throw 1 }})); console.log('\ud800x')`}, js.Limits{}, h)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`log: a 1 {"b": [true, null, undefined]}`, `error: TypeError: bad`,
		`debug: Symbol(s) 10n [function anonymous]`,
		`info: Map {"k" => {"v": 1}} Set {1}`, `warn: 1970-01-01T00:00:00.000Z [["deep", [["er", […]]]]]`,
		`log: {"c": {"c": {"c": {"c": {…}}}}}`,
		`log: {"g": [getter]} [object that throws]`, "log: \uFFFDx"}
	if !slices.Equal(h.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(h.lines, "\n"), strings.Join(want, "\n"))
	}
}
