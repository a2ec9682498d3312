package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// readSlices reads a kept output through the tool, n bytes at a time.
func readSlices(h *reevetest.Host, agent, hash string, n int) string {
	h.T.Helper()
	var all strings.Builder
	for offset := 0; ; {
		res := h.Call(agent, "output_read", map[string]any{"hash": hash, "offset": offset, "limit": n})
		var s struct {
			Content    string `json:"content"`
			NextOffset int    `json:"next_offset"`
			Remaining  int    `json:"remaining"`
		}
		if err := json.Unmarshal([]byte(res.Content), &s); err != nil || res.IsError {
			h.T.Fatalf("%+v: %v", res, err)
		}
		all.WriteString(s.Content)
		if offset = s.NextOffset; s.Remaining == 0 {
			return all.String()
		}
	}
}

func TestG20_LongOutputIsCutAndKept(t *testing.T) {
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

// Whoever is shown a note can follow it, and nobody else's workspace can.
func TestG20_TheNoteLeadsToTheRest(t *testing.T) {
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

// Whoever reads an output over REST in slices, and goes on from where each says, has every byte of it once: text in
// whole characters, anything else as data.
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
	// One that begins within a character is given as it is, and the tool gives a character at least.
	said = strings.Repeat("€", 10_000)
	res := h.Call("a", "say", nil)
	var s api.OutputSlice
	h.Want(http.StatusOK, &s, "GET", "/api/outputs/"+res.Hash+"?offset=1&limit=10", nil)
	if string(s.Data) != said[1:11] || s.NextOffset != 11 {
		t.Errorf("%+v", s)
	}
	if res := h.Call("a", "output_read", map[string]any{"hash": res.Hash, "offset": 3,
		"limit": 1}); !strings.Contains(res.Content, `"content":"€"`) ||
		!strings.Contains(res.Content, `"next_offset":6`) {
		t.Errorf("%+v", res)
	}
}

// The cap holds for bytes that take more room once they can be shown, and for values that are not text.
func TestG20_TheCapHoldsForAnything(t *testing.T) {
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

// An approver whose diff was cut can read the rest of it too.
func TestG20_ALongPreviewIsKeptToo(t *testing.T) {
	t.Parallel()
	var g guarded
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

// Secrets are taken out of results and errors before they are cut, kept or sent; what people need is not.
func TestG21_SecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	const stored = `my "stored" s3cret/+`
	shapes := []string{stored, madeKey("sk-"+"proj-", 60), madeKey("sk_"+"live_", 30), madeKey("AI"+"za", 35)}
	var said any
	var fail bool
	speak := func() (any, error) {
		if fail {
			return nil, &reeve.Error{Code: reeve.ToolFailed, Message: fmt.Sprint(said), Hint: fmt.Sprint(said),
				Fields: []reeve.Field{{Path: fmt.Sprint(said), Message: fmt.Sprint(said)}}}
		}
		return said, nil
	}
	loud := kit.Tool("loud", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) { return speak() })
	loud.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: fmt.Sprint(said)}, nil
	}
	checked := kit.Tool("checked", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		return nil,
			nil
	})
	checked.Check = func(context.Context, *reeve.Invocation) error { return reeve.Errorf(reeve.Denied, "%v", said) }
	panics := kit.Tool("panics", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { panic(said) })
	var log kit.LogBuffer
	cfg := kit.FastConfig(t)
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	h := reevetest.StartWith(t, cfg, kit.ToolReturning("say", speak), loud, checked, panics)
	h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/S", map[string]any{"value": stored})
	a := h.Agent("a", "say", "loud", "checked", "panics")
	shapes = append(shapes, h.Token)
	for _, secret := range shapes {
		for _, said = range []any{
			"before " + secret + " after",
			map[string]any{"nested": []string{"x", secret}},
			"key: " + secret,
			// across the cap
			strings.Repeat("x", 16<<10-len(secret)/2-1) + " " + secret + " " + strings.Repeat("y", 100),
			// beyond the cap, in what is kept
			strings.Repeat("x ", 16<<10) + secret,
		} {
			for _, fail = range []bool{false, true} {
				for _, c := range []kit.Call{{"tool": "say"}, {"tool": "loud"}, {"tool": "loud", "preview_only": true},
					{"tool": "checked"}, {"tool": "panics"}} {
					r := h.Do("POST", "/api/agents/a/calls", c)
					lookFor(t, secret, "the answer to "+fmt.Sprint(c), string(r.Body))
					var res reeve.Result
					if r.Status == http.StatusOK {
						r.Decode(t, &res)
					}
					if res.Hash != "" {
						lookFor(t, secret, "what is kept",
							string(h.Do("GET", "/api/outputs/"+res.Hash+"?limit=1048576", nil).Body))
					}
				}
			}
		}
		for _, m := range kit.ListThread(h, a.ID, "") {
			lookFor(t, secret, "a message", m.Content+string(m.Metadata))
		}
		lookFor(t, secret, "the operations", string(h.Do("GET", "/api/operations?limit=500", nil).Body))
	}
	if !strings.Contains(log.String(), "tool crashed") {
		t.Error("the log says nothing of the crashes")
	}
	for _, secret := range shapes {
		lookFor(t, secret, "the log", log.String())
	}
}

