package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// eventStream describes a client's stream of a conversation, or of one turn, as server-sent events.
type eventStream struct {
	reader         *chat.Reader
	who            reeve.Principal
	conversation   string
	turn           string // stream only this turn, until it ends. Default: all turns
	keepOpen       bool   // wait for new frames
	translate      func(e *eventWriter, l chat.EncodedFrame) error
	onStart, onEnd func(e *eventWriter)
	onError        func(ctx context.Context, e *eventWriter, err error) // called when the stream ends before the turn
}

func (h *conversationHandlers) streamEvents(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	StreamPosition
	Last   string `header:"Last-Event-ID" maxLength:"32" doc:"Id of the last event received; replaces after"`
	Follow bool   `query:"follow" default:"true" doc:"Wait for new frames; false ends the stream after the stored ones"`
}) (*huma.StreamResponse, error) {
	after := in.After
	if in.Last != "" {
		n, ok := parseSequence(in.Last)
		if !ok {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "Last-Event-ID is not an event id",
				Fields: []reeve.Field{{Path: "header/Last-Event-ID", Message: "is not a number",
					Expected: "the id of the last event received"}}}
		}
		after = n
	}
	if err := checkConversationAccess(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	reader, err := h.chat.Broadcaster.Subscribe(ctx, in.ID, after)
	if err != nil {
		return nil, err
	}
	f := &eventStream{reader: reader, who: who, conversation: in.ID, keepOpen: in.Follow}
	f.onStart = func(e *eventWriter) {
		at, last := after, reader.Last()
		if at < 0 {
			at = last
		}
		e.add(0, string(reeve.FrameConnected), reeve.Frame{Type: reeve.FrameConnected, ConversationID: in.ID, Seq: at,
			LastSeq: last})
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { h.streamer.send(c, http.StatusOK, f) }}, nil
}

// checkConversationAccess returns an error unless the caller may see the conversation.
func checkConversationAccess(ctx context.Context, db *store.DB, who reeve.Principal, conversation string) error {
	return db.View(ctx, func(snap *store.Snap) error {
		_, err := getVisibleConversation(ctx, snap, who, conversation)
		return err
	})
}

// eventStreamer sends the frames of a conversation as server-sent events.
type eventStreamer struct {
	permits  streamPermitIssuer
	redactor viewRedactor
	streams  *Streams
}

// send streams frames until the turn ends, the client disconnects or the server stops.
func (s eventStreamer) send(c huma.Context, status int, f *eventStream) {
	defer f.reader.Close()
	s.streams.serveEvents(c, status, func(ctx context.Context, e *eventWriter) {
		if err := s.stream(ctx, e, f); err != nil {
			err = s.streams.endError(ctx, err)
			logServerFailure(ctx, err)
			if f.onError != nil {
				f.onError(ctx, e, err)
			}
		}
	})
}

// stream sends frames until the turn ends, or until no frame is left if f does not keep the stream open. It returns an
// error if the stream ends earlier.
func (s eventStreamer) stream(ctx context.Context, e *eventWriter, f *eventStream) error {
	if f.onStart != nil {
		f.onStart(e)
	}
	if err := e.flush(); err != nil {
		return err
	}
	permit, err := s.permits.issue(ctx, f.who, f.conversation)
	defer permit.close()
	if err != nil {
		return err
	}
	for {
		if !f.keepOpen && f.reader.Idle() {
			return nil
		}
		frames, err := permit.next(ctx, f.reader)
		if err != nil {
			return err
		}
		if len(frames) == 0 {
			e.addKeepAlive()
		}
		ended := false
		for _, l := range frames {
			if f.turn != "" && l.Turn != f.turn {
				continue
			}
			if l.Data, err = s.redactor.redactFrame(ctx, f.who, l); err != nil {
				return err
			}
			if err := f.write(e, l); err != nil {
				return err
			}
			if ended = f.turn != "" && l.Type == reeve.FrameComplete; ended {
				break
			}
		}
		if ended && f.onEnd != nil {
			f.onEnd(e)
		}
		if err := e.flush(); err != nil || ended {
			return err
		}
	}
}

func (f *eventStream) write(e *eventWriter, l chat.EncodedFrame) error {
	if f.translate != nil {
		return f.translate(e, l)
	}
	e.add(l.Seq, string(l.Type), l.Data)
	return nil
}
