package js_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

func TestK01_HostAwaitsGuestCallbacks(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, c := range map[string]struct{ source, value string }{
		"async":           {`await testWithCallback(async () => 42)`, `84`},
		"sync":            {`await testWithCallback(() => 21)`, `42`},
		"already settled": {`await testWithCallback(() => Promise.resolve(4))`, `8`},
		"thenable":        {`await testWithCallback(() => ({ then(done) { done(6) } }))`, `12`},
		"later":           {`await testWithCallback(async () => { await echo(1); await echo(2); return 5 })`, `10`},
		"nested":          {`await testWithCallback(async () => await testWithCallback(async () => await testWithCallback(() => 1)))`, `8`},
		"method":          {`class A { static twice() { return 3 } } await testWithCallback(A.twice)`, `6`},
		"side by side":    {`(await Promise.all([1, 2, 3].map(n => testWithCallback(async () => { await echo(n); return n })))).join()`, `"2,4,6"`},
	} {
		t.Run(name, func(t *testing.T) { want(t, p, c.source, c.value) })
	}
}

func TestK01_RejectedCallbackKeepsItsMessage(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, source := range map[string]string{
		"async":           `await testWithCallback(async () => { throw new RangeError('the spoon is too long') })`,
		"sync":            `await testWithCallback(() => { throw new RangeError('the spoon is too long') })`,
		"already settled": `await testWithCallback(() => Promise.reject(new RangeError('the spoon is too long')))`,
	} {
		t.Run(name, func(t *testing.T) {
			var heard error
			h := standard()
			call := h.functions["testWithCallback"]
			h.functions["testWithCallback"] = func(ctx context.Context, args []js.Arg) (any, error) {
				v, err := call(ctx, args)
				heard = err
				return v, err
			}
			_, err := runWith(t, p, js.Script{Source: source}, js.Limits{}, h)
			for _, err := range []error{heard, err} {
				var e *js.Error
				if !errors.As(err, &e) || e.Kind != js.Thrown || e.Name != "RangeError" ||
					e.Message != "the spoon is too long" || e.Line != 1 {
					t.Errorf("got %#v", err)
				}
			}
		})
	}
	// The thrown value comes back through the host as the same value.
	want(t, p, `class Mine extends Error { extra = 7 }
		let thrown
		try { await testWithCallback(() => { throw thrown = new Mine('own') }) } catch (e) { [e === thrown, e instanceof Mine, e.extra, e.message] }`,
		`[true,true,7,"own"]`)
	want(t, p, `try { await testWithCallback(() => { throw 'just text' }) } catch (e) { e }`, `"just text"`)
	want(t, p, `try { await testWithCallback(() => 10n) } catch (e) { e.name }`, `"TypeError"`)
}

