package py_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/py"
)

// lieVariable makes this binary a worker that violates the protocol.
const lieVariable = "REEVE_TEST_LIE"

// lie is a worker that reports that it is ready, receives the code, and then violates the protocol.
func lie(how string) {
	say := func(b []byte) { _, _ = os.Stdout.Write(b) }
	done := func(text string) []byte { return wire.JSON(wire.KindDone, 0, []byte(text)) }
	if how == "other version" {
		say(wire.Ready("reeve-py-0"))
	} else {
		say(wire.Ready(wire.Version("py", os.DirFS(os.Getenv(guestVariable)), ".")))
	}
	_, _ = wire.ReadFrame(os.Stdin)
	if how == "does not take it" {
		say(done(`{"exit":0}`))
	}
	say(wire.Ready(""))
	switch how {
	case "dies":
		os.Exit(0)
	case "rubbish":
		say([]byte("hello, is this JSON? \x00\xff\xff\xff\xff and more and more"))
	case "endless frame":
		say([]byte{0xff, 0xff, 0xff, 0x7f, byte(wire.KindDone), 0, 0, 0, 0})
	case "half a frame":
		say([]byte{100, 0, 0, 0, byte(wire.KindDone), 0, 0, 0, 0, '1'})
		os.Exit(0)
	case "not JSON":
		say(done("{no"))
	case "nothing":
		say(done(""))
	case "odd exit":
		say(done(`{"exit":-1}`))
	case "huge exit":
		say(done(`{"exit":70000}`))
	case "counts too little":
		say(wire.Log(1, []byte("12345")))
		say(done(`{"exit":0,"stdout":2}`))
	case "long exception":
		say(done(`{"exit":1,"error":{"type":"` + string(make([]byte, 20<<10)) + `"}}`))
	case "negative line":
		say(done(`{"exit":1,"error":{"type":"E","line":-5}}`))
	case "host's words":
		say(wire.JSON(wire.KindResolve, 1, []byte("1")))
	case "third stream":
		say(wire.Log(3, []byte("x")))
	case "too much output":
		for {
			say(wire.Log(1, make([]byte, 1000)))
		}
	case "silence":
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	time.Sleep(time.Hour) // killed long before
}

const guestVariable = "REEVE_TEST_GUEST"

// lying returns a pool whose workers violate the protocol.
func lying(t *testing.T, how string) *py.Pool {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	guest, err := filepath.Abs("guest")
	if err != nil {
		t.Fatal(err)
	}
	cacheDirReady(t) // a liar is no translator
	return newPool(t, py.Config{Warm: -1, Binary: self, Confine: func(c *exec.Cmd, _ string) (func(), error) {
		c.Env = append(c.Env, lieVariable+"="+how, guestVariable+"="+guest)
		return func() {}, nil
	}})
}

// TestWorkerThatLiesOrDies checks that a run fails if its worker violates the protocol or dies, and that the worker
// ends.
func TestWorkerThatLiesOrDies(t *testing.T) {
	for _, how := range []string{"does not take it", "dies", "rubbish", "endless frame", "half a frame", "not JSON",
		"nothing", "odd exit", "huge exit", "counts too little", "long exception", "negative line",
		"host's words", "third stream", "too much output"} {
		t.Run(how, func(t *testing.T) {
			r, err := lying(t, how).Run(context.Background(), py.Code{Source: "1"}, py.Limits{Time: time.Minute})
			if reeve.CodeOf(err) != reeve.ToolFailed || r.TimedOut {
				t.Errorf("%+v, %v", r, err)
			}
			if n := children(t); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
	if r, err := lying(t, "silence").
		Run(context.Background(), py.Code{Source: "1"}, py.Limits{Time: 200 * time.Millisecond}); err != nil ||
		!r.TimedOut {
		t.Errorf("silence: %+v, %v", r, err)
	}
	if _, err := lying(t, "other version").Run(context.Background(), py.Code{Source: "1"}, py.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("another version: %v", err)
	}
	if _, err := newPool(t, py.Config{Binary: "/does/not/exist"}).
		Run(context.Background(), py.Code{Source: "1"}, py.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("no such program: %v", err)
	}
}
