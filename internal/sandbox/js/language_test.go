package js_test

import (
	"strings"
	"testing"

	"reeve/internal/sandbox/js"
)

// language lists language features that scripts may use: ES2022, and later features of the engine. Each entry is an
// expression, or statements with a final expression, and must evaluate to true.
var language = map[string]string{
	"block scope":          `let hit = false; { try { late; let late = 1 } catch (e) { hit = e instanceof ReferenceError } } hit`,
	"loop closures":        `const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); fs.map(f => f()).join() === '0,1,2'`,
	"parameters":           `((a, b = a * 2, ...rest) => a + b + rest.length)(1, undefined, 8, 9) === 5`,
	"destructuring":        `const { p: { q = 4 } = {}, ...others } = { r: 1, s: 2 }; const [x, , y = 3] = [1, 2]; q + others.s + x + y === 10`,
	"spread":               `JSON.stringify({ ...{ a: 1 }, b: [...'hi'] }) === '{"a":1,"b":["h","i"]}'`,
	"templates":            "const tag = (s, v) => s.raw[0] + v; tag`\\n${2}` === '\\\\n2'",
	"private members":      `class A { #n = 1; static #made = 0; #up() { return ++this.#n } static is(o) { return #n in o } up() { A.#made++; return this.#up() } } new A().up() === 2 && A.is(new A()) && !A.is({})`,
	"static blocks":        `class A { static list = []; static { A.list.push(1); this.done = true } } A.done && A.list.length === 1`,
	"fields":               `class A { a = 1; ['b' + 1] = this.a + 1; static c = 3; f = () => this.b1 } new A().f() + A.c === 5`,
	"inheritance":          `class A { who() { return 'a' } } class B extends A { who() { return super.who() + 'b' } constructor() { super(); this.made = new.target.name } } new B().who() + new B().made === 'abB'`,
	"own errors":           `class Mine extends Error { name = 'Mine' } try { throw new Mine('x', { cause: 7 }) } catch (e) { e instanceof Mine && e instanceof Error && e.cause === 7 && String(e) === 'Mine: x' }`,
	"generators":           `function* g() { const got = yield 1; yield* [got, 3] } const i = g(); i.next(); i.next(2).value + i.next().value === 5 && i.next().done`,
	"async functions":      `const f = async (x) => { await null; return x }; (await f(1)) + (await (async () => 2)()) === 3`,
	"async generators":     `async function* g() { yield 1; await null; yield Promise.resolve(2) } let sum = 0; for await (const x of g()) sum += x; sum === 3`,
	"for await over array": `let sum = 0; for await (const x of [Promise.resolve(1), 2]) sum += x; sum === 3`,
	"async iterators":      `const o = { [Symbol.asyncIterator]() { let n = 0; return { next: async () => ({ done: n === 3, value: n++ }) } } }; let sum = 0; for await (const x of o) sum += x; sum === 3`,
	"top-level await":      `const a = await Promise.resolve(1); if (a) { await null } a === 1`,
	"await a thenable":     `(await { then(done) { done(9) } }) === 9`,
	"order of microtasks":  `const l = []; const p = Promise.resolve().then(() => l.push(2)); l.push(1); await p; l.push(3); l.join() === '1,2,3'`,
	"promise helpers":      `const s = await Promise.allSettled([Promise.reject(1), 2]); const any = await Promise.any([Promise.reject(0), 5]); let agg = false; try { await Promise.any([Promise.reject(1)]) } catch (e) { agg = e instanceof AggregateError } s[0].status === 'rejected' && any === 5 && agg && (await Promise.race([1, new Promise(() => {})])) === 1`,
	"finally":              `let n = 0; await Promise.resolve(1).finally(() => n++); try { await Promise.reject(1).finally(() => n++) } catch { n++ } n === 3`,
	"optional chaining":    `const o = { a: { f: () => 3 } }; o?.a?.f?.() === 3 && o.z?.y.w === undefined && o.a['q']?.[1] === undefined && delete o?.a`,
	"nullish and logical":  `let a = null, b = 0, c = 1; a ??= 5; b ||= 2; c &&= 9; a + b + c === 16 && (0 ?? 1) === 0`,
	"numbers":              `2 ** 10 === 1024 && 1_000 === 1000 && 0b11 + 0o17 === 18 && (1234.5678).toFixed(2) === '1234.57' && Number.parseFloat('1e3') === 1000 && (255).toString(36) === '73'`,
	"big integers":         `(2n ** 64n).toString() === '18446744073709551616' && BigInt.asUintN(8, 257n) === 1n && 7n / 2n === 3n && typeof 1n === 'bigint'`,
	"symbols":              `const o = { [Symbol.toPrimitive]: () => 7, get [Symbol.toStringTag]() { return 'Q' } }; +o === 7 && Object.prototype.toString.call(o) === '[object Q]' && Symbol('d').description === 'd'`,
	"named groups":         `const m = /(?<year>\d{4})-(?<month>\d\d)/.exec('on 2026-11'); m.groups.year === '2026' && '2026-11'.replace(/(?<y>\d+)-(?<m>\d+)/, '$<m>/$<y>') === '11/2026'`,
	"lookbehind":           `'$42 €7'.match(/(?<=\$)\d+/)[0] === '42' && /(?<!\$)\b7/.test('€7')`,
	"regexp flags":         `const r = /a.b/sy; r.lastIndex = 1; r.test('xa\nb') && /^\p{Lu}\p{Script=Greek}$/u.test('Aα') && /a(?<z>b)/d.exec('xab').indices.groups.z[0] === 2`,
	"matchAll":             `[...'a1b2'.matchAll(/[a-z](\d)/g)].map(m => m[1]).join() === '1,2' && /(?<q>['"]).*?\k<q>/.test('"hi"')`,
	"strings":              `'a-b-a'.replaceAll('a', 'x') === 'x-b-x' && 'a'.padStart(3, '-') === '--a' && 'abc'.at(-1) === 'c' && ' x '.trimEnd() === ' x' && 'e\u0301'.normalize('NFC') === '\u00e9'`,
	"code points":          `[...'a😀b'].length === 3 && '😀'.codePointAt(0) === 0x1F600 && String.fromCodePoint(0x1F600) === '😀' && '\u{1F600}'.length === 2`,
	"arrays":               `[1, [2, [3]]].flat(Infinity).length === 3 && [1, 2, 3].at(-1) === 3 && [1, 2].flatMap(x => [x, x]).length === 4 && [3, 1].includes(1) && Array.from({ length: 2 }, (_, i) => i).join() === '0,1'`,
	"later array methods":  `[1, 2, 3].findLast(x => x < 3) === 2 && [3, 1, 2].toSorted().join() === '1,2,3' && [1].with(0, 9)[0] === 9`,
	"stable sort":          `const a = Array.from({ length: 500 }, (_, i) => ({ k: i % 3, i })).sort((x, y) => x.k - y.k); a.every((x, i) => !i || a[i - 1].k !== x.k || a[i - 1].i < x.i)`,
	"objects":              `Object.fromEntries(Object.entries({ a: 1 }).map(([k, v]) => [k, v + 1])).a === 2 && Object.hasOwn({ q: 1 }, 'q') && Object.keys({ 1: 'a', b: 'c', 0: 'z' }).join() === '0,1,b' && Object.isFrozen(Object.freeze({}))`,
	"grouping":             `Object.groupBy([1, 2, 3], x => x % 2 ? 'odd' : 'even').odd.length === 2`,
	"maps and sets":        `const m = new Map([[NaN, 1]]), w = new WeakMap(), k = {}; w.set(k, 2); m.get(NaN) === 1 && w.get(k) === 2 && new Set([1, 1]).size === 1 && new WeakRef(k).deref() === k && new Set([1]).union(new Set([2])).size === 2`,
	"proxies":              `const p = new Proxy({}, { get: (t, k) => k === 'z' ? 1 : Reflect.get(t, k), has: () => true }); p.z === 1 && 'q' in p && p.y === undefined`,
	"accessors":            `const o = { _n: 1, get n() { return this._n }, set n(v) { this._n = v * 2 } }; o.n = 4; Object.defineProperty(o, 'h', { value: 1, enumerable: false }); o.n === 8 && !Object.keys(o).includes('h')`,
	"typed arrays":         `const f = new Float64Array([1.5, 2]); new DataView(f.buffer).getFloat64(0, true) === 1.5 && new Uint8Array(4).fill(7).subarray(1, 3).length === 2 && new BigInt64Array([-1n])[0] === -1n && f.at(-1) === 2`,
	"JSON":                 `JSON.stringify('\ud800') === '"\\ud800"' && JSON.parse('{"__proto__":1}').__proto__ === 1 && JSON.stringify({ a: [1, { b: 2 }], u: undefined }, null, 1).includes('\n') && JSON.parse('[1]', (k, v) => typeof v === 'number' ? v + 1 : v)[0] === 2`,
	"dates":                `new Date('2026-11-15T10:00:00+02:00').toISOString() === '2026-11-15T08:00:00.000Z' && new Date(2026, 0, 31).getMonth() === 0 && Number.isNaN(+new Date('zz')) && Date.parse('Sun, 15 Nov 2026 08:00:00 GMT') === 1794729600000`,
	"math":                 `Math.hypot(3, 4) === 5 && Math.clz32(1) === 31 && Math.trunc(-1.5) === -1 && Math.cbrt(27) === 3 && Math.sign(-3) === -1`,
	"URIs":                 `encodeURIComponent('ž &') === '%C5%BE%20%26' && decodeURIComponent('%C5%BE') === 'ž'`,
	"labels and switch":    `let n = 0; outer: for (let i = 0; i < 3; i++) { for (;;) { n++; if (i === 1) break outer; continue outer } } let r; switch (n) { case 2: r = true; break; default: r = false } r`,
	"optional catch":       `let ok = false; try { throw 1 } catch { ok = true } ok`,
	"strict mode":          `let e1; try { undeclared = 1 } catch (e) { e1 = e.name } e1 === 'ReferenceError' && (function () { return this === undefined })()`,
	"stacks":               `function inner() { return new Error('x').stack } inner().includes('inner') && inner().includes('script.js:')`,
	"recursion":            `const f = n => n ? f(n - 1) : true; f(1500)`,
	"evaluated code":       `new Function('a', 'b', 'return a + b')(1, 2) === 3 && (0, eval)('1 + 1') === 2`,
	"sorting by locale":    `['b', 'a', 'c'].sort((x, y) => x.localeCompare(y)).join('') === 'abc'`,
}

func TestLanguage(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, source := range language {
		t.Run(name, func(t *testing.T) {
			want(t, p, source, `true`)
			got, err := runWith(t, p, js.Script{Source: source, Language: js.TypeScript, Name: "script.js"},
				js.Limits{}, standard())
			if err != nil || got != `true` {
				t.Errorf("as TypeScript: %s, %v", got, err)
			}
		})
	}
}

// TestTypeScriptThatBreaksParsers runs sources that are hard to parse. They are parsed in the worker, so only the
// worker can crash.
func TestTypeScriptThatBreaksParsers(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, source := range map[string]string{
		"parentheses": strings.Repeat("(", 1e6), "not": strings.Repeat("!", 1e6) + "1",
		"garbage": strings.Repeat("\x00\x01<<<", 1e5),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := runWith(t, p, js.Script{Source: source, Language: js.TypeScript}, js.Limits{}, standard())
			if kind := js.KindOf(err); kind != js.Syntax && kind != js.Crashed && kind != js.Memory &&
				kind != js.Stack {
				t.Errorf("got %.100s, %.200v (%s)", got, err, kind)
			}
			want(t, p, `1`, `1`)
		})
	}
}
