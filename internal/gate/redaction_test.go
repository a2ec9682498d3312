package gate

import (
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// cancelingContext is a context that is canceled after Err was called left times.
type cancelingContext struct {
	context.Context
	left int
}

func (l *cancelingContext) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// A canceled read leaves no view in the cache that lacks secrets.
func TestG21_CanceledReadKeepsSecretsRedacted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	const secret = "no stranger than any other text"
	if err := g.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().PutSecret(ctx, "home", "phrase", secret)
	}); err != nil {
		t.Fatal(err)
	}
	readRedacted := func(ctx context.Context) (shown string, err error) {
		err = g.DB.View(ctx, func(s *store.Snap) error {
			v, err := g.Redaction(ctx, s, "home")
			if err == nil {
				shown = v.StoredSecretsOnly("a "+secret, false)
			}
			return err
		})
		return shown, err
	}
	for n, completed := 0, false; !completed; n++ {
		g.viewCache.invalidate("home")
		_, err := readRedacted(&cancelingContext{ctx, n})
		completed = err == nil
		if shown, err := readRedacted(ctx); err != nil || strings.Contains(shown, secret) {
			t.Fatalf("after a read was canceled at %d: %q, %v", n, shown, err)
		}
	}
}

// Explain returns a cancellation, and not that the call does not exist, if its context ends.
func TestG26_ExplainWithCanceledContext(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
		Args: []byte("{}"), Via: reeve.ViaGo})
	if err != nil {
		t.Fatal(err)
	}
	for n, completed := 0, false; !completed; n++ {
		_, err := g.Explain(&cancelingContext{ctx, n}, "home", res.CallID)
		if completed = err == nil; !completed && reeve.CodeOf(err) != reeve.Canceled {
			t.Errorf("canceled at %d: %v", n, err)
		}
	}
}
