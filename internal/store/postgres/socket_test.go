//go:build unix

package postgres

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"reeve/internal/store"
)

// pair is a socket of ours and its other end.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if ours, err = newSocket(c); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	if _, ok := ours.(*socket); !ok {
		t.Fatalf("it is a %T", ours)
	}
	return ours, theirs
}

// A thread that waits in the kernel is reached by a deadline, whenever it is set, and by Close.
func TestSocketIsNotWaitedForInVain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(net.Conn) error{
		"a deadline to come":      func(c net.Conn) error { return c.SetDeadline(time.Now().Add(20 * time.Millisecond)) },
		"a deadline that is over": func(c net.Conn) error { return c.SetReadDeadline(time.Now().Add(-time.Second)) },
		"a deadline that is moved": func(c net.Conn) error {
			return errors.Join(c.SetDeadline(time.Now().Add(time.Hour)), c.SetDeadline(time.Now()))
		},
		"closed": net.Conn.Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			began, read := make(chan struct{}), make(chan error, 1)
			go func() {
				for b := make([]byte, 1); ; {
					if _, err := ours.Read(b); err != nil {
						read <- err
						return
					}
					close(began) // it reads on, and waits
				}
			}()
			if _, err := theirs.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			<-began
			if err := end(ours); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-read:
				if errors.Is(err, os.ErrDeadlineExceeded) == (name == "closed") || err == nil {
					t.Fatalf("it ended with %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it waits on")
			}
		})
	}
}

// A deadline that was taken back does nothing, and what is sent arrives.
func TestSocketTakesADeadlineBack(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	if err := ours.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	set := ours.(*socket).deadline
	if err := ours.SetDeadline(time.Time{}); err != nil || set.Stop() {
		t.Fatalf("it comes all the same; %v", err)
	}
	for _, way := range [][2]net.Conn{{ours, theirs}, {theirs, ours}} {
		got := make([]byte, 5)
		if _, err := way[0].Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := way[1].Read(got); err != nil || string(got) != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// What is the server's trouble is not the caller's.
func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]store.FaultKind{
		"23505": store.FaultUnique, "53100": store.FaultFull, "25006": store.FaultReadOnly, "XX001": store.FaultCorrupt, "42601": store.FaultOther, "": store.FaultOther,
		"40001": store.FaultBusy, "40P01": store.FaultBusy, "55P03": store.FaultBusy, "55006": store.FaultBusy, "57014": store.FaultBusy, "53300": store.FaultBusy,
		"57P01": store.FaultDown, "57P05": store.FaultDown, "53200": store.FaultDown, "58030": store.FaultDown, "08006": store.FaultDown,
	} {
		if f, ok := faultOf(fault(&pgconn.PgError{Code: code})); !ok || f.Kind != kind {
			t.Errorf("%s is %s, want %s", code, f.Kind, kind)
		}
	}
}
