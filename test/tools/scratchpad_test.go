package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestO12_Scratchpad(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("aide", "scratchpad_read", "scratchpad_write", "scratchpad_clear")
	read := func(session string) []string {
		t.Helper()
		res, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "scratchpad_read", "args": kit.Object{},
			"session": session})
		if status != 200 {
			t.Fatalf("%d %+v", status, p)
		}
		return kit.DecodeResult[struct{ Items []string }](t, res).Items
	}
	put := func(session string, items any) (reeve.Result, int) {
		t.Helper()
		res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "scratchpad_write", "args": kit.Object{"items": items},
			"session": session})
		return res, status
	}
	if got := read("s1"); len(got) != 0 {
		t.Errorf("a new one holds %v", got)
	}
	long := strings.Repeat("é", 240) // characters, not bytes
	full := make([]string, 32)
	for i := range full {
		full[i] = fmt.Sprint(i, " ", strings.Repeat("x", 200))
	}
	full[0] = long
	if res, status := put("s1", full); status != 200 || res.IsError {
		t.Fatalf("%d %+v", status, res)
	}
	put("s1", []string{"a", "b"})
	put("s2", []string{"other"})
	if got := strings.Join(read("s1"), " "); got != "a b" {
		t.Errorf("it was not replaced: %s", got)
	}
	for name, bad := range map[string]any{"33 items": append(full, "x"), "241 characters": []string{long + "x"},
		"none": []string{}, "an empty one": []string{""}, "a number": 7,
		"an object": []any{kit.Object{"a": 1}}} {
		res, status := put("s1", bad)
		if status == 200 && !res.IsError {
			t.Errorf("%s was taken", name)
		}
		if got := strings.Join(read("s1"), " "); got != "a b" {
			t.Errorf("after %s: %s", name, got)
		}
	}
	if got := strings.Join(read("s2"), " "); got != "other" {
		t.Errorf("another session: %s", got)
	}
	kit.TryCall(h, a.ID, kit.Call{"tool": "scratchpad_clear", "args": kit.Object{}, "session": "s1"})
	if got := read("s1"); len(got) != 0 {
		t.Errorf("after clear: %v", got)
	}
}