// lookFor fails if a secret, or more than half of it, is in a text.
func lookFor(t *testing.T, secret, where, text string) {
	t.Helper()
	esc, _ := json.Marshal(secret)
	half := secret[:len(secret)/2+1]
	if strings.HasPrefix(secret, `my `) {
		half = secret[:12]
	}
	for _, s := range []string{secret, strings.Trim(string(esc), `"`), half} {
		if i := strings.Index(text, s); i >= 0 {
			t.Fatalf("%q is in %s: …%s…", s, where, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}

func TestG21_WhatPeopleNeedStays(t *testing.T) {
	t.Parallel()
	var said string
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return said, nil }))
	a := h.Agent("a", "say", "file_write", "file_list")
	first := h.Call(a.ID, "say", nil)
	wrote := h.Call(a.ID, "file_write", map[string]any{"path": "/shared/Reports-2026/Q3-Final-Numbers-V2.txt",
		"content": "x"})
	for _, said = range []string{
		first.CallID + " " + wrote.OperationID + " " + a.ID,
		reeve.OperationKey("default", a.ID, "k"),
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)",
		"sha256:" + reeve.Hash([]byte("x")),
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8",
		"/shared/Reports-2026/Q3-Final-Numbers-V2.txt and /tmp/build-output/Release2/App.Main.Http2Client.dll",
		"The secret is that every token counts. Password policy: ask the admin.",
		"for token := range tokens { if err := parse(token); err != nil { return err } }",
		`{"max_tokens":4096,"token_type":"bearer","name":"API key rotation"}`,
	} {
		if res := h.Call(a.ID, "say", nil); res.Content != said {
			t.Errorf("%q became %q", said, res.Content)
		}
	}
	if res := h.Call(a.ID, "file_list", map[string]any{"path": "/shared/Reports-2026"}); !strings.Contains(res.Content,
		"Q3-Final-Numbers-V2.txt") {
		t.Errorf("%q", res.Content)
	}
}

// A handler that takes too long is cut off, is told so, and the next call works.
func TestG18_ATimeoutEndsTheHandlerAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed, reeve.Unsafe} {
		for _, kind := range []string{"heeds", "ignores"} {
			t.Run(string(effect)+" "+kind, func(t *testing.T) {
				ended, never := make(chan error, 1), make(chan struct{})
				x := kit.Tool("x", effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
					if string(inv.Args) != "{}" {
						return "quick", nil
					}
					<-ctx.Done()
					ended <- ctx.Err()
					if kind == "ignores" {
						<-never
					}
					return nil, ctx.Err()
				})
				x.TimeoutMS = 30
				h := reevetest.Start(t, x)
				t.Cleanup(func() { close(never) })
				a := h.Agent("a", "x")
				res := h.Call(a.ID, "x", nil)
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the handler was told %v", err)
				}
				want := map[reeve.Effect]reeve.State{reeve.Read: "", reeve.Local: reeve.Failed,
					reeve.Keyed: reeve.Dispatched, reeve.Unsafe: reeve.Unknown}[effect]
				if res.State != want {
					t.Errorf("%+v", res)
				}
				if effect == reeve.Read || effect == reeve.Local {
					if res.Code != reeve.Timeout || !strings.Contains(res.Message, "did not finish within 30ms") {
						t.Errorf("the result says %+v", res)
					}
				} else if op := kit.GetOperation(h, res.OperationID); !strings.Contains(op.Message,
					"did not finish within 30ms") {
					t.Errorf("the operation says %+v", op)
				}
				if res := h.Call(a.ID, "x", map[string]any{"n": 1}); res.Content != "quick" {
					t.Errorf("the next call: %+v", res)
				}
			})
		}
	}
}

// A tool that runs a program and its children under its context leaves none of them behind.
func TestG18_TheProcessTreeIsGone(t *testing.T) {
	t.Parallel()
	pids := make(chan int, 2)
	x := kit.Tool("x", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo $!; wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		var child int
		if _, err := fmt.Fscan(out, &child); err != nil {
			return nil, err
		}
		pids <- cmd.Process.Pid
		pids <- child
		return nil, cmd.Wait()
	})
	x.TimeoutMS = 1000
	h := reevetest.Start(t, x)
	a := h.Agent("a", "x")
	if res := h.Call(a.ID, "x", nil); res.Code != reeve.Timeout {
		t.Errorf("%+v", res)
	}
	for range 2 {
		pid := <-pids
		kit.Eventually(t, "process "+strconv.Itoa(pid)+" to be gone", func() bool {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}
