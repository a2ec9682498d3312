package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestG20_LongOutputIsCutAndStored(t *testing.T) {
	t.Parallel()
	const limit = 16 << 10
	text := map[string]string{
		"fits":      strings.Repeat("a", limit),
		"one more":  strings.Repeat("a", limit+1),
		"two bytes": "x" + strings.Repeat("é", limit),
		"four":      "xyz" + strings.Repeat("😀", limit),
		"three of":  "x" + strings.Repeat("😀", limit),
		"lines":     strings.Repeat("a line of text\n", 40_000),
		"controls":  strings.Repeat("a\t\r\n\"\\<>", 10_000),
	}
	var said string
	var fail bool
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) {
		if fail {
			return nil, errors.New(said)
		}
		return said, nil
	}))
	a := h.Agent("a", "say")
	for name, want := range text {
		for _, fail = range []bool{false, true} {
			said = want
			res := h.Call(a.ID, "say", nil)
			if res.IsError != fail || res.Size != len(want) || res.Truncated != (len(want) > limit) {
				t.Fatalf("%s, %v: size %d, truncated %v, error %v", name, fail, res.Size, res.Truncated, res.IsError)
			}
			if !res.Truncated {
				if res.Content != want || res.Hash != "" {
					t.Errorf("%s: %d bytes came back, hash %q", name, len(res.Content), res.Hash)
				}
				continue
			}
			shown, note, _ := strings.Cut(res.Content, "\n[output truncated")
			if !strings.HasPrefix(want, shown) || len(shown) > limit || len(shown) < limit-3 ||
				!utf8.ValidString(res.Content) {
				t.Errorf("%s, %v: %d bytes are shown", name, fail, len(shown))
			}
			if !strings.Contains(note, strconv.Itoa(len(want))) || !strings.Contains(note, res.Hash) ||
				len(note) > 300 {
				t.Errorf("%s: the note is %q", name, note)
			}
			if res.Hash != reeve.Hash([]byte(want)) {
				t.Errorf("%s: hash %s", name, res.Hash)
			}
			m := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID][1]
			if m.Content != res.Content || len(m.Metadata) > limit+2000 {
				t.Errorf("%s: the message has %d bytes and %d of metadata", name, len(m.Content), len(m.Metadata))
			}
			for _, n := range []int{4099, 12000} {
				if name == "controls" {
					n = min(n, 4099) // a slice is shown as JSON, in which these take twice the room
				}
				if got := readSlices(h, a.ID, res.Hash, n); got != want {
					t.Errorf("%s: slices of %d give %d bytes", name, n, len(got))
				}
			}
		}
	}
}

// The note at the end of a cut output tells its reader how to read the rest. Other workspaces cannot.
func TestG20_NoteOfACutOutputNamesTheRest(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("0123456789é", 3000)
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return want, nil }))
	a := h.Agent("a", "say") // has not been given output_read
	res := h.Call(a.ID, "say", nil)
	shown, note, _ := strings.Cut(res.Content, "\n[output truncated")
	_, args, _ := strings.Cut(note, "output_read ")
	rest := h.Call(a.ID, "output_read", json.RawMessage(strings.TrimSuffix(args, "]")))
	var s struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal([]byte(rest.Content), &s); err != nil || !strings.HasPrefix(want, shown+s.Content) ||
		s.Content == "" {
		t.Errorf("%q leads to %+v", note, rest)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	h.Want(http.StatusNotFound, nil, "GET", "/api/outputs/"+res.Hash, nil, "X-Workspace-Id", "other")
	var slice api.OutputSlice
	h.Want(http.StatusOK, &slice, "GET", "/api/outputs/"+res.Hash+"?offset=10&limit=20", nil)
	if slice.Content != want[10:30] || slice.Size != len(want) {
		t.Errorf("%+v", slice)
	}
}

