package memory_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Wrong arguments, unknown notes and notes of other people are refused with a code, by every tool and route.
func TestN01_BadInputIsRefused(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		hers := write(h, "memory_save", kit.Object{"content": "Ann plans a party"}, ann...).NoteID
		long, many := strings.Repeat("ä", 4001), []string{}
		for i := range 17 {
			many = append(many, fmt.Sprint("t", i))
		}
		for tool, list := range map[string][]kit.Object{
			"memory_update": {{"note_id": hers, "content": "x"}, {"note_id": "note_none", "content": "x"}},
			"memory_delete": {{"note_id": hers}, {"note_id": ""}, {"note_id": "note_none"}},
			"memory_merge":  {{"note_ids": []string{hers}, "content": "x"}, {"note_ids": []string{"note_none"}, "content": "x"}},
		} {
			for _, args := range list {
				if res := call(h, tool, args, ben...); res.Code != reeve.NotFound {
					t.Errorf("%s %v: %+v", tool, args, res)
				}
			}
		}
		for tool, list := range map[string][]kit.Object{
			"memory_update": {{"note_id": hers, "content": long}, {"note_id": hers, "content": "x", "tags": many}},
			"memory_merge": {{"note_ids": []string{hers, hers}, "content": "x"}, {"note_ids": []string{}, "content": "x"},
				{"note_ids": []string{hers}, "content": long}},
			"memory_search": {{"query": ""}, {"query": "x", "top_k": 21}, {"query": "x", "tags": []string{strings.Repeat("t", 65)}}},
		} {
			for _, args := range list {
				if res := call(h, tool, args, ann...); res.Code != reeve.Validation {
					t.Errorf("%s: %+v", tool, res)
				}
			}
		}
		for path, body := range map[string]any{
			"/api/notes":        kit.Object{"content": long},
			"/api/notes/import": kit.Object{"notes": []kit.Object{}},
		} {
			if r := h.Do("POST", path, body, ann...); r.Status != http.StatusUnprocessableEntity &&
				r.Status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", path, r.Status, r.Body)
			}
		}
		if r := h.Do("GET", "/api/notes/export?cursor=x", nil, ann...); r.Status < 400 || r.Status >= 500 {
			t.Errorf("a bad cursor: %d", r.Status)
		}
		if got := kit.ListNotes(h, "", ann...); !slices.Equal(got, []string{"Ann plans a party"}) {
			t.Errorf("Ann has %v", got)
		}
	})
}

// If the encoder fails or answers nonsense, notes are saved, found and consolidated by words, and the result says why.
func TestN03_SearchGoesOnWithWords(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"fails":   func(w http.ResponseWriter) { http.Error(w, "broken", http.StatusInternalServerError) },
		"no JSON": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "hello") },
		"no vectors": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"data": [{"index": 0, "embedding": []}]}`)
		},
	}
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		for what, answer := range answers {
			if cfg.Database != "" && what != "fails" {
				continue // one kind is enough here: the database has one owner
			}
			t.Run(what, func(t *testing.T) {
				cfg := cfg
				cfg.Dir = t.TempDir()
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
				t.Cleanup(srv.Close)
				cfg.HTTPAllow = []string{strings.TrimPrefix(srv.URL, "http://")}
				cfg.Memory = host.MemoryConfig{Encoder: "openai", URL: srv.URL + "/v1", Model: "m"}
				h := reevetest.Run(t, cfg)
				kit.NewPersona(h, "bot", nil, memoryTools...)
				newNote(h, "The printer needs toner")
				newNote(h, "Printer needs toner")
				got := search(h, kit.Object{"query": "printer toner"})
				if len(got.Results) != 2 || !strings.Contains(got.Hint, "by words only") {
					t.Errorf("got %+v", got)
				}
				var found api.NoteSearch
				h.Want(http.StatusOK, &found, "GET", "/api/notes/search?q=toner", nil)
				if len(found.Notes) != 2 || found.WordsOnly == "" {
					t.Errorf("got %+v", found)
				}
				if c := consolidate(h); len(c.Changes) != 1 {
					t.Errorf("got %+v", c)
				}
			})
		}
	})
}
