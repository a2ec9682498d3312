package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

const home = "default"

// harness is a service on a real store, with an agent and two users. It records enqueued runs and does not serve them.
type harness struct {
	*Service
	t        testing.TB
	mu       sync.Mutex
	enqueued []reeve.Run
	n        int
}

func (w *harness) Enqueue(run reeve.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueued = append(w.enqueued, run)
}

var (
	ada = reeve.Principal{User: "ada", Role: reeve.Member, Workspace: home}
	bob = reeve.Principal{User: "bob", Role: reeve.Member, Workspace: home}
	eve = reeve.Principal{User: "eve", Role: reeve.Owner, Workspace: home}
)

// fakeFetcher returns content by URL.
type fakeFetcher map[string][]byte

func (s fakeFetcher) Fetch(_ context.Context, address string, maxBytes int) ([]byte, error) {
	b, ok := s[address]
	if !ok || len(b) > maxBytes {
		return nil, reeve.Errorf(reeve.Unavailable, "no such file")
	}
	return b, nil
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	ctx := t.Context()
	e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	return newHarnessOn(t, e)
}

func newHarnessOn(t testing.TB, e store.Engine) *harness {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, e, []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &harness{t: t}
	w.Service = &Service{DB: db, Broadcaster: NewBroadcaster(db, slog.New(slog.DiscardHandler)), Process: "proc_1",
		Queue:   w,
		Fetcher: fakeFetcher{"https://example.com/b.png": append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 40)...)}}
	w.update(func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(ctx, home, "Home"); err != nil {
			return err
		}
		if err := tx.System().RegisterProcess(ctx, "proc_1"); err != nil {
			return err
		}
		if err := tx.Agents().InsertCredential(ctx,
			store.Credential{AccessToken: reeve.AccessToken{ID: "tok_bob", User: "bob", Role: reeve.Member,
				Workspaces: []string{home}}}); err != nil {
			return err
		}
		return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_bot", WorkspaceID: home, Name: "bot", Kind: "general",
			Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid,
			Config: json.RawMessage("{}"), CreatedAt: tx.Now()})
	})
	return w
}

func (w *harness) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) update(f func(*store.Tx) error) {
	w.t.Helper()
	w.must(w.DB.Update(w.t.Context(), f))
}

func (w *harness) openConversation() reeve.Conversation {
	w.t.Helper()
	c, err := w.Open(w.t.Context(), ada, "", "chat", reeve.ConversationRequest{Agent: "bot"})
	w.must(err)
	return c
}

// appendFrame commits a frame as a brain does, without publishing it.
func (w *harness) appendFrame(conversation string, f reeve.Frame) {
	w.t.Helper()
	w.mu.Lock()
	w.n++
	key := fmt.Sprint("test:", w.n)
	w.mu.Unlock()
	if err := w.DB.Update(context.Background(), func(tx *store.Tx) error {
		return tx.Chat().AppendFrame(context.Background(), conversation, key, f)
	}); err != nil {
		w.t.Error(err)
	}
}

func (w *harness) subscribe(conversation string, after int64) *Reader {
	w.t.Helper()
	r, err := w.Broadcaster.Subscribe(w.t.Context(), conversation, after)
	w.must(err)
	w.t.Cleanup(r.Close)
	return r
}

// read returns frames up to the first one for which until is true. It checks that sequence numbers increase.
func (w *harness) read(r *Reader, until func(reeve.Frame) bool) (list []reeve.Frame) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	before := r.position
	for {
		lines, err := r.Next(ctx)
		if err != nil {
			w.t.Fatalf("after %d frames: %v", len(list), err)
		}
		for i, l := range lines {
			var f reeve.Frame
			w.must(json.Unmarshal(l.Data, &f))
			if f.Seq != l.Seq || f.Seq <= before {
				w.t.Fatalf("frame %d after %d: %s", f.Seq, before, l.Data)
			}
			before = f.Seq
			if list = append(list, f); until(f) {
				if i != len(lines)-1 {
					r.position = f.Seq // the next read starts here
				}
				return list
			}
		}
	}
}

// withText returns a function that reports whether a frame has the given text.
func withText(s string) func(reeve.Frame) bool {
	return func(f reeve.Frame) bool { return f.Text == s }
}

func tokenFrame(turn, text string) reeve.Frame { return reeve.Frame{TurnID: turn, Text: text} }

func messageFrame(turn, text string) reeve.Frame {
	return reeve.Frame{Type: reeve.FrameMessage, TurnID: turn, Text: text}
}

// joinTokens returns the text of the tokens of a turn.
func joinTokens(list []reeve.Frame, turn string) (s string) {
	for _, f := range list {
		if f.Type == reeve.FrameToken && f.TurnID == turn {
			s += f.Text
		}
	}
	return s
}
