package automation_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A script defines a tool without rebuilding the server.
func TestI10_ScriptTool(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	define := func(more kit.Call) reevetest.Reply {
		c := kit.Call{"id": "add", "kind": "script", "description": "Adds numbers.", "effect": "read",
			"timeout_ms": 2000,
			"parameters": kit.Call{"type": "object",
				"properties": kit.Call{"numbers": kit.Call{"type": "array", "items": kit.Call{"type": "number"}}},
				"required":   []string{"numbers"}},
			"spec": kit.Call{"source": "const sum = (l: number[]) => l.reduce((a, b) => a + b, 0);\nif " +
				"(input.numbers.length > 3) throw new Error('too many');\nif (!input.numbers.length) for (;;);\n({ " +
				"sum: sum(input.numbers) })", "language": "ts"}}
		for k, v := range more {
			c[k] = v
		}
		return h.Do("POST", "/api/tools", c)
	}
	for _, bad := range []struct {
		with kit.Call
		says string
	}{
		{kit.Call{"effect": "keyed"}, "/effect"},
		{kit.Call{"effect": "local"},
			`"message":"a script tool changes nothing, so its effect must be read","expected":"read"`},
		{kit.Call{"spec": kit.Call{"source": 7}}, `"path":"/spec/source","message":"is not text"`},
		{kit.Call{"spec": 7}, `"path":"/spec"`},
		{kit.Call{"spec": kit.Call{"source": "let x = ;"}}, "script.js:1"},
		{kit.Call{"spec": kit.Call{"source": " "}}, "/spec/source"},
		{kit.Call{"spec": kit.Call{"source": "1", "language": "py"}}, "/spec/language"},
		{kit.Call{"spec": kit.Call{"sauce": "1"}}, "/spec"},
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
	kit.Equal(t, h.Call("clerk", "add", kit.Call{"numbers": []int{1, 2, 3}}).Content, `{"sum":6}`, "the sum")
	res := h.Call("clerk", "add", kit.Call{"numbers": []int{1, 2, 3, 4}})
	kit.Equal(t, kit.JoinValues(res.IsError, res.Code, res.Message), "true TOOL_FAILED add.ts:2:41: Error: too many",
		"an error with the script's line")
	if res = h.Call("clerk", "add", kit.Call{"numbers": []int{}}); !res.IsError || res.Code != reeve.Timeout {
		t.Errorf("an endless loop: %+v", res)
	}
	if _, p, status := kit.TryCall(h, "clerk", kit.Call{"tool": "add", "args": kit.Call{"numbers": "x"}}); status != 400 ||
		p.Code != reeve.Validation {
		t.Errorf("bad input: %d %+v", status, p)
	}
}
