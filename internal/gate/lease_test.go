package gate

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// shared is a store that other servers may use too, of whose commits something can be done right after one.
type shared struct {
	store.Engine
	ready bool                         // its tables are there
	after atomic.Pointer[func() error] // once; its error is what the commit's caller is told
	still atomic.Bool                  // changes are not answered
	never atomic.Pointer[string]       // changes that begin so are refused
}

// unanswered is a connection whose changes get no answer for as long as anybody waits, or are refused.
type unanswered struct {
	store.Conn
	*shared
}

func (u unanswered) Exec(ctx context.Context, refused func(store.Fault) error, query string, args ...any) error {
	if u.still.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if never := u.never.Load(); never != nil && strings.HasPrefix(query, *never) {
		return store.Fault{Kind: store.FaultOther, Err: errors.New("no such change")}
	}
	return u.Conn.Exec(ctx, refused, query, args...)
}

func (u unanswered) Affect(ctx context.Context, query string, args ...any) (int64, error) {
	if never := u.never.Load(); never != nil && strings.HasPrefix(query, *never) {
		return 0, store.Fault{Kind: store.FaultOther, Err: errors.New("no such change")}
	}
	return u.Conn.Affect(ctx, query, args...)
}

func (s *shared) SingleProcess() bool { return !s.ready }

func (s *shared) Update(ctx context.Context, f func(store.Conn) error) error {
	err := s.Engine.Update(ctx, func(c store.Conn) error { return f(unanswered{c, s}) })
	if after := s.after.Load(); err == nil && after != nil && s.after.CompareAndSwap(after, nil) {
		return (*after)()
	}
	return err
}

// sender is a gate with one agent, that may call a tool of an effect class. It counts what was sent.
func sender(t *testing.T, effect reeve.Effect) (*Gate, *shared, *atomic.Int32) {
	t.Helper()
	ctx := t.Context()
	file, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(t.TempDir(), "gate.db")})
	if err != nil {
		t.Fatal(err)
	}
	e := &shared{Engine: file}
	db, err := store.Open(ctx, e, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	e.ready = true
	t.Cleanup(func() { _ = db.Close() })
	var sent atomic.Int32
	g := New(Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	tool := reeve.Tool{ID: "send", Description: "Sends.", Effect: effect, Tier: reeve.SideEffecting, TimeoutMS: 1000,
		Verify: func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
			return reeve.NotApplied, nil, nil
		}}
	if effect != reeve.Verifiable {
		tool.Verify = nil
	}
	if err := g.Catalogue.AddTool(reeve.MustTool(tool, func(context.Context, struct{}) (string,
		error) {
		sent.Add(1)
		return "sent", nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Open(ctx), db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(ctx, "home", "Home"); err != nil {
			return err
		}
		return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_one", WorkspaceID: "home", Name: "one",
			Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
	})); err != nil {
		t.Fatal(err)
	}
	return g, e, &sent
}

func (s *shared) then(f func() error) { s.after.Store(&f) }

// What the commit before a request came to, nobody can tell, or it was told so late that another server may have sent
// it: it is not sent from here, and it is not left lying either.
func TestG10_ACommitThatCannotBeActedOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after func(*Gate) error
		told  reeve.Code
	}{
		"not answered": {func(*Gate) error {
			return store.Fault{Kind: store.FaultUnsure, Err: errors.New("the connection broke")}
		}, reeve.UnknownOutcome},
		"answered after the others gave up": {func(g *Gate) error {
			g.lease.renew(reeve.Now().Add(-time.Minute), true)
			return nil
		}, reeve.InProgress},
		"answered after it was known again": {func(g *Gate) error { g.lease.renew(reeve.Now(), false); return nil },
			reeve.InProgress},
	} {
		for effect, ends := range map[reeve.Effect]reeve.State{reeve.Keyed: reeve.Committed,
			reeve.Verifiable: reeve.Committed, reeve.Unsafe: reeve.Unknown} {
			t.Run(name+", "+string(effect), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				g, e, sent := sender(t, effect)
				call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
					Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo}
				// so that the next commit is the call's
				if _, err := g.viewCache.getAgent(ctx, g, "home", "agt_one"); err != nil {
					t.Fatal(err)
				}
				e.then(func() error { return c.after(g) })
				res, err := g.Call(ctx, call)
				if code := res.Code; sent.Load() != 0 || err == nil && code != c.told || err != nil &&
					reeve.CodeOf(err) != c.told {
					t.Fatalf("%d sent; %+v, %v", sent.Load(), res, err)
				}
				g.lease.renew(reeve.Now(), true)
				var op reeve.Operation
				// a verifiable one waits for its time limit
				for begun := reeve.Monotonic(); op.State != ends && reeve.Since(begun) < time.Minute; {
					if _, err := g.Step(ctx); err != nil {
						t.Fatal(err)
					}
					if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
						op, err = s.Ledger().
							GetOperation(ctx, "home", "op_1")
						return err
					}); err != nil {
						t.Fatal(err)
					}
				}
				if want := map[reeve.State]int32{reeve.Committed: 1}[ends]; op.State != ends || sent.Load() != want {
					t.Errorf("%s, in the hands of %q; %d sent", op.State, op.Owner, sent.Load())
				}
			})
		}
	}
}

// A call that was made again meanwhile, and went through, is not taken out of the hands that it is in.
func TestG10_MadeAgainMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, sent := sender(t, reeve.Keyed)
	g.releaseLater(reeve.Operation{ID: "op_1", WorkspaceID: "home"}) // its commit was not made, as it turns out
	for at := reeve.Now(); !reeve.Now().After(at); {                 // clocks tell milliseconds apart
	}
	e.then(func() error { g.pending.flush(ctx); return nil })
	call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"}, Args: []byte("{}"),
		Operation: "op_1", Via: reeve.ViaGo}
	if res, err := g.Call(ctx, call); err != nil || res.State != reeve.Committed || sent.Load() != 1 {
		t.Errorf("%d sent; %+v, %v", sent.Load(), res, err)
	}
}

// What fails because the store went away is not the tool's failure: it is not recorded, and the same call goes through
// later.
func TestG19_TheStoresTroubleIsNotTheTools(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, _ := sender(t, reeve.Keyed)
	trouble := store.Fault{Kind: store.FaultBusy, Err: errors.New("canceling statement")}
	var fail, hang atomic.Bool
	if err := g.Catalogue.AddTool(reeve.MustTool(reeve.Tool{ID: "write", Description: "Writes.", Effect: reeve.Local,
		TimeoutMS: 2000}, func(ctx context.Context, _ struct{}) (string, error) {
		tx, err := store.TxFrom(ctx)
		switch {
		case err != nil:
			return "", err
		case fail.Load():
			return "", trouble
		case hang.Load():
			e.still.Store(true)
			defer e.still.Store(false)
		}
		return "written", tx.Chat().PutScratchpad(ctx, "home", "s", []string{"x"})
	})); err != nil {
		t.Fatal(err)
	}
	if err := g.Open(ctx); err != nil {
		t.Fatal(err)
	}
	call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "write", Tools: []string{"write"}, Args: []byte("{}"),
		Operation: "op_1", Via: reeve.ViaGo}
	for name, b := range map[string]*atomic.Bool{"it says so": &fail,
		"it does not answer until the tool's time is over": &hang} {
		b.Store(true)
		if res, err := g.Call(ctx, call); reeve.CodeOf(err) != reeve.Unavailable || res.CallID != "" {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		b.Store(false)
	}
	if res, err := g.Call(ctx, call); err != nil || res.State != reeve.Committed {
		t.Fatalf("%+v, %v", res, err)
	}
}
