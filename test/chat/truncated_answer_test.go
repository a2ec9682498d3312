package chat_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/test/kit"
)

// A turn whose answer was truncated is complete and says so, to readers and to listeners.
func TestW01_TruncatedAnswerCompletesItsTurn(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		reason := ""
		h := kit.RunWithProvider(t, cfg, func(w io.Writer) {
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"Once upon a"}}]}`)
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}`, reason)
		})
		c := h.StartConversation("bot")
		s := h.Connect(c.ID, 0)
		for i, want := range []struct {
			reason string
			cut    reeve.CutReason
		}{{"stop", ""}, {"length", reeve.CutLength}, {"content_filter", reeve.CutRefused}} {
			reason = want.reason
			turn := kit.StartTurn(h, c.ID, "tell")
			s.ReadTurns(1)
			d := kit.GetTurn(h, turn.ID)
			var told reeve.Frame
			for _, f := range s.Frames {
				if f.Type == reeve.FrameMessage && f.TurnID == turn.ID {
					told = f
				}
			}
			if d.State != reeve.RunCompleted || d.Code != "" || d.Output != "Once upon a" ||
				d.Issues != (reeve.TurnIssues{AnswerCut: want.cut}) || told.Cut != want.cut || told.Text != d.Output {
				t.Errorf("%d, %s: %+v, told %+v", i, want.reason, d, told)
			}
		}
	})
}

// An answer that was truncated before any text completes its turn too. One that the provider's filter ended does not.
func TestW01_AnswerTruncatedBeforeItsFirstText(t *testing.T) {
	t.Parallel()
	reason := ""
	h := kit.RunWithProvider(t, kit.FastConfig(t), func(w io.Writer) {
		if reason == "content_filter" {
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"list_files","arguments":"{\"path\":\"/\"}"}}]}}]}`)
		}
		kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}`, reason)
	})
	for finish, want := range map[string]struct {
		cut reeve.CutReason
		why string
	}{"length": {reeve.CutLength, "max_output_tokens"}, "content_filter": {reeve.CutRefused, "content_filter"}} {
		reason = finish
		d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "tell").ID)
		if d.State != reeve.RunCompleted || d.Code != "" || d.Output != "" ||
			d.Issues != (reeve.TurnIssues{AnswerCut: want.cut}) || len(d.Messages) != 2 {
			t.Errorf("%s: %+v", finish, d)
		}
		var r struct {
			Status  string
			Details struct{ Reason string } `json:"incomplete_details"`
		}
		if h.Want(http.StatusOK, &r, "POST", "/v1/responses", kit.Object{"model": "bot", "input": "tell"}); r.Status != "incomplete" || r.Details.Reason != want.why {
			t.Errorf("%s: %+v", finish, r)
		}
		if stream := string(h.Do("POST", "/v1/responses", kit.Object{"model": "bot", "input": "tell", "stream": true}).
			Body); !strings.Contains(stream, "event: response.incomplete\n") {
			t.Errorf("%s: %s", finish, stream)
		}
		var c struct {
			Choices []struct {
				Finish string `json:"finish_reason"`
			}
		}
		if h.Want(http.StatusOK, &c, "POST", "/v1/chat/completions",
			kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "tell"}}}); c.Choices[0].Finish != finish {
			t.Errorf("%s: %+v", finish, c)
		}
	}
}

// A call that was truncated before its arguments is not made without them. The model is told and continues.
func TestW01_TruncatedCallIsNotMade(t *testing.T) {
	t.Parallel()
	asked := 0
	h := kit.RunWithProvider(t, kit.FastConfig(t), func(w io.Writer) {
		if asked++; asked == 1 {
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"list_files","arguments":""}}]},"finish_reason":"length"}]}`)
			return
		}
		kit.WriteChunk(w, `{"id":"b","choices":[{"index":0,"delta":{"content":"I was cut off."},"finish_reason":"stop"}]}`)
	})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "look").ID)
	if d.State != reeve.RunCompleted || d.Output != "I was cut off." || d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d)
	}
}
