package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"
)

func read(t *testing.T, b []byte) Frame {
	t.Helper()
	f, err := ReadFrame(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func same[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	s := Start{Name: "a.ts", Language: "ts", Source: "1", Functions: []string{"A.b", "c"}, Input: []byte(`{}`), Now: -5,
		Seed: 1 << 62, Memory: 1, Stack: 2,
		Time: 3 * time.Hour, Output: 4, Calls: 5}
	gotStart, err := DecodeStart(read(t, s.Encode()))
	same(t, gotStart, err, s)
	c := Call{Function: 3, Args: []Argument{{JSON: []byte(`[1]`)}, {Function: 9}, {JSON: []byte{}}}}
	gotCall, err := DecodeCall(read(t, c.Encode(7)))
	same(t, gotCall, err, c)
	i := Invoke{Function: 2, Args: []Argument{{JSON: []byte(`"x"`)}}}
	gotInvoke, err := DecodeInvoke(read(t, i.Encode(7)))
	same(t, gotInvoke, err, i)
	r := Reject{Invocation: 4, Message: "m", Code: "C", Hint: "h"}
	gotReject, err := DecodeReject(read(t, r.Encode(7)))
	same(t, gotReject, err, r)
	f := Fault{Failure: Thrown, Name: "E", Message: "m", Stack: []Place{{"f", 1, 2}, {"", 3, 4}}, Call: 8}
	gotFault, err := DecodeFault(read(t, f.Encode(KindThrew, 7)))
	same(t, gotFault, err, f)
	gotJSON, err := DecodeJSON(read(t, JSON(KindDone, 0, []byte(`{"a":1}`))))
	same(t, string(gotJSON), err, `{"a":1}`)
	if got := read(t, Stop()); got.Kind != KindStop {
		t.Errorf("got %+v", got)
	}
}

func TestReadFrameRejectsInvalidFrames(t *testing.T) {
	for name, b := range map[string][]byte{
		"too short": {1, 0, 0, 0, 1, 0, 0, 0, 0}, "too long": {1, 0, 0, 1, 1, 0, 0, 0, 0},
		"no kind": {5, 0, 0, 0, 0, 0, 0, 0, 0}, "unknown kind": {5, 0, 0, 0, 200, 0, 0, 0, 0},
	} {
		if _, err := ReadFrame(bytes.NewReader(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := JSON(KindDone, 0, bytes.Repeat([]byte("1"), 100))
	for n := 1; n < len(whole); n++ {
		if _, err := ReadFrame(bytes.NewReader(whole[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if _, err := ReadFrame(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
	// ReadFrame allocates as bytes arrive, so a large length alone costs nothing.
	promise := []byte{0, 0, 0, 1, byte(KindDone), 0, 0, 0, 0}
	if n := testing.AllocsPerRun(10, func() { _, _ = ReadFrame(bytes.NewReader(promise)) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFrame decodes random bytes as each kind of message. A message that decodes must survive a round trip.
func FuzzFrame(f *testing.F) {
	f.Add((&Start{Name: "a", Functions: []string{"b"}}).Encode())
	f.Add((&Call{Function: 1, Args: []Argument{{JSON: []byte(`{"a":[1]}`)}, {Function: 2}}}).Encode(1))
	f.Add((&Fault{Failure: Stack, Stack: []Place{{"f", 1, 1}}}).Encode(KindFailed, 0))
	f.Add((&Reject{Message: "m"}).Encode(3))
	f.Add(JSON(KindDone, 0, []byte(`null`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ReadFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		if m, err := DecodeStart(frame); err == nil {
			again, err := DecodeStart(read(t, m.Encode()))
			same(t, again, err, m)
		}
		if m, err := DecodeCall(frame); err == nil {
			again, err := DecodeCall(read(t, m.Encode(1)))
			same(t, again, err, m)
		}
		if m, err := DecodeInvoke(frame); err == nil {
			again, err := DecodeInvoke(read(t, m.Encode(1)))
			same(t, again, err, m)
		}
		if m, err := DecodeReject(frame); err == nil {
			again, err := DecodeReject(read(t, m.Encode(1)))
			same(t, again, err, m)
		}
		if m, err := DecodeFault(frame); err == nil {
			again, err := DecodeFault(read(t, m.Encode(KindFailed, 1)))
			same(t, again, err, m)
		}
		if m, err := DecodeJSON(frame); err == nil && len(m) > 0 {
			again, err := DecodeJSON(read(t, JSON(KindDone, 0, m)))
			same(t, again, err, m)
		}
	})
}
