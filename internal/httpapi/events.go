package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// following is a client that follows a conversation, or one turn of it, as server-sent events.
type following struct {
	reader       *chat.Reader
	who          reeve.Principal
	conversation string
	turn         string // only this one, to its end. Default: all
	follow       bool   // wait for more
	translate    func(e *events, l chat.EncodedFrame) error
	greet, end   func(e *events)
	broken       func(ctx context.Context, e *events, err error) // it ended before the turn did
}

func (h *conversationHandlers) streamEvents(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	FromNow
	Last   string `header:"Last-Event-ID" maxLength:"32" doc:"The same, as browsers send it when they come back"`
	Follow bool   `query:"follow" default:"true" doc:"false: give what is there and end"`
}) (*huma.StreamResponse, error) {
	after := in.After
	if in.Last != "" {
		n, ok := sequence(in.Last)
		if !ok {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "Last-Event-ID is not one this server gave",
				Fields: []reeve.Field{{Path: "header/Last-Event-ID", Message: "is not a number",
					Expected: "the id of the last event that you have"}}}
		}
		after = n
	}
	if err := mayListen(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	reader, err := h.desk.Broadcaster.Subscribe(ctx, in.ID, after)
	if err != nil {
		return nil, err
	}
	f := &following{reader: reader, who: who, conversation: in.ID, follow: in.Follow}
	f.greet = func(e *events) {
		at, last := after, reader.Last()
		if at < 0 {
			at = last
		}
		e.add(0, string(reeve.FrameConnected), reeve.Frame{Type: reeve.FrameConnected, ConversationID: in.ID, Seq: at,
			LastSeq: last})
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { h.follower.send(c, http.StatusOK, f) }}, nil
}

// mayListen returns an error unless the caller may see the conversation.
func mayListen(ctx context.Context, db *store.DB, who reeve.Principal, conversation string) error {
	return db.View(ctx, func(snap *store.Snap) error {
		_, err := see(ctx, snap, who, conversation)
		return err
	})
}

// eventStreamer sends the frames of a conversation as server-sent events.
type eventStreamer struct {
	permits  permitIssuer
	redactor viewRedactor
	streams  *Streams
}

// send streams until the turn, the client or the server ends.
func (s eventStreamer) send(c huma.Context, status int, f *following) {
	defer f.reader.Close()
	s.streams.serveEvents(c, status, func(ctx context.Context, e *events) {
		if err := s.stream(ctx, e, f); err != nil {
			err = s.streams.interrupted(ctx, err)
			noteFailure(ctx, err)
			if f.broken != nil {
				f.broken(ctx, e, err)
			}
		}
	})
}

// stream sends until something ends it; nil means that all was said.
func (s eventStreamer) stream(ctx context.Context, e *events, f *following) error {
	if f.greet != nil {
		f.greet(e)
	}
	if err := e.flush(); err != nil {
		return err
	}
	right, err := s.permits.issue(ctx, f.who, f.conversation)
	defer right.close()
	if err != nil {
		return err
	}
	for {
		if !f.follow && f.reader.Idle() {
			return nil
		}
		lines, err := right.next(ctx, f.reader)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			e.alive()
		}
		over := false
		for _, l := range lines {
			if f.turn != "" && l.Turn != f.turn {
				continue
			}
			if l.Data, err = s.redactor.overseen(ctx, f.who, l); err != nil {
				return err
			}
			if err := f.write(e, l); err != nil {
				return err
			}
			if over = f.turn != "" && l.Type == reeve.FrameComplete; over {
				break
			}
		}
		if over && f.end != nil {
			f.end(e)
		}
		if err := e.flush(); err != nil || over {
			return err
		}
	}
}

func (f *following) write(e *events, l chat.EncodedFrame) error {
	if f.translate != nil {
		return f.translate(e, l)
	}
	e.add(l.Seq, string(l.Type), l.Data)
	return nil
}
