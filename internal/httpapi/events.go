package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

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
	translate    func(e *events, l chat.Line) error
	greet, end   func(e *events)
	broken       func(ctx context.Context, e *events, err error) // it ended before the turn did
}

func (s *server) streamEvents(ctx context.Context, who reeve.Principal, in *struct {
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
	f.greet = func(e *events) {
		at, last := after, reader.Last()
		if at < 0 {
			at = last
		}
		e.add(0, string(reeve.FrameConnected), reeve.Frame{Type: reeve.FrameConnected, ConversationID: in.ID, Seq: at, LastSeq: last})
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

// send streams until the turn, the client or the server ends.
func (s *server) send(c huma.Context, status int, f *following) {
	defer f.reader.Close()
	s.streamed(c, status, func(ctx context.Context, e *events) {
		if err := s.stream(ctx, e, f); err != nil {
			err = s.interrupted(ctx, err)
			noteFailure(ctx, err)
			if f.broken != nil {
				f.broken(ctx, e, err)
			}
		}
	})
}

// interrupted says what the end of a stream's context means: the server stops, or the client has gone. Any other error stays as it is.
func (s *server) interrupted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		return err
	case s.Streams.stopping():
		return errStopping
	}
	return reeve.Errorf(reeve.Canceled, "the request was cancelled")
}

// forsake ends a turn that is followed no further because its client went away, or may not listen any more: nobody else looks at it. That the store could not be read ends no turn, and
// when it is the server that goes, the turn goes on after the next start.
func (s *server) forsake(ctx context.Context, who reeve.Principal, turn string, err error) {
	why := ""
	switch reeve.CodeOf(err) {
	case reeve.Canceled:
		why = "its client went away"
	case reeve.Unauthenticated, reeve.NotFound:
		why = "its client may not listen any more"
	default:
	}
	if why == "" || s.Streams.stopping() {
		return
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := s.Wake.End(keep, who.Workspace, turn, reeve.Errorf(reeve.Canceled, "%s", why)); err != nil && reeve.CodeOf(err) != reeve.Conflict { // which means that it has just ended
		note(ctx, err)
	}
}

// stream sends until something ends it; nil means that all was said.
func (s *server) stream(ctx context.Context, e *events, f *following) error {
	if f.greet != nil {
		f.greet(e)
	}
	if err := e.flush(); err != nil {
		return err
	}
	right, err := s.pass(ctx, f.who, f.conversation)
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
			if l.Data, err = s.overseen(ctx, f.who, l); err != nil {
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

func (f *following) write(e *events, l chat.Line) error {
	if f.translate != nil {
		return f.translate(e, l)
	}
	e.add(l.Seq, string(l.Type), l.Data)
	return nil
}
