package host_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// TestI10_ScriptTool defines a tool by a script, without rebuilding.
func TestI10_ScriptTool(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, quick(t))
	define := func(more call) reevetest.Reply {
		c := call{"id": "add", "kind": "script", "description": "Adds numbers.", "effect": "read", "timeout_ms": 2000,
			"parameters": call{"type": "object",
				"properties": call{"numbers": call{"type": "array", "items": call{"type": "number"}}},
				"required":   []string{"numbers"}},
			"spec": call{"source": "const sum = (l: number[]) => l.reduce((a, b) => a + b, 0);\nif " +
				"(input.numbers.length > 3) throw new Error('too many');\nif (!input.numbers.length) for (;;);\n({ " +
				"sum: sum(input.numbers) })", "language": "ts"}}
		for k, v := range more {
			c[k] = v
		}
		return h.Do("POST", "/api/tools", c)
	}
	for _, bad := range []struct {
		with call
		says string
	}{
		{call{"effect": "keyed"}, "/effect"},
		{call{"effect": "local"},
			`"message":"a script tool changes nothing, so its effect must be read","expected":"read"`},
		{call{"spec": call{"source": 7}}, `"path":"/spec/source","message":"is not text"`},
		{call{"spec": 7}, `"path":"/spec"`},
		{call{"spec": call{"source": "let x = ;"}}, "script.js:1"},
		{call{"spec": call{"source": " "}}, "/spec/source"},
		{call{"spec": call{"source": "1", "language": "py"}}, "/spec/language"},
		{call{"spec": call{"sauce": "1"}}, "/spec"},
	} {
		if r := define(bad.with); r.Status != 400 || !strings.Contains(string(r.Body), bad.says) ||
			strings.Contains(string(r.Body), "Go ") {
			t.Errorf("%v: %d %s", bad.with, r.Status, r.Body)
		}
	}
	if r := define(nil); r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	h.Agent("clerk", "add")
	equal(t, h.Call("clerk", "add", call{"numbers": []int{1, 2, 3}}).Content, `{"sum":6}`, "the sum")
	res := h.Call("clerk", "add", call{"numbers": []int{1, 2, 3, 4}})
	equal(t, spoken(res.IsError, res.Code, res.Message), "true TOOL_FAILED add.ts:2:41: Error: too many",
		"an error with the script's line")
	if res = h.Call("clerk", "add", call{"numbers": []int{}}); !res.IsError || res.Code != reeve.Timeout {
		t.Errorf("an endless loop: %+v", res)
	}
	if _, p, status := do(h, "clerk", call{"tool": "add", "args": call{"numbers": "x"}}); status != 400 ||
		p.Code != reeve.Validation {
		t.Errorf("bad input: %d %+v", status, p)
	}
}
