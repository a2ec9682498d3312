package reevetest_test

import (
	"testing"

	"reeve/reevetest"
)

func TestSmoke(t *testing.T) {
	h := reevetest.Start(t)
	a := h.Agent("coach")
	t.Logf("%+v", h.Call(a.ID, "write_file", map[string]any{"path": "/a.txt", "content": "hello"}, "Idempotency-Key",
		"k1"))
	t.Logf("%+v", h.Call(a.ID, "write_file", map[string]any{"path": "/a.txt", "content": "hello"}, "Idempotency-Key",
		"k1"))
	t.Logf("%+v", h.Call(a.ID, "read_file", map[string]any{"path": "/a.txt"}))
	t.Logf("%s", h.Do("POST", "/api/agents/coach/calls", map[string]any{"tool": "nope"}).Body)
	t.Logf("%s", h.Do("POST", "/api/agents/coach/calls",
		map[string]any{"tool": "read_file", "args": map[string]any{"x": 1}}).Body)
	t.Logf("%s", h.Do("GET", "/api/agents/coach/messages", nil).Body)
	t.Logf("%s", h.Do("GET", "/api/tools", nil).Body[:300])
	t.Logf("%s", h.Do("GET", "/api/doctor", nil).Body)
	t.Logf("%s", h.Do("GET", "/openapi.json", nil).Body[:300])
}
