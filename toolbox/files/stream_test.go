package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"reeve"
)

// After a crash a stream is found applied, not applied, or neither, by its receipt and the file.
func TestM15_VerifyStream(t *testing.T) {
	fx := newFixture(t)
	target := StreamTarget{Path: "/shared/a/file.bin", Overwrite: true}
	inv := func(op string) *reeve.Invocation {
		return &reeve.Invocation{Workspace: ws, Operation: op, Attempt: 1, Base: "absent"}
	}
	fill := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	verify := func(op string) (reeve.Outcome, StreamResult) {
		t.Helper()
		o, r, err := fx.pack.Streams().VerifyStream(t.Context(), inv(op), target)
		if err != nil {
			t.Fatal(err)
		}
		return o, r
	}
	if o, _ := verify("op_1"); o != reeve.NotApplied {
		t.Error("never begun:", o)
	}
	// a broken download leaves nothing, and proves that nothing happened
	broken := errors.New("the connection was lost")
	if _, err := fx.pack.Streams().WriteStream(t.Context(), inv("op_1"), target, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if o, _ := verify("op_1"); o != reeve.NotApplied {
		t.Error("broken:", o)
	}
	// what a dead process left is removed
	dir := filepath.Join(fx.home, "shared", "a")
	left := filepath.Join(dir, newTempName(inv("op_1")))
	fx.writeFile(left, "half")
	verify("op_1")
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("a leftover stays:", err)
	}
	written, err := fx.pack.Streams().WriteStream(t.Context(), inv("op_1"), target, fill("whole"))
	if err != nil || !written.Created || written.Size != 5 || written.SHA256 != reeve.Hash([]byte("whole")) {
		t.Fatal(written, err)
	}
	if o, found := verify("op_1"); o != reeve.Applied || found != written {
		t.Error("applied:", o, found)
	}
	// the receipt was written, but not the file
	if err := os.Remove(filepath.Join(dir, "file.bin")); err != nil {
		t.Fatal(err)
	}
	if o, _ := verify("op_1"); o != reeve.NotApplied {
		t.Error("without the file:", o)
	}
	fx.writeFile(filepath.Join(dir, "file.bin"), "of somebody else")
	if o, _ := verify("op_1"); o != reeve.CannotTell {
		t.Error("with another file:", o)
	}
	// a file that appears during the download is not replaced
	next := inv("op_2")
	next.Base = ""
	if _, err := fx.pack.Streams().WriteStream(t.Context(), next, StreamTarget{Path: "/shared/b"}, func(w io.Writer) error {
		fx.writeFile(filepath.Join(fx.home, "shared", "b"), "mine")
		return nil
	}); reeve.CodeOf(err) != reeve.Stale {
		t.Error("a file that appears:", err)
	}
	// a cancelled download changes nothing
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := fx.pack.Streams().WriteStream(ctx, inv("op_3"), StreamTarget{Path: "/shared/c"}, func(io.Writer) error {
		cancel()
		return nil
	}); err == nil {
		t.Error("a cancelled download is written")
	}
	if _, err := os.Stat(filepath.Join(fx.home, "shared", "c")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a cancelled download is there:", err)
	}
}
