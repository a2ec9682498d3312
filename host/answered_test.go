package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A 2xx says that it happened. Whatever is wrong with the rest of the answer, the operation is committed, is sent once,
// and nobody is asked about it.
func TestG12_WhatWasAnsweredHasHappened(t *testing.T) {
	t.Parallel()
	answer := map[string]func(out http.ResponseWriter){
		"elsewhere": func(out http.ResponseWriter) {
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, `{"id":"ord-17"}`)
		},
		"text":   func(out http.ResponseWriter) { fmt.Fprint(out, "ord-17, thank you") },
		"empty":  func(out http.ResponseWriter) { out.WriteHeader(http.StatusNoContent) },
		"binary": func(out http.ResponseWriter) { _, _ = out.Write([]byte("\xff\x00\xfe")) },
		"long":   func(out http.ResponseWriter) { fmt.Fprint(out, "ord-17"+strings.Repeat("x", 2000)) },
		"cut": func(out http.ResponseWriter) {
			out.Header().Set("Content-Length", "100")
			fmt.Fprint(out, `{"id":"ord-17"`)
		},
	}
	w := kit.NewWitness(t)
	w.After = func(_ int, out http.ResponseWriter, r *http.Request) bool {
		answer[r.URL.Query().Get("answer")](out)
		return true
	}
	h := reevetest.StartWith(t, kit.FastConfig(t))
	h.Agent("a")
	calls := 0
	for name := range answer {
		for _, effect := range []reeve.Effect{reeve.Unsafe, reeve.Keyed, reeve.Verifiable} {
			id := string(effect) + "_" + name
			spec := kit.Object{"method": "POST", "url": w.URL + "/send?answer=" + name, "result": "/data/nope",
				"max_response_bytes": 1000}
			if effect == reeve.Verifiable {
				spec["verify"] = kit.Object{"url": w.URL + "/{operation_id}"}
			}
			kit.DefineHTTPTool(h, id, effect, spec,
				kit.Object{"retry": kit.Object{"attempts": 3, "delay_ms": 1, "max_ms": 1},
					"timeout_ms": 60_000})
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", kit.Object{"tool_id": id})
			res := h.Call("a", id, nil)
			calls++
			if res.IsError || res.State != reeve.Committed ||
				!strings.Contains(res.Content, "the request succeeded, but") {
				t.Errorf("%s: %+v", id, res)
			}
			if name != "empty" && name != "binary" && !strings.Contains(res.Content, "ord-17") {
				t.Errorf("%s: what it said is not shown: %s", id, res.Content)
			}
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("%s: %+v", id, op)
			}
		}
	}
	if _, err := h.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, sent := w.Count(); done != calls || sent != calls {
		t.Errorf("%d calls: %d effects, %d requests", calls, done, sent)
	}
	if list := kit.GetInbox(h).Unknown; len(list) != 0 {
		t.Errorf("a person is asked about %+v", list)
	}
}
