package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"reeve/internal/store"
)

// bare opens an engine with one table and without a store.
func bare(t testing.TB, hook store.CommitHook) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{File: filepath.Join(t.TempDir(), "bare.db"), Hook: hook})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Update(t.Context(), func(c store.Conn) error {
		return c.Exec(t.Context(), nil, "CREATE TABLE things (id TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID")
	}); err != nil {
		t.Fatal(err)
	}
	return e
}

func add(ctx context.Context, c store.Conn, id string) error {
	return c.Exec(ctx, nil, "INSERT INTO things (id) VALUES ($1)", id)
}

func things(t testing.TB, e *Engine) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	if err := e.View(context.Background(), func(c store.Conn) error {
		rows, err := c.Query(context.Background(), "SELECT id FROM things")
		if err != nil {
			return err
		}
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			found[id] = true
		}
		return errors.Join(rows.Err(), rows.Close())
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestHookOncePerCommit(t *testing.T) {
	t.Parallel()
	var before, after atomic.Int64
	gate := make(chan struct{})
	var held atomic.Bool
	e := bare(t, store.CommitHook{
		OnBefore: func() {
			before.Add(1)
			if held.CompareAndSwap(true, false) {
				<-gate
			}
		},
		OnAfter: func() { after.Add(1) },
	})
	expect := func(n int64, what string) {
		t.Helper()
		if b, a := before.Load(), after.Load(); b != n || a != n {
			t.Fatalf("%s: before was called %d times and after %d, want %d", what, b, a, n)
		}
	}
	expect(1, "after the table was made")
	ctx := t.Context()
	for i := range 5 {
		if err := e.Update(ctx, func(c store.Conn) error { return add(ctx, c, fmt.Sprint("alone", i)) }); err != nil {
			t.Fatal(err)
		}
	}
	expect(6, "after five alone")
	_ = e.Update(ctx, func(store.Conn) error { return errors.New("no") })
	expect(6, "after a failure")

	// One commit is held; those who come meanwhile share the next.
	held.Store(true)
	var all sync.WaitGroup
	all.Go(func() { _ = e.Update(ctx, func(c store.Conn) error { return add(ctx, c, "first") }) })
	for held.Load() {
		runtime.Gosched()
	}
	for i := range 20 {
		all.Go(func() {
			if err := e.Update(ctx, func(c store.Conn) error {
				return add(ctx, c,
					fmt.Sprint("shared", i))
			}); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	for e.writer.waiting.Load() < 20 {
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
	expect(8, "after one and a group of 20")
	if n := len(things(t, e)); n != 5+1+20 {
		t.Fatalf("%d things", n)
	}
}

// A change that fails does not affect the other changes in its group, and each change runs once.
func TestFailureInGroup(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	var held atomic.Bool
	e := bare(t, store.CommitHook{OnBefore: func() {
		if held.CompareAndSwap(true, false) {
			<-gate
		}
	}})
	ctx := t.Context()
	held.Store(true)
	var all sync.WaitGroup
	all.Go(func() { _ = e.Update(ctx, func(c store.Conn) error { return add(ctx, c, "first") }) })
	for held.Load() {
		runtime.Gosched()
	}
	ran := make([]int, 20)
	for i := range ran {
		all.Go(func() {
			if err := e.Update(ctx, func(c store.Conn) error {
				ran[i]++
				if err := add(ctx, c, fmt.Sprint("shared", i)); err != nil || i%4 != 0 {
					return err
				}
				return errors.New("not I")
			}); (err == nil) != (i%4 != 0) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	for e.writer.waiting.Load() < int32(len(ran)) {
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
	for i, n := range ran {
		if n != 1 {
			t.Errorf("change %d ran %d times", i, n)
		}
	}
	if n := len(things(t, e)); n != 1+15 {
		t.Fatalf("%d things", n)
	}
}

// TestGroups runs random changes in random groups. Exactly the changes that were reported as successful are stored,
// whatever fails.
func TestGroups(t *testing.T) {
	t.Parallel()
	e := bare(t, store.CommitHook{OnBefore: runtime.Gosched, OnAfter: runtime.Gosched})
	var run atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SampledFrom([]string{"ok", "ok", "ok", "two", "error", "panic", "goexit", "refused",
			"unheeded refusal", "canceled", "canceled before", "read"})
		plan := rapid.SliceOfN(rapid.SliceOfN(kinds, 1, 4), 1, 8).Draw(rt, "plan")
		base := fmt.Sprint(run.Add(1), "/")
		var mu sync.Mutex
		want := map[string]bool{}
		var all sync.WaitGroup
		for i, steps := range plan {
			for n, kind := range steps {
				id := fmt.Sprintf("%s%d/%d", base, i, n)
				body := func() {
					told := false
					defer func() { // after a panic or Goexit nothing was told, and nothing may be there
						_ = recover()
						if told {
							mu.Lock()
							want[id] = true
							if kind == "two" {
								want[id+"b"] = true
							}
							mu.Unlock()
						}
					}()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if kind == "canceled before" {
						cancel()
					}
					told = e.Update(ctx, func(c store.Conn) error {
						if err := add(ctx, c, id); err != nil {
							return err
						}
						switch kind {
						case "two":
							return add(ctx, c, id+"b")
						case "error":
							return errors.New("mine")
						case "panic":
							panic("mine")
						case "goexit":
							runtime.Goexit()
						case "refused":
							return add(ctx, c, id)
						case "unheeded refusal": // package store heeds it for all; the engine itself goes on
							_ = add(ctx, c, id)
						case "canceled":
							cancel()
							return add(ctx, c, id+"b")
						case "read":
							runtime.Gosched()
							rows, err := c.Query(ctx, "SELECT id FROM things WHERE id = $1", id)
							if err != nil {
								return err
							}
							return rows.Close()
						}
						return nil
					}) == nil
				}
				all.Go(body)
			}
		}
		all.Wait()
		found := things(t, e)
		for id := range want {
			if !found[id] {
				rt.Fatalf("%s is lost", id)
			}
		}
		for id := range found {
			if len(id) > len(base) && id[:len(base)] == base && !want[id] {
				rt.Fatalf("%s is there and should not be", id)
			}
		}
		if e.writer.group != nil || e.writer.waiting.Load() != 0 {
			rt.Fatal("somebody was left waiting")
		}
	})
}

// TestFullFile fills a file that cannot grow from several goroutines, so that SQLite rolls back the transaction of a
// whole group.
func TestFullFile(t *testing.T) {
	t.Parallel()
	e := bare(t, store.CommitHook{})
	limit := func(pages int) {
		e.writer.turn.Lock()
		defer e.writer.turn.Unlock()
		if err := e.writer.conn.runUncanceled(fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(60)
	ctx := t.Context()
	var mu sync.Mutex
	stored := map[string]bool{}
	write := func(id string) error {
		err := e.Update(ctx, func(c store.Conn) error {
			for n := range 3 {
				if err := c.Exec(ctx, nil, "INSERT INTO things (id, body) VALUES ($1, $2)", fmt.Sprint(id, "/", n),
					make([]byte, 9000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			mu.Lock()
			for n := range 3 {
				stored[fmt.Sprint(id, "/", n)] = true
			}
			mu.Unlock()
		}
		return err
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for n, failures := 0, 0; failures < 5; n++ {
				err := write(fmt.Sprint(i, "/", n))
				var f store.Fault
				if err == nil {
					continue
				}
				failures++
				if !errors.As(err, &f) || f.Kind != store.FaultFull {
					t.Errorf("got %v, want full", err)
				}
			}
		})
	}
	all.Wait()
	found := things(t, e)
	if len(found) != len(stored) || len(stored) == 0 {
		t.Fatalf("%d are there, %d were reported", len(found), len(stored))
	}
	limit(10_000)
	if err := write("again"); err != nil {
		t.Fatal(err)
	}
}

// The writer replaces a connection that was lost.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	e := bare(t, store.CommitHook{})
	ctx := t.Context()
	if err := e.writer.conn.c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Update(ctx, func(c store.Conn) error { return add(ctx, c, "x") }); err != nil {
		t.Fatal(err)
	}
	// A transaction that cannot be rolled back does not outlive its connection.
	e.writer.conn.renew()
	if err := e.Update(ctx, func(c store.Conn) error { return add(ctx, c, "y") }); err != nil {
		t.Fatal(err)
	}
	if len(things(t, e)) != 2 {
		t.Fatal(things(t, e))
	}
}

// A caller that is refused because of another change in the same group can read that change afterwards.
func TestRefusedInCompany(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	var held atomic.Bool
	e := bare(t, store.CommitHook{OnBefore: func() {
		if held.CompareAndSwap(true, false) {
			<-gate
		}
	}})
	ctx := t.Context()
	for round := range 20 {
		held.Store(true)
		var all sync.WaitGroup
		all.Go(func() {
			_ = e.Update(ctx,
				func(c store.Conn) error { return add(ctx, c, fmt.Sprint("first", round)) })
		})
		for held.Load() {
			runtime.Gosched()
		}
		for i := range 20 {
			all.Go(func() {
				id := fmt.Sprint("thing", round, i/2)
				if err := e.Update(ctx, func(c store.Conn) error { return add(ctx, c, id) }); err != nil &&
					!things(t, e)[id] {
					t.Errorf("%s was there already, and is not: %v", id, err)
				}
			})
		}
		for e.writer.waiting.Load() < 20 {
			runtime.Gosched()
		}
		gate <- struct{}{}
		all.Wait()
	}
}
