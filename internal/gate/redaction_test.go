package gate

import (
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// leaving is a caller who goes away when it has been asked so often whether it is there.
type leaving struct {
	context.Context
	left int
}

func (l *leaving) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// Whoever goes away in the middle of a look leaves nothing behind by which others are shown a secret.
func TestG21_ALookThatIsBrokenOffForgetsNoSecret(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := sender(t, reeve.Keyed)
	const secret = "no stranger than any other text"
	if err := g.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().
			PutSecret(ctx, "home", "phrase", secret)
	}); err != nil {
		t.Fatal(err)
	}
	look := func(ctx context.Context) (shown string, err error) {
		err = g.DB.View(ctx, func(s *store.Snap) error {
			v, err := g.Redaction(ctx, s, "home")
			if err == nil {
				shown = v.StoredSecretsOnly("a "+secret, false)
			}
			return err
		})
		return shown, err
	}
	for n, whole := 0, false; !whole; n++ {
		g.viewCache.invalidate("home")
		_, err := look(&leaving{ctx, n})
		whole = err == nil
		if shown, err := look(ctx); err != nil || strings.Contains(shown, secret) {
			t.Fatalf("after somebody left at %d: %q, %v", n, shown, err)
		}
	}
}

// A call that could not be looked up is not said to be none.
func TestG26_ACallThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := sender(t, reeve.Keyed)
	res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
		Args: []byte("{}"), Via: reeve.ViaGo})
	if err != nil {
		t.Fatal(err)
	}
	for n, whole := 0, false; !whole; n++ {
		_, err := g.Explain(&leaving{ctx, n}, "home", res.CallID)
		if whole = err == nil; !whole && reeve.CodeOf(err) != reeve.Canceled {
			t.Errorf("to somebody who left at %d: %v", n, err)
		}
	}
}
