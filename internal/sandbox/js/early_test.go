package js_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/sandbox/js"
)

// TestEarlyAnswers has a script go on before its call is over. It is told once, hears what it was told, and is not heard before the call is over; a call that fails after
// that ends the run.
func TestEarlyAnswers(t *testing.T) {
	p := newPool(t, js.Config{})
	var heard []string
	possible := 0
	host := func() *host {
		heard, possible = nil, 0
		h := standard()
		h.functions["put"] = func(ctx context.Context, args []js.Arg) (any, error) {
			heard = append(heard, "put")
			if e := js.EarlyFrom(ctx); e != nil {
				possible++
				if e.Answer(args[0].JSON); len(args[0].JSON) < 100 {
					e.Answer(json.RawMessage(`"told twice"`))
				}
			}
			heard = append(heard, "over")
			if string(args[0].JSON) == `"bad"` {
				return nil, reeve.Errorf(reeve.Unavailable, "the disk is full")
			}
			return "said at the end", nil
		}
		h.functions["both"] = func(ctx context.Context, _ []js.Arg) (any, error) { return js.EarlyFrom(ctx) != nil, nil }
		return h
	}
	if got, err := runWith(t, p, js.Script{Source: `let n = 0; for (let i = 0; i < 200; i++) n += await put(i); n`}, js.Limits{}, host()); err != nil || got != "19900" || possible != 200 {
		t.Errorf("it is %s, %v, with %d chances", got, err, possible)
	}
	if got := strings.Join(heard, " "); got != strings.TrimSpace(strings.Repeat("put over ", 200)) {
		t.Errorf("it was heard before its call was over: %s", got)
	}
	if got, err := runWith(t, p, js.Script{Source: `(await put('x'.repeat(100000))).length`}, js.Limits{}, host()); err != nil || got != "15" {
		t.Errorf("what does not go at once: %s, %v", got, err)
	}
	_, err := runWith(t, p, js.Script{Source: `try { await put('bad') } catch {}; await put(1)`}, js.Limits{}, host())
	if js.KindOf(err) != js.Aborted || reeve.CodeOf(err) != reeve.Unavailable || len(heard) != 2 {
		t.Errorf("a call that failed afterwards: %v; heard %q", err, heard)
	}
	if got, err := runWith(t, p, js.Script{Source: `await Promise.all([both(), both()])`}, js.Limits{}, host()); err != nil || !strings.HasPrefix(got, "[false,") {
		t.Errorf("side by side: %s, %v", got, err)
	}
}
