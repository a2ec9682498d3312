package js_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

// Computing between two calls has a limit of its own. It ends loops, microtasks, regular expressions and built-ins long
// before the script's time is over, with the position where the engine knows one.
func TestK30_ComputingHasALimit(t *testing.T) {
	p := newPool(t, js.Config{Max: 2})
	limits := js.Limits{Time: time.Hour, Compute: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		source string
		line   int // 0 means any
	}{
		"loop":              {"let n = await echo(1)\nfor (;;) { n = n + n.x }", 2},
		"loop that catches": {"let n = 1\n\nfor (;;) try { for (;;) { n = n + n.x } } catch {} finally { continue }", 3},
		"microtasks":        {"await echo(1)\n\nfor (;;) await null", 3},
		"regexp":            {"\n/^(a+)+$/.test('a'.repeat(60) + '!')", 2},
		"built-in":          {"const a = new Array(1e9); a.indexOf(1); a.includes(2); a.lastIndexOf(3)", 0},
		"in a callback":     {"await testWithCallback(\n  () => { for (;;) {} })", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := reeve.Monotonic()
			e := fails(t, p, c.source, limits, js.Compute)
			if took := reeve.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if c.line != 0 && e.Line != c.line || reeve.CodeOf(e) != reeve.Timeout {
				t.Errorf("%v at line %d, code %s; want line %d", e, e.Line, reeve.CodeOf(e), c.line)
			}
			contains(t, e.Message, "300ms")
			want(t, p, `1 + 1`, `2`)
		})
	}
}

// A script that waits does not compute, and each call begins a new period.
func TestK30_WaitingIsNotComputing(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	h.functions["wait"] = func(ctx context.Context, _ []js.Arg) (any, error) {
		<-time.After(400 * time.Millisecond) // the time is what is tested
		return 1, nil
	}
	v, err := runWith(t, p, js.Script{Source: `await wait(); await wait(); 'done'`},
		js.Limits{Compute: 200 * time.Millisecond}, h)
	if err != nil || v != `"done"` {
		t.Errorf("%s, %v", v, err)
	}
}

// A synchronous function returns its result, throws its error, and leaves calls in progress alone.
func TestSynchronousFunctions(t *testing.T) {
	p := newPool(t, js.Config{})
	s := js.Script{Functions: []string{"echo", "refuse", "testWithCallback"}, Sync: []string{"echo", "refuse"}}
	for source, value := range map[string]string{
		`echo('a') + echo('b')`:                 `"ab"`,
		`(await echo('a')) + echo({ x: 1 }).x`:  `"a1"`,
		`try { refuse() } catch (e) { e.code }`: `"NOT_FOUND"`,
		`const c = testWithCallback(async () => { await null; return echo(2) }); echo(1) + await c`:          `5`,
		`await Promise.all([1, 2, 3].map(async (n) => n + echo(n) + await testWithCallback(() => echo(n))))`: `[4,8,12]`,
		`typeof echo()`: `"undefined"`,
	} {
		s.Source = source
		v, err := p.Run(context.Background(), s, js.Limits{Time: time.Minute}, standard())
		if err != nil || string(v) != value {
			t.Errorf("%s\n  is %s, %v; want %s", source, v, err, value)
		}
	}
	s.Source = "\nrefuse()"
	_, err := p.Run(context.Background(), s, js.Limits{Time: time.Minute}, standard())
	var e *js.Error
	if !errors.As(err, &e) || e.Kind != js.Thrown || e.Line != 2 || reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("not caught: %v", err)
	}
}

// The first argument of the script's functions has the methods. A method gets the error of an earlier call as it was.
func TestMethodsOfTheFirstArgument(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	var got []error
	refused := reeve.Errorf(reeve.NotFound, "no such letter")
	h.functions["refuse"] = func(context.Context, []js.Arg) (any, error) { return nil, refused }
	h.functions["note"] = func(_ context.Context, args []js.Arg) (any, error) {
		if len(args) == 0 {
			return "none", nil
		}
		got = append(got, args[0].Err)
		return string(args[0].JSON), nil
	}
	h.functions["within"] = func(ctx context.Context, args []js.Arg) (any, error) {
		return args[0].Func.Call(ctx, []byte(`{"a":1}`))
	}
	s := js.Script{Functions: []string{"refuse", "within"}, Methods: []string{"note"}, Source: `
		await within(async (ctx) => {
			try { await refuse() } catch (e) { await ctx.note(e) }
			return [typeof note, ctx.a, await ctx.note(new Error('own')), await ctx.note()]
		})`}
	v, err := p.Run(context.Background(), s, js.Limits{Time: time.Minute}, h)
	if err != nil || string(v) != `["undefined",1,"{}","none"]` {
		t.Errorf("%s, %v", v, err)
	}
	if len(got) != 2 || got[0] != error(refused) || got[1] != nil {
		t.Errorf("the host got %v", got)
	}
}

// The result of a call that was not made explains itself.
func TestK28_Placeholders(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	h.functions["put"] = func(context.Context, []js.Arg) (any, error) { return nil, &js.NotRun{Text: "result of put #3"} }
	for source, value := range map[string]string{
		"const r = await put(); `${r}`":                                           `"‹result of put #3, not run›"`,
		"const r = await put(); r.a.b[0]":                                         `"‹result of put #3.a.b.0, not run›"`,
		"const { id } = await put(); 'x' + id":                                    `"x‹result of put #3.id, not run›"`,
		"(await put()).list.map((x) => x)":                                        `"‹result of put #3.list.map(), not run›"`,
		"await echo(await put())":                                                 `"‹result of put #3, not run›"`,
		"await echo({ to: [(await put()).id] })":                                  `{"to":["‹result of put #3.id, not run›"]}`,
		"const r = await put(); r > 3 || r.n + 1 > 3":                             `false`,
		"const out = []; for (const x of (await put()).list) out.push(x.id); out": `["‹result of put #3.list[0].id, not run›"]`,
		"const r = await put(); r.x = 1; JSON.stringify({ r })":                   `"{\"r\":\"‹result of put #3, not run›\"}"`,
	} {
		v, err := runWith(t, p, js.Script{Source: source}, js.Limits{}, h)
		if err != nil || v != value {
			t.Errorf("%s\n  is %s, %v; want %s", source, v, err, value)
		}
	}
	if _, err := runWith(t, p, js.Script{Source: `console.log(await put())`}, js.Limits{}, h); err != nil {
		t.Error(err)
	}
	if len(h.lines) != 1 || h.lines[0] != "log: ‹result of put #3, not run›" {
		t.Errorf("the log is %q", h.lines)
	}
}
