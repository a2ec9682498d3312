package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

const (
	eventType = "text/event-stream"
	heartbeat = 15 * time.Second // between signs of life; also how soon one who may no longer listen is cut off
	stuck     = 30 * time.Second // a client that takes nothing for that long is gone
)

// following is a client that follows a conversation, or one turn of it, as server-sent events.
type following struct {
	reader       *chat.Reader
	who          reeve.Principal
	conversation string
	turn         string // only this one, to its end. Default: all
	follow       bool   // wait for more
	translate    func(out *bytes.Buffer, l chat.Line) error
	greet, end   func(out *bytes.Buffer)
	gone         func() // the client went away before the end
}

func (s *server) streamEvents(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	After  int64  `query:"after" minimum:"-1" default:"-1" doc:"The last seq that you have; 0 means from the beginning, -1 from now on"`
	Last   string `header:"Last-Event-ID" maxLength:"32" doc:"The same, as browsers send it when they come back"`
	Follow bool   `query:"follow" default:"true" doc:"false: give what is there and end"`
}) (*huma.StreamResponse, error) {
	after := in.After
	if in.Last != "" {
		n, err := strconv.ParseInt(in.Last, 10, 64)
		if err != nil || n < 0 {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "Last-Event-ID is not one this server gave",
				Fields: []reeve.Field{{Path: "header/Last-Event-ID", Message: "is not a number", Expected: "the id of the last event that you have"}}}
		}
		after = n
	}
	if err := s.listens(ctx, who, in.ID); err != nil {
		return nil, err
	}
	reader, err := s.Desk.Hub.Subscribe(ctx, in.ID, after)
	if err != nil {
		return nil, err
	}
	f := &following{reader: reader, who: who, conversation: in.ID, follow: in.Follow}
	f.greet = func(out *bytes.Buffer) {
		at, last := after, reader.Last()
		if at < 0 {
			at = last
		}
		event(out, 0, string(reeve.FrameConnected), reeve.Frame{Type: reeve.FrameConnected, ConversationID: in.ID, Seq: at, LastSeq: last})
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { s.send(c, http.StatusOK, f) }}, nil
}

// listens tells whether somebody may hear a conversation.
func (s *server) listens(ctx context.Context, who reeve.Principal, conversation string) error {
	return s.DB.View(ctx, func(snap *store.Snap) error {
		_, err := see(ctx, snap, who, conversation)
		return err
	})
}

// stillListens is listens for one who began to a while ago: the token may be worthless by now.
func (s *server) stillListens(ctx context.Context, who reeve.Principal, conversation string) error {
	return s.DB.View(ctx, func(snap *store.Snap) error {
		if err := validToken(ctx, snap, who); err != nil {
			return err
		}
		_, err := see(ctx, snap, who, conversation)
		return err
	})
}

// event writes one event. One without a number does not change where a client resumes.
func event(out *bytes.Buffer, id int64, name string, data any) {
	text, ok := data.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil { // it is one of our own types
			panic(err)
		}
		text = b
	}
	if id > 0 {
		fmt.Fprintf(out, "id: %d\n", id)
	}
	fmt.Fprintf(out, "event: %s\ndata: %s\n\n", name, text)
}

// send streams until the turn, the client or the server ends.
func (s *server) send(c huma.Context, status int, f *following) {
	defer f.reader.Close()
	r, w := humago.Unwrap(c)
	if !s.Streams.enter() {
		s.write(w, r, reeve.Errorf(reeve.Unavailable, "the server is stopping"))
		return
	}
	defer s.Streams.leave()
	ctx, done := s.Streams.context(r.Context())
	defer done()
	h := w.Header()
	h.Set("Content-Type", eventType)
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	w.WriteHeader(status)
	if err := s.stream(ctx, w, f); err != nil && f.gone != nil && !s.Streams.stopping() {
		f.gone()
	}
}

// stream sends until something ends it; nil means that all was said.
func (s *server) stream(ctx context.Context, w http.ResponseWriter, f *following) error {
	control := http.NewResponseController(w)
	var out bytes.Buffer
	flush := func() error {
		if err := control.SetWriteDeadline(reeve.Now().Add(stuck)); err != nil {
			return err
		}
		if _, err := w.Write(out.Bytes()); err != nil {
			return err
		}
		out.Reset()
		return control.Flush()
	}
	if f.greet != nil {
		f.greet(&out)
	}
	if err := flush(); err != nil {
		return err
	}
	rights := s.Streams.unless()
	for {
		if !f.follow && f.reader.Idle() {
			return nil
		}
		lines, err := next(ctx, rights, f.reader)
		switch {
		case err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || rights.Err() != nil):
			rights = s.Streams.unless()
			if err := s.stillListens(ctx, f.who, f.conversation); err != nil {
				return err
			}
			out.WriteString(": still here\n\n")
		case err != nil:
			return err
		}
		over := false
		for _, l := range lines {
			if f.turn != "" && l.Turn != f.turn {
				continue
			}
			if err := f.write(&out, l); err != nil {
				return err
			}
			if over = f.turn != "" && l.Type == reeve.FrameComplete; over {
				break
			}
		}
		if over && f.end != nil {
			f.end(&out)
		}
		if err := flush(); err != nil || over {
			return err
		}
	}
}

func (f *following) write(out *bytes.Buffer, l chat.Line) error {
	if f.translate != nil {
		return f.translate(out, l)
	}
	event(out, l.Seq, string(l.Type), l.Data)
	return nil
}

// next waits for lines, or for a heartbeat.
func next(ctx, rights context.Context, r *chat.Reader) ([]chat.Line, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	defer context.AfterFunc(rights, cancel)()
	return r.Next(ctx)
}
