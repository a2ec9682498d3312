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

// openBare opens an engine with one table and without a store.
func openBare(t testing.TB, hook store.CommitHook) *Engine {
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

func insertThing(ctx context.Context, c store.Conn, id string) error {
	return c.Exec(ctx, nil, "INSERT INTO things (id) VALUES ($1)", id)
}

func listThings(t testing.TB, e *Engine) map[string]bool {
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

// The commit hook runs once per commit, and a group of updates shares a commit.
func TestHookRunsOncePerCommit(t *testing.T) {
	t.Parallel()
	var before, after atomic.Int64
	resume := make(chan struct{})
	var holdNext atomic.Bool
	e := openBare(t, store.CommitHook{
		OnBefore: func() {
			before.Add(1)
			if holdNext.CompareAndSwap(true, false) {
				<-resume
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
	expect(1, "after the table was created")
	ctx := t.Context()
	for i := range 5 {
		if err := e.Update(ctx, func(c store.Conn) error {
			return insertThing(ctx, c, fmt.Sprint("alone", i))
		}); err != nil {
			t.Fatal(err)
		}
	}
	expect(6, "after five single updates")
	_ = e.Update(ctx, func(store.Conn) error { return errors.New("no") })
	expect(6, "after a failed update")

	// One commit is blocked. The updates that arrive meanwhile share the next commit.
	holdNext.Store(true)
	var all sync.WaitGroup
	all.Go(func() { _ = e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "first") }) })
	for holdNext.Load() {
		runtime.Gosched()
	}
	for i := range 20 {
		all.Go(func() {
			if err := e.Update(ctx, func(c store.Conn) error {
				return insertThing(ctx, c, fmt.Sprint("shared", i))
			}); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	for e.writer.waiting.Load() < 20 {
		runtime.Gosched()
	}
	close(resume)
	all.Wait()
	expect(8, "after a single update and a group of 20")
	if n := len(listThings(t, e)); n != 5+1+20 {
		t.Fatalf("%d things", n)
	}
}

// An update that fails does not affect the other updates in its group, and each update runs once.
func TestFailureInGroup(t *testing.T) {
	t.Parallel()
	resume := make(chan struct{})
	var holdNext atomic.Bool
	e := openBare(t, store.CommitHook{OnBefore: func() {
		if holdNext.CompareAndSwap(true, false) {
			<-resume
		}
	}})
	ctx := t.Context()
	holdNext.Store(true)
	var all sync.WaitGroup
	all.Go(func() { _ = e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "first") }) })
	for holdNext.Load() {
		runtime.Gosched()
	}
	ran := make([]int, 20)
	for i := range ran {
		all.Go(func() {
			if err := e.Update(ctx, func(c store.Conn) error {
				ran[i]++
				if err := insertThing(ctx, c, fmt.Sprint("shared", i)); err != nil || i%4 != 0 {
					return err
				}
				return errors.New("update failed")
			}); (err == nil) != (i%4 != 0) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	for e.writer.waiting.Load() < int32(len(ran)) {
		runtime.Gosched()
	}
	close(resume)
	all.Wait()
	for i, n := range ran {
		if n != 1 {
			t.Errorf("update %d ran %d times", i, n)
		}
	}
	if n := len(listThings(t, e)); n != 1+15 {
		t.Fatalf("%d things", n)
	}
}

// In random groups of random updates, exactly the updates that were reported as successful are stored.
func TestRandomGroups(t *testing.T) {
	t.Parallel()
	e := openBare(t, store.CommitHook{OnBefore: runtime.Gosched, OnAfter: runtime.Gosched})
	var run atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SampledFrom([]string{"ok", "ok", "ok", "two", "error", "panic", "goexit", "refused",
			"ignored refusal", "canceled", "canceled before", "read"})
		plan := rapid.SliceOfN(rapid.SliceOfN(kinds, 1, 4), 1, 8).Draw(rt, "plan")
		base := fmt.Sprint(run.Add(1), "/")
		var mu sync.Mutex
		want := map[string]bool{}
		var all sync.WaitGroup
		for i, steps := range plan {
			for n, kind := range steps {
				id := fmt.Sprintf("%s%d/%d", base, i, n)
				body := func() {
					succeeded := false
					defer func() { // after a panic or Goexit the update has not succeeded, and nothing may be stored
						_ = recover()
						if succeeded {
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
					succeeded = e.Update(ctx, func(c store.Conn) error {
						if err := insertThing(ctx, c, id); err != nil {
							return err
						}
						switch kind {
						case "two":
							return insertThing(ctx, c, id+"b")
						case "error":
							return errors.New("mine")
						case "panic":
							panic("mine")
						case "goexit":
							runtime.Goexit()
						case "refused":
							return insertThing(ctx, c, id)
						case "ignored refusal": // the engine continues; package store makes the transaction fail
							_ = insertThing(ctx, c, id)
						case "canceled":
							cancel()
							return insertThing(ctx, c, id+"b")
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
		found := listThings(t, e)
		for id := range want {
			if !found[id] {
				rt.Fatalf("%s is missing", id)
			}
		}
		for id := range found {
			if len(id) > len(base) && id[:len(base)] == base && !want[id] {
				rt.Fatalf("%s is stored, although its update failed", id)
			}
		}
		if e.writer.group != nil || e.writer.waiting.Load() != 0 {
			rt.Fatal("an update is still waiting")
		}
	})
}

// TestFullFile fills a file that cannot grow from several goroutines, so that SQLite rolls back the transaction of a
// whole group.
func TestFullFile(t *testing.T) {
	t.Parallel()
	e := openBare(t, store.CommitHook{})
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
	found := listThings(t, e)
	if len(found) != len(stored) || len(stored) == 0 {
		t.Fatalf("%d rows are stored, %d were reported as stored", len(found), len(stored))
	}
	limit(10_000)
	if err := write("again"); err != nil {
		t.Fatal(err)
	}
}

// The writer replaces a connection that was lost.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	e := openBare(t, store.CommitHook{})
	ctx := t.Context()
	if err := e.writer.conn.c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "x") }); err != nil {
		t.Fatal(err)
	}
	// A transaction that cannot be rolled back does not outlive its connection.
	e.writer.conn.renew()
	if err := e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "y") }); err != nil {
		t.Fatal(err)
	}
	if len(listThings(t, e)) != 2 {
		t.Fatal(listThings(t, e))
	}
}

// A caller that is refused because of another change in the same group can read that change afterwards.
func TestRefusedWithinGroup(t *testing.T) {
	t.Parallel()
	resume := make(chan struct{})
	var holdNext atomic.Bool
	e := openBare(t, store.CommitHook{OnBefore: func() {
		if holdNext.CompareAndSwap(true, false) {
			<-resume
		}
	}})
	ctx := t.Context()
	for round := range 20 {
		holdNext.Store(true)
		var all sync.WaitGroup
		all.Go(func() {
			_ = e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, fmt.Sprint("first", round)) })
		})
		for holdNext.Load() {
			runtime.Gosched()
		}
		for i := range 20 {
			all.Go(func() {
				id := fmt.Sprint("thing", round, i/2)
				if err := e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, id) }); err != nil &&
					!listThings(t, e)[id] {
					t.Errorf("%s was refused as a duplicate, but is not stored: %v", id, err)
				}
			})
		}
		for e.writer.waiting.Load() < 20 {
			runtime.Gosched()
		}
		resume <- struct{}{}
		all.Wait()
	}
}