func TestK01_CallbackCalledTwiceWithObjects(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	var kept *js.Func
	h.functions["each"] = func(ctx context.Context, args []js.Arg) (any, error) {
		kept = args[1].Func
		var list []json.RawMessage
		if err := json.Unmarshal(args[0].JSON, &list); err != nil {
			return nil, err
		}
		var out []json.RawMessage
		for i, v := range list {
			r, err := args[1].Func.Call(ctx, v, json.RawMessage(fmt.Sprintf(`{"index":%d,"of":%d}`, i, len(list))))
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	got, err := runWith(t, p,
		js.Script{Source: `await each([{name: 'a'}, {name: 'b'}], async (item, {index, of}) => ({...item, index, of}))`}, js.Limits{}, h)
	if err != nil || got != `[{"name":"a","index":0,"of":2},{"name":"b","index":1,"of":2}]` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := kept.Call(context.Background()); reeve.CodeOf(err) != reeve.Internal {
		t.Errorf("a function of a run that is over: %v", err)
	}
}

// TestK01_DelegatedCall makes the result of a script's function the result of a host call. The script receives the
// value itself, and the host learns the outcome before it reads later frames of the script.
func TestK01_DelegatedCall(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	var heard []string
	var kept *js.Func
	h.functions["note"] = func(_ context.Context, args []js.Arg) (any, error) {
		heard = append(heard, string(args[0].JSON))
		return nil, nil
	}
	h.functions["with"] = func(_ context.Context, args []js.Arg) (any, error) {
		kept = args[1].Func
		return "left aside", args[1].Func.CallAndReturn(func(err error) {
			heard = append(heard, fmt.Sprint("done ", string(args[0].JSON), " ", err))
		}, args[0].JSON)
	}
	for source, want := range map[string]string{
		`const f = () => 7; (await with_(1, () => f)) === f`:                                                 `true: done 1 <nil>`,
		`await with_(1, async (n) => { await note('in'); return n + 1 }); await note('after')`:               `: "in", done 1 <nil>, "after"`,
		`const e = new TypeError('mine'); try { await with_(2, () => { throw e }) } catch (x) { x === e }`:   `true: done 2 script.js:1:24: TypeError: mine`,
		`try { await with_(3, () => refuse()) } catch (x) { x.code }`:                                        `"NOT_FOUND": done 3 script.js:1:47: Error: no such letter`,
		`let n = 0; for (let i = 0; i < 50; i++) n += await with_(i, (x) => x); n`:                           `1225`,
		`(await Promise.all([with_(1, async () => { await echo(1); return 1 }), with_(2, () => 2)])).join()`: `"1,2"`,
		`await with_(1, () => 10n).then((v) => typeof v)`:                                                    `"bigint"`,
	} {
		heard = nil
		got, err := runWith(t, p, js.Script{Source: strings.ReplaceAll(source, "with_", "globalThis['with']")},
			js.Limits{}, h)
		if all := got + ": " + strings.Join(heard, ", "); err != nil || all != want && got != want {
			t.Errorf("%s\n  is %s, %v; want %s", source, all, err, want)
		}
	}
	if err := kept.CallAndReturn(func(error) {}); reeve.CodeOf(err) != reeve.Internal {
		t.Errorf("a function of a run that is over: %v", err)
	}
	_, err := runWith(t, p, js.Script{Source: "\nawait globalThis['with'](1, () => new Promise(() => {}))"},
		js.Limits{Time: 300 * time.Millisecond}, h)
	if js.KindOf(err) != js.Timeout {
		t.Errorf("one that never settles: %v", err)
	}
	want(t, p, `1 + 1`, `2`)
}

func TestK02_CallbackThatNeverSettles(t *testing.T) {
	p := newPool(t, js.Config{})
	e := fails(t, p, "\n await testWithCallback(() => new Promise(() => {}))", js.Limits{Time: 300 * time.Millisecond},
		js.Timeout)
	if e.Line != 2 || reeve.CodeOf(e) != reeve.Timeout {
		t.Errorf("got %v at line %d, code %s", e, e.Line, reeve.CodeOf(e))
	}
	want(t, p, `1 + 1`, `2`)
}

func TestHostErrors(t *testing.T) {
	p := newPool(t, js.Config{})
	want(t, p, `try { await refuse() } catch (e) { [e instanceof Error, e.message, e.code, e.hint] }`,
		`[true,"no such letter","NOT_FOUND","look in the other box"]`)
	want(t, p, `await refuse().catch(e => e.code)`, `"NOT_FOUND"`)
	e := fails(t, p, "await echo(1)\nawait refuse()", js.Limits{}, js.Thrown)
	if e.Line != 2 || reeve.CodeOf(e) != reeve.NotFound {
		t.Errorf("an uncaught host error: %v, line %d, code %s", e, e.Line, reeve.CodeOf(e))
	}
	want(t, p, `await echo()`, ``)
	want(t, p, `await echo({a: undefined, b: [undefined, null], c: NaN, d: new Date(0)})`,
		`{"b":[null,null],"c":null,"d":"1970-01-01T00:00:00.000Z"}`)
	want(t, p, `const said = []; for (const n of [10n, 10n ** 30n]) try { await echo(n) } catch (e) { said.push(e.name, e.message.includes('called with a BigInt')) } said`, `["TypeError",true,"TypeError",true]`)
	want(t, p, `const a = {}; a.a = a; try { await echo(a) } catch (e) { e.name }`, `"TypeError"`)
	want(t, p, `try { await echo("x".repeat(9e6)) } catch (e) { e.code }`, `"TOO_LARGE"`)
	e = fails(t, p, "1\nawait echo({ text: 'x'.repeat(9e6) })", js.Limits{}, js.Thrown)
	if e.Line != 2 || reeve.CodeOf(e) != reeve.TooLarge {
		t.Errorf("arguments that are too large: %v, line %d, code %s", e, e.Line, reeve.CodeOf(e))
	}
	contains(t, e.Message, "9000011 bytes")
	contains(t, e.Message, "at most 8 MB")
	want(t, p, `const w = []; for (let i = 0; i < 1001; i++) w.push(echo(i)); (await Promise.allSettled(w)).filter(r => r.status == 'rejected').map(r => r.reason.code)`, `["TOO_LARGE"]`)
}

func TestAbortCannotBeCaught(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, source := range map[string]string{
		"try":           `try { await abort() } catch { await mark() } finally { await mark() }; await mark()`,
		"catch":         `await abort().catch(() => mark()).finally(() => mark())`,
		"then":          `await abort().then(mark, mark)`,
		"not awaited":   `abort(); 'done'`,
		"allSettled":    `await Promise.allSettled([abort(), echo(1)]); await mark()`,
		"race":          `await Promise.race([abort(), new Promise(r => r(1))]); for (;;) await null`,
		"in a callback": `await testWithCallback(async () => { try { await abort() } catch { await mark() } return 1 }); await mark()`,
		"after failing": `abort(); throw new Error('something else')`,
		"endless loop":  `abort(); for (;;) {}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := standard()
			marks := 0
			h.functions["mark"] = func(context.Context, []js.Arg) (any, error) { marks++; return nil, nil }
			_, err := runWith(t, p, js.Script{Source: source}, js.Limits{Time: 10 * time.Second}, h)
			if js.KindOf(err) != js.Aborted || marks != 0 {
				t.Errorf("got %v, and the script went on %d times", err, marks)
			}
			contains(t, err.Error(), "that was a mutation")
		})
	}
}
