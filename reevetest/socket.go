package reevetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"reeve"
)

// Timeout is the timeout for an expected frame.
const Timeout = 30 * time.Second

// Socket is a WebSocket client of a conversation.
type Socket struct {
	*websocket.Conn
	T       testing.TB
	LastSeq int64         // last sequence number received
	Frames  []reeve.Frame // all received frames, in order
}

// StartConversation creates a conversation with an agent.
func (h *Host) StartConversation(agent string) reeve.Conversation {
	h.T.Helper()
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations", map[string]any{"agent": agent})
	return c
}

// Connect connects to a conversation and reads the first frame. It resumes after a sequence number; a negative number
// means new frames only.
func (h *Host) Connect(conversation string, after int64) *Socket {
	h.T.Helper()
	url := h.URL + "/conversations/" + conversation
	if after >= 0 {
		url += fmt.Sprint("?after=", after)
	}
	s, res := h.Dial(url, "Authorization", "Bearer "+h.Token, "X-Workspace-Id", "default")
	if s == nil {
		h.T.Fatalf("%s: %s", url, res.Status)
	}
	f := s.ReadFrame()
	if f.Type != reeve.FrameConnected || f.ConversationID != conversation {
		h.T.Fatalf("first frame: %+v", f)
	}
	s.LastSeq = max(0, after)
	if after < 0 {
		s.LastSeq = f.Seq
	}
	return s
}

// Dial opens a WebSocket. Headers are pairs of name and value. It returns nil if the server refuses the connection.
func (h *Host) Dial(url string, headers ...string) (*Socket, *http.Response) {
	h.T.Helper()
	o := websocket.DialOptions{HTTPClient: h.client, HTTPHeader: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Sec-WebSocket-Protocol" {
			o.Subprotocols = append(o.Subprotocols, headers[i+1])
			continue
		}
		o.HTTPHeader.Add(headers[i], headers[i+1])
	}
	ctx, cancel := context.WithTimeout(h.T.Context(), Timeout)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, url, &o)
	if err != nil {
		if res == nil {
			h.T.Fatal(err)
		}
		return nil, res
	}
	conn.SetReadLimit(-1)
	h.T.Cleanup(func() { _ = conn.CloseNow() })
	return &Socket{Conn: conn, T: h.T}, res
}

// Send sends a frame. A string is sent unchanged, any other value as JSON.
func (s *Socket) Send(frame any) {
	s.T.Helper()
	text, ok := frame.(string)
	if !ok {
		b, err := json.Marshal(frame)
		if err != nil {
			s.T.Fatal(err)
		}
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(s.T.Context(), Timeout)
	defer cancel()
	if err := s.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		s.T.Fatal(err)
	}
}

// SendMessage sends a message.
func (s *Socket) SendMessage(content string) {
	s.T.Helper()
	s.Send(map[string]any{"type": "message", "content": content})
}

// ReadFrame reads a frame and checks that sequence numbers increase.
func (s *Socket) ReadFrame() reeve.Frame {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), Timeout)
	defer cancel()
	_, b, err := s.Read(ctx)
	if err != nil {
		s.T.Fatalf("no frame came: %v", err)
	}
	var f reeve.Frame
	if err := json.Unmarshal(b, &f); err != nil {
		s.T.Fatalf("%s: %v", b, err)
	}
	if f.Type == reeve.FrameConnected || f.Type == reeve.FramePong || f.Seq == 0 {
		return f
	}
	if f.Seq <= s.LastSeq {
		s.T.Fatalf("frame %d came after %d: %s", f.Seq, s.LastSeq, b)
	}
	s.LastSeq = f.Seq
	s.Frames = append(s.Frames, f)
	return f
}

// ReadUntil reads frames until one matches, and returns it.
func (s *Socket) ReadUntil(matches func(reeve.Frame) bool) reeve.Frame {
	s.T.Helper()
	for {
		if f := s.ReadFrame(); matches(f) {
			return f
		}
	}
}

// ReadTurns reads frames until n turns are complete, and returns the last frame.
func (s *Socket) ReadTurns(turns int) reeve.Frame {
	s.T.Helper()
	return s.ReadUntil(func(f reeve.Frame) bool {
		if f.Type == reeve.FrameComplete {
			turns--
		}
		return turns == 0
	})
}

// TurnText joins the received tokens of a turn's answer, without reasoning and discarded tokens.
func (s *Socket) TurnText(turn string) (text string) {
	for _, f := range s.Frames {
		switch {
		case f.TurnID != turn || f.Type != reeve.FrameToken || f.Reasoning:
		case f.Discard:
			text = ""
		default:
			text += f.Text
		}
	}
	return text
}

// ReadUntilClosed reads frames until the connection ends, and returns its close code.
func (s *Socket) ReadUntilClosed() websocket.StatusCode {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), Timeout)
	defer cancel()
	for {
		if _, _, err := s.Read(ctx); err != nil {
			if ctx.Err() != nil {
				s.T.Fatal("the connection did not end")
			}
			return websocket.CloseStatus(err)
		}
	}
}
