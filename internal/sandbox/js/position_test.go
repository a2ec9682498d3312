package js_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

func TestK24_ErrorsHaveScriptPositions(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, c := range map[string]struct {
		language     js.Language
		source       string
		kind         js.Kind
		line, column int
		stack        []js.Frame
	}{
		"thrown": {js.JavaScript, "const a = 1\n\nthrow new Error('x')", js.Thrown, 3, 16,
			[]js.Frame{{Line: 3, Column: 16}}},
		"in a function": {js.JavaScript, "function f(x) {\n  return x.y.z\n}\nf({})", js.Thrown, 2, 13,
			[]js.Frame{{Function: "f", Line: 2, Column: 13}, {Line: 4, Column: 2}}},
		"with return": {js.JavaScript, "if (!input) throw new Error('x')\nreturn 1", js.Thrown, 1, 28, nil},
		"after an await": {js.JavaScript,
			"await echo(1)\nconst f = async () => {\n  await echo(2)\n  null.x\n}\nawait f()", js.Thrown, 4, 7, nil},
		"host error":    {js.JavaScript, "await echo(1)\n\n  await refuse({\n})", js.Thrown, 3, 15, nil},
		"in a callback": {js.JavaScript, "await testWithCallback(\n  () => { undefined.x })", js.Thrown, 2, 20, nil},
		"built-in":      {js.JavaScript, "\n[1].map(() => {\n  JSON.parse('{')\n})", js.Thrown, 3, 13, nil},
		"unhandled":     {js.JavaScript, "\nPromise.reject(new Error('x'))\n5", js.Unhandled, 2, 25, nil},
		"syntax":        {js.JavaScript, "let a = 1\nlet b = = 2", js.Syntax, 2, 9, []js.Frame{{Line: 2, Column: 9}}},
		"unclosed":      {js.JavaScript, "function f() {\n\n", js.Syntax, 3, 1, nil},
		"import":        {js.JavaScript, "const a = 1\nimport b from 'b'", js.Syntax, 2, 8, nil},
		"deep":          {js.JavaScript, "const f = () => f()\nf()", js.Stack, 1, 18, nil},
		"ts thrown": {js.TypeScript,
			"interface A {\n  a: number\n}\nconst a: A = { a: 1 }\nthrow new Error(`${a.a}`)", js.Thrown, 5, 11, nil},
		"ts in a function": {js.TypeScript,
			"type T = { y?: { z: number } }\n\nfunction f<A extends T>(x: A): number {\n  return x.y!.z\n}\nf({})",
			js.Thrown, 4, 12, []js.Frame{{Function: "f", Line: 4, Column: 12}, {Line: 6, Column: 1}}},
		"ts with return": {js.TypeScript,
			"const a: number = await echo(1)\nif (a) throw new Error('x')\nreturn a as number", js.Thrown, 2, 18, nil},
		"ts first line": {js.TypeScript, "const a: number = 1; null!.x\nreturn await echo(a)", js.Thrown, 1, 22, nil},
		"ts syntax":     {js.TypeScript, "const a: number = 1\nconst b: = 2", js.Syntax, 2, 10, nil},
		"ts host error": {js.TypeScript, "enum E { A, B }\n\nawait refuse(E.B as number)", js.Thrown, 3, 7, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runWith(t, p, js.Script{Name: "s", Language: c.language, Source: c.source, Input: []byte("0")},
				js.Limits{}, standard())
			var e *js.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Line != c.line || e.Column != c.column || e.Script != "s" {
				t.Fatalf("got %v (%s); want %s at %d:%d", err, js.KindOf(err), c.kind, c.line, c.column)
			}
			if c.stack != nil && !slices.Equal(e.Stack, c.stack) {
				t.Errorf("the stack is %v, want %v", e.Stack, c.stack)
			}
			if c.kind == js.Syntax && reeve.CodeOf(err) != reeve.Validation {
				t.Errorf("code %s", reeve.CodeOf(err))
			}
		})
	}
}

func TestValueOfAScript(t *testing.T) {
	p := newPool(t, js.Config{})
	for source, value := range map[string]string{
		`1 + 1`:                            `2`,
		`const a = 5; a`:                   `5`,
		`const a = 5`:                      ``,
		``:                                 ``,
		`({a: [1, 'x', null]})`:            `{"a":[1,"x",null]}`,
		`return 7`:                         `7`,
		`if (true) return await echo('x')`: `"x"`,
		`async function main() { return 3 }; main()`: `3`,
		`await Promise.resolve(4)`:                   `4`,
		`'use strict'; undefined`:                    ``,
		`if (true) { 'branch' }`:                     `"branch"`,
		"`\u2028é😀`":                                 "\"\u2028é😀\"",
		`() => 1`:                                    ``,
	} {
		want(t, p, source, value)
	}
	for source, value := range map[string]string{
		`const a: number = 2; a as unknown as string`:                                                   `2`,
		`enum C { Red, Blue }; C.Blue`:                                                                  `1`,
		`function f<T>(x: T): T { return x } return f<number>(3)`:                                       `3`,
		`class P { constructor(private readonly x: number) {} get() { return this.x } } new P(4).get()`: `4`,
		`const o = { a: 1 } satisfies Record<string, number>; o!.a`:                                     `1`,
		`await echo<number>(5 as const)`:                                                                `5`,
	} {
		got, err := runWith(t, p, js.Script{Source: source, Language: js.TypeScript}, js.Limits{}, standard())
		if err != nil || got != value {
			t.Errorf("%s\n  is %s, %v; want %s", source, got, err, value)
		}
	}
	fails(t, p, `10n`, js.Limits{}, js.Thrown) // JSON has no such number
	e := fails(t, p, `await new Promise(() => {})`, js.Limits{}, js.Stalled)
	contains(t, e.Message, "waits")
	e = fails(t, p, `throw {why: 'because'}`, js.Limits{}, js.Thrown)
	contains(t, e.Message, "because")
	// A promise that gets a handler late counts as handled.
	want(t, p, `const p = refuse(); await echo(1); await echo(2); try { await p } catch (e) { e.code }`, `"NOT_FOUND"`)
	fails(t, p, `refuse(); 1`, js.Limits{}, js.Unhandled)
}

// TestK24_EndlessMicrotasksHaveALine stops scripts that consist of endless short jobs. The error must still have a
// line, although each job ends before the interrupt handler runs.
func TestK24_EndlessMicrotasksHaveALine(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, c := range map[string]struct {
		source string
		line   int
	}{
		"await in a loop":   {"let n = 0\nfor (;;)\n  await null", 3},
		"with work":         {"let n = 0\nconst f = async () => {\n  n++\n  await null\n}\nfor (;;) await f()", 0},
		"a chain of then":   {"// \nconst f = () => {\n  Promise.resolve().then(f)\n}\nf()\nawait new Promise(() => {})", 3},
		"an async iterator": {"async function* all() { for (;;) yield 1 }\nfor await (const x of all())\n  x + 1", 0},
	} {
		e := fails(t, p, c.source, js.Limits{Time: 300 * time.Millisecond}, js.Timeout)
		if e.Line == 0 || c.line != 0 && e.Line != c.line {
			t.Errorf("%s: stopped at line %d, column %d; want line %d", name, e.Line, e.Column, c.line)
		}
	}
}
