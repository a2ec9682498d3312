package memory_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// memoryTools are the tools of the pack.
var memoryTools = []any{"memory_save", "memory_search", "memory_update", "memory_delete", "memory_restore",
	"memory_merge", "memory_unmerge"}

// runOnBothDatabases starts a host on each database, with an agent bot that has the memory tools.
func runOnBothDatabases(t *testing.T, f func(t *testing.T, h *reevetest.Host)) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", nil, memoryTools...)
		f(t, h)
	})
}

// written is the result of a tool that changes notes.
type written struct {
	NoteID    string `json:"note_id"`
	Duplicate bool   `json:"duplicate"`
}

// searched is the result of memory_search.
type searched struct {
	Results []struct {
		Text    string   `json:"text"`
		Source  string   `json:"source"`
		Score   float64  `json:"score"`
		NoteID  string   `json:"note_id"`
		Tags    []string `json:"tags"`
		Origin  string   `json:"origin"`
		Matched []string `json:"matched"`
	} `json:"results"`
	Hint string `json:"hint"`
}

// call calls a tool as bot. A refusal is a result with its code.
func call(h *reevetest.Host, tool string, args kit.Object, headers ...string) reeve.Result {
	h.T.Helper()
	res, p, _ := kit.TryCall(h, "bot", kit.Call{"tool": tool, "args": args}, headers...)
	if p.Code != "" { // the gate refused it
		return reeve.Result{Code: p.Code, Message: p.Detail, IsError: true}
	}
	return res
}

// write calls a tool that changes notes, which must succeed.
func write(h *reevetest.Host, tool string, args kit.Object, headers ...string) written {
	h.T.Helper()
	return kit.DecodeResult[written](h.T, call(h, tool, args, headers...))
}

// search calls memory_search.
func search(h *reevetest.Host, args kit.Object, headers ...string) searched {
	h.T.Helper()
	return kit.DecodeResult[searched](h.T, call(h, "memory_search", args, headers...))
}

// texts returns the texts that a search finds.
func texts(h *reevetest.Host, query string, headers ...string) (out []string) {
	h.T.Helper()
	for _, r := range search(h, kit.Object{"query": query}, headers...).Results {
		out = append(out, r.Text)
	}
	return out
}

// waitForVectors waits until a note is found by its meaning.
func waitForVectors(h *reevetest.Host, query, note string) {
	h.T.Helper()
	kit.Eventually(h.T, "note "+note+" is found by meaning", func() bool {
		var got api.NoteSearch
		h.Want(http.StatusOK, &got, "GET", "/api/notes/search?q="+url.QueryEscape(query), nil)
		return slices.ContainsFunc(got.Notes, func(n reeve.NoteHit) bool {
			return n.ID == note && slices.Contains(n.Matched, "meaning")
		})
	})
}
