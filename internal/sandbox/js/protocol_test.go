package js_test

import (
	"io"
	"os"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// lie is a worker that reports that it is ready, receives the script, and then violates the protocol.
func lie(how string) {
	say := func(b []byte) { _, _ = os.Stdout.Write(b) }
	if how == "other version" {
		say(wire.Ready("reeve-js-0"))
	} else {
		say(wire.Ready(guest.Version()))
	}
	_, _ = wire.ReadFrame(os.Stdin)
	first := wire.Call{Function: 0, Args: []wire.Argument{{JSON: []byte("1")}}}
	switch how {
	case "dies":
		os.Exit(0)
	case "killed":
		if me, err := os.FindProcess(os.Getpid()); err == nil {
			_ = me.Kill()
		}
	case "rubbish":
		say([]byte("hello, is this JSON? \x00\xff\xff\xff\xff and more and more"))
	case "endless frame":
		say([]byte{0xff, 0xff, 0xff, 0x7f, byte(wire.KindDone), 0, 0, 0, 0})
	case "half a frame":
		say([]byte{100, 0, 0, 0, byte(wire.KindDone), 0, 0, 0, 0, '1'})
		os.Exit(0)
	case "not JSON":
		say(wire.JSON(wire.KindDone, 0, []byte("{no")))
	case "unknown function":
		say((&wire.Call{Function: 99}).Encode(1))
	case "negative function":
		say((&wire.Call{Function: -1}).Encode(1))
	case "same call twice":
		say(first.Encode(1))
		say(first.Encode(1))
	case "foreign handle":
		say((&wire.Call{Function: 0, Args: []wire.Argument{{Function: 7}}}).Encode(1))
	case "answer nobody asked for":
		say(wire.JSON(wire.KindReturned, 5, []byte("1")))
	case "host's words":
		say(wire.JSON(wire.KindResolve, 1, []byte("1")))
	case "made-up failure":
		say((&wire.Fault{Failure: "ABORTED"}).Encode(wire.KindFailed, 0))
	case "unknown level":
		say(wire.Log(17, []byte("x")))
	case "too many calls":
		for i := range 2000 {
			say((&wire.Call{Function: 0}).Encode(uint32(i + 1)))
		}
	case "too much output":
		for {
			say(wire.Log(1, make([]byte, 1000)))
		}
	case "silence":
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	time.Sleep(time.Hour) // killed long before
}

func TestWorkerThatLiesOrDies(t *testing.T) {
	for how, kind := range map[string]js.Kind{
		"dies": js.Crashed, "killed": js.Crashed, "rubbish": js.Crashed, "endless frame": js.Crashed,
		"half a frame": js.Crashed, "not JSON": js.Crashed,
		"unknown function": js.Crashed, "negative function": js.Crashed, "same call twice": js.Crashed,
		"foreign handle":          js.Crashed,
		"answer nobody asked for": js.Crashed, "host's words": js.Crashed, "made-up failure": js.Crashed,
		"unknown level":  js.Crashed,
		"too many calls": js.Crashed, "too much output": js.Output, "silence": js.Timeout,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := &host{functions: map[string]function{"never": standard().functions["never"]}}
			limit := js.Limits{Time: 20 * time.Second}
			if how == "silence" {
				limit.Time = 200 * time.Millisecond
			}
			if how == "same call twice" || how == "too many calls" {
				limit.Time = 2 * time.Second // the calls that it made first are waited for
			}
			v, err := runWith(t, lying(t, how), js.Script{Source: "1"}, limit, h)
			if js.KindOf(err) != kind {
				t.Errorf("got %s, %v (%s); want %s", v, err, js.KindOf(err), kind)
			}
		})
	}
}

func TestWorkerThatDoesNotStart(t *testing.T) {
	_, err := run(t, lying(t, "other version"), "1", js.Limits{})
	if reeve.CodeOf(err) != reeve.Unavailable || js.KindOf(err) != "" {
		t.Errorf("another version: %v", err)
	}
	contains(t, reeve.AsError(err).Hint, "ServeWorker")
	_, err = run(t, newPool(t, js.Config{Binary: "/does/not/exist"}), "1", js.Limits{})
	if reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("no such program: %v", err)
	}
	p := newPool(t, js.Config{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = run(t, p, "1", js.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("a closed pool: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	p := newPool(t, js.Config{})
	for name, c := range map[string]struct {
		script js.Script
		limits js.Limits
		code   reeve.Code
	}{
		"language":   {js.Script{Language: "py"}, js.Limits{}, reeve.Validation},
		"memory":     {js.Script{}, js.Limits{Memory: 5}, reeve.Validation},
		"stack":      {js.Script{}, js.Limits{Stack: -1}, reeve.Validation},
		"input":      {js.Script{Input: []byte("{")}, js.Limits{}, reeve.Validation},
		"not UTF-8":  {js.Script{Source: "'\xff'"}, js.Limits{}, reeve.Validation},
		"too long":   {js.Script{Source: "/*" + string(make([]byte, 9<<20)) + "*/"}, js.Limits{}, reeve.TooLarge},
		"name":       {js.Script{Functions: []string{"a b"}}, js.Limits{}, reeve.Validation},
		"empty part": {js.Script{Functions: []string{"A."}}, js.Limits{}, reeve.Validation},
		"prototype":  {js.Script{Functions: []string{"A.__proto__"}}, js.Limits{}, reeve.Validation},
		"twice":      {js.Script{Functions: []string{"A.b", "A.b"}}, js.Limits{}, reeve.Validation},
		"both":       {js.Script{Functions: []string{"A", "A.b"}}, js.Limits{}, reeve.Validation},
	} {
		if _, err := p.Run(t.Context(), c.script, c.limits, standard()); reeve.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
