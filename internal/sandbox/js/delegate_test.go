package js_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

// keeper is a host whose function each passes "old" to its callback for known keys, and the key and the note for all
// others.
type keeper struct {
	*host
	mu    sync.Mutex
	heard []string
}

func (s *keeper) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, fmt.Sprintf(format, args...))
}

func newKeeper() *keeper {
	s := &keeper{host: standard()}
	s.functions["note"] = func(_ context.Context, args []js.Arg) (any, error) {
		s.note("note %s", args[0].JSON)
		return nil, nil
	}
	seen := map[string]bool{}
	s.functions["each"] = func(_ context.Context, args []js.Arg) (any, error) {
		var key string
		if err := json.Unmarshal(args[0].JSON, &key); err != nil {
			return nil, js.Abort(reeve.Errorf(reeve.Validation, "the key is no text"))
		}
		s.note("each %s", key)
		handler := args[len(args)-1].Func
		given := json.RawMessage(fmt.Sprintf(`{"key":%s,"note":%s}`, args[0].JSON, args[1].JSON))
		switch {
		case seen[key]:
			given = json.RawMessage(`"again"`)
		case key == "b":
			given = json.RawMessage(`"old"`)
		case key == "skip":
			return "passed over", nil
		}
		seen[key] = true
		return nil, handler.CallAndReturn(func(err error) { s.note("left %s %v", key, err) }, given)
	}
	return s
}

func (s *keeper) run(t *testing.T, p *js.Pool, source string) (string, error) {
	t.Helper()
	return runWith(t, p, js.Script{Source: source}, js.Limits{}, s.host)
}

// TestDelegatedCallsAreOrdered checks that a delegated call has the outcome of the script's function, and that the host
// sees all events in the order in which they happened.
func TestDelegatedCallsAreOrdered(t *testing.T) {
	p := newPool(t, js.Config{})
	for source, want := range map[string]string{
		`const got = []; for (const k of ['a', 'b', 'c', 'd', 'b', 'z', 'é', 'skip']) got.push(await each(k, 'n', (x) => x.note ? x.key + x.note : x)); got.join()`: `"an,old,cn,dn,again,zn,én,passed over"`,
		`await each('a', 'n', () => 0); const f = () => 7; await each('d', 'n', () => f) === f`:                                                                     `true`,
		`await each('a', 'n', () => 0); await each('e', 'n', async () => { await note('in'); return (await each('f', 'x', (y) => y)).note })`:                       `"x"`,
		`await each('a', 'n', () => 0); const e = new TypeError('mine'); try { await each('d', 'n', () => { throw e }) } catch (x) { x === e }`:                     `true`,
		`await each('a', 'n', () => 0); (await Promise.all(['d', 'e', 'f'].map((k) => each(k, 'n', (x) => x.key)))).join()`:                                         `"d,e,f"`,
		`await each('a', 'n', () => 0); let sync = false; const r = each('d', 'n', () => sync); sync = true; await r`:                                               `true`,
		`await each('a', 'n', () => 0); let n = 0; for (let i = 0; i < 5000; i++) n += await each('d' + i, 'n', (x) => x.key === 'd' + i ? 1 : 0); n`:               `5000`,
	} {
		if got, err := newKeeper().run(t, p, source); err != nil || got != want {
			t.Errorf("%s\n  is %s, %v; want %s", source, got, err, want)
		}
	}
	s := newKeeper()
	if _, err := s.run(t, p, `for (const k of ['a', 'd', 'b', 'e']) { await each(k, 'n', async () => { if (k != 'b') await note(k) }) }; await note('end')`); err != nil {
		t.Fatal(err)
	}
	want := []string{"each a", `note "a"`, "left a <nil>", "each d", `note "d"`, "left d <nil>", "each b",
		"left b <nil>", "each e", `note "e"`, "left e <nil>", `note "end"`}
	if !slices.Equal(s.heard, want) {
		t.Errorf("heard %q; want %q", s.heard, want)
	}
}

// TestCallsWithFunctionsBeginInOrder makes two calls with function arguments without awaiting the first. The host sees
// the second call before the outcome of the first.
func TestCallsWithFunctionsBeginInOrder(t *testing.T) {
	p := newPool(t, js.Config{})
	for range 20 {
		s := newKeeper()
		if _, err := s.run(t, p, `await Promise.all([each('x', 'n', () => 0), each('y', 'n', () => 0)]); await each('a', 'n', () => 0); await Promise.all([each('d', 'n', () => 0), each('e', 'n', () => 0)])`); err != nil {
			t.Fatal(err)
		}
		want := []string{"each x", "each y", "left x <nil>", "left y <nil>", "each a", "left a <nil>", "each d",
			"each e", "left d <nil>", "left e <nil>"}
		if !slices.Equal(s.heard, want) {
			t.Fatalf("heard %q; want %q", s.heard, want)
		}
	}
}

// TestCallsRunConcurrently blocks each call until another has begun. Calls that the script does not await must run
// concurrently.
func TestCallsRunConcurrently(t *testing.T) {
	p := newPool(t, js.Config{})
	h := standard()
	meet := make(chan struct{})
	h.functions["meet"] = func(ctx context.Context, _ []js.Arg) (any, error) { // two at a time
		select {
		case meet <- struct{}{}:
		case <-meet:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return 1, nil
	}
	for name, source := range map[string]string{
		"together":       `await Promise.all([meet(), meet()])`,
		"after answers":  `await Promise.all([echo(1).then(() => meet()), echo(2).then(() => meet())])`,
		"one by one":     `const first = meet(); await null; await meet(); await first`,
		"in a callback":  `await testWithCallback(async () => { await Promise.all([meet(), meet()]); return 1 })`,
		"with large":     `await Promise.all([meet('x'.repeat(5000)), meet('y'.repeat(5000))])`,
		"many in a row":  `for (let i = 0; i < 50; i++) await Promise.all([echo(i).then(() => meet()), meet()])`,
		"a slow one too": `const slow = echo(0).then(() => meet()); for (let i = 0; i < 20; i++) await echo(i); await meet(); await slow`,
	} {
		if _, err := runWith(t, p, js.Script{Source: source}, js.Limits{Time: 20 * time.Second}, h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