// Slices of an output over REST, each read from where the last ended, contain every byte once: text in whole
// characters, anything else as data.
func TestG20_SlicesOverRESTAreExact(t *testing.T) {
	t.Parallel()
	var said string
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return said, nil }))
	h.Agent("a", "say")
	for name, c := range map[string]struct {
		said   string
		limits []int
		text   bool
	}{
		"euros":  {strings.Repeat("€", 1_000_000), []int{100_000, 1 << 20}, true},
		"mixed":  {strings.Repeat("aé€😀\x00", 2000), []int{4, 7, 4099, 100_000}, true},
		"tiny":   {strings.Repeat("😀", 5000), []int{1, 3}, false}, // no character fits
		"binary": {strings.Repeat("a\xff\xe2\x82", 6000), []int{5, 1001, 1 << 20}, false},
	} {
		said = c.said
		res := h.Call("a", "say", nil)
		for _, limit := range c.limits {
			var got strings.Builder
			offset, n := 0, 0
			for ; n == 0 || offset > 0; n++ {
				var s api.OutputSlice
				h.Want(http.StatusOK, &s, "GET", fmt.Sprintf("/api/outputs/%s?offset=%d&limit=%d", res.Hash, offset,
					limit), nil)
				if s.Offset != offset || s.Size != len(said) || len(s.Content)+len(s.Data) > limit ||
					c.text != (s.Data == nil) || (len(s.Data) > 0 && s.Content != "") {
					t.Fatalf("%s, %d from %d: %d and %d bytes of %d", name, limit, offset, len(s.Content), len(s.Data),
						s.Size)
				}
				got.WriteString(s.Content + string(s.Data))
				if offset = s.NextOffset; n > 1000 { // enough to see that it goes on
					got.WriteString(said[min(got.Len(), len(said)):])
					break
				}
			}
			if got.String() != said {
				t.Errorf("%s: %d slices of %d give %d bytes of %d", name, n, limit, got.Len(), len(said))
			}
		}
	}
	// The API may return a part of a character; the tool returns at least one whole character.
	said = strings.Repeat("€", 10_000)
	res := h.Call("a", "say", nil)
	var s api.OutputSlice
	h.Want(http.StatusOK, &s, "GET", "/api/outputs/"+res.Hash+"?offset=1&limit=10", nil)
	if string(s.Data) != said[1:11] || s.NextOffset != 11 {
		t.Errorf("%+v", s)
	}
	if res := h.Call("a", "output_read", map[string]any{"hash": res.Hash, "offset": 3, "limit": 1}); !strings.Contains(res.Content, `"content":"€"`) ||
		!strings.Contains(res.Content, `"next_offset":6`) {
		t.Errorf("%+v", res)
	}
}

// The cap holds for bytes that grow when they are encoded, and for values that are not text.
func TestG20_CapHoldsForAnyBytes(t *testing.T) {
	t.Parallel()
	var v any
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return v, nil }))
	a := h.Agent("a", "say")
	for _, v = range []any{strings.Repeat("\x00", 20_000), strings.Repeat("a\xff", 20_000),
		[]byte(strings.Repeat("\xfe", 20_000)), make([]int, 20_000),
		map[string]string{"k": strings.Repeat("é", 20_000)}} {
		res := h.Call(a.ID, "say", nil)
		shown, _, _ := strings.Cut(res.Content, "\n[output truncated")
		if !res.Truncated || len(shown) > 16<<10 || !utf8.ValidString(res.Content) ||
			strings.Contains(res.Content, "\x00") {
			t.Errorf("%T: %d bytes are shown, truncated %v", v, len(shown), res.Truncated)
		}
	}
}

// An approver can read the rest of a diff that was cut.
func TestG20_LongPreviewIsStored(t *testing.T) {
	t.Parallel()
	var g guardedTool
	x := g.tool()
	diff := strings.Repeat("+ a line\n", 40_000)
	x.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: diff, Base: "b"}, nil
	}
	h := reevetest.Start(t, x)
	a := h.Agent("a", "guarded")
	h.Call(a.ID, "guarded", nil)
	p := kit.GetInbox(h).Approvals[0].Preview
	if len(p) < 256<<10 || len(p) > 257<<10 || !strings.Contains(p, reeve.Hash([]byte(diff))) {
		t.Fatalf("the preview has %d bytes", len(p))
	}
	if got := readSlices(h, a.ID, reeve.Hash([]byte(diff)), 12000); got != diff {
		t.Errorf("%d bytes are kept of %d", len(got), len(diff))
	}
}
