package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
	"reeve/internal/store"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// turnHandlers serves the turns of conversations.
type turnHandlers struct {
	db       *store.DB
	chat     *chat.Service
	canceler turnCanceler
	streamer eventStreamer
	log      *slog.Logger
}

func (h *turnHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.TurnList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.TurnList]{Body: api.TurnList{Turns: []reeve.Turn{}}}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		runs, err := snap.Chat().ListTurns(ctx, c.ID, in.Cursor, in.Limit)
		for _, r := range runs {
			out.Body.Turns = append(out.Body.Turns, r.Turn())
		}
		return err
	})
	if n := len(out.Body.Turns); n == in.Limit {
		out.Body.Next = out.Body.Turns[n-1].ID
	}
	return out, err
}

// create begins a turn, and returns the turn or streams its events. The turn continues if the client disconnects.
func (h *turnHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Key    string `header:"Idempotency-Key" maxLength:"255" doc:"Begins the turn once"`
	Accept string `header:"Accept"`
	Body   reeve.TurnRequest
}) (*huma.StreamResponse, error) {
	if !strings.Contains(in.Accept, eventType) {
		turn, isNew, err := h.chat.BeginTurn(ctx, who, in.ID, in.Key, in.Body)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			if !isNew {
				c.SetHeader(replayHeader, "true")
			}
			h.writeJSON(c, http.StatusCreated, turn)
		}}, nil
	}
	f, err := h.beginStreamed(ctx, who, in.ID, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { h.streamer.send(c, http.StatusCreated, f) }}, nil
}

// writeJSON sends a JSON document.
func (h *turnHandlers) writeJSON(c huma.Context, status int, v any) {
	c.SetHeader("Content-Type", "application/json")
	c.SetStatus(status)
	if err := json.NewEncoder(c.BodyWriter()).Encode(v); err != nil {
		h.log.Debug("cannot send response", "request", requestID(c.Context()), "error", err)
	}
}

// beginStreamed begins a turn and returns a stream of all its frames. For a repeated key it returns a stream of the
// existing turn.
func (h *turnHandlers) beginStreamed(ctx context.Context, who reeve.Principal, conversation, key string,
	r reeve.TurnRequest) (*eventStream, error) {
	// subscribe first, so that the stream has the first frame of a new turn
	reader, err := h.chat.Broadcaster.Subscribe(ctx, conversation, -1)
	if err != nil {
		return nil, err
	}
	turn, isNew, err := h.chat.BeginTurn(ctx, who, conversation, key, r)
	if err == nil && !isNew {
		reader.Close()
		reader, err = h.subscribeFromStart(ctx, conversation, turn.ID)
	}
	if err != nil {
		if reader != nil {
			reader.Close()
		}
		return nil, err
	}
	return &eventStream{reader: reader, who: who, conversation: conversation, turn: turn.ID, keepOpen: true}, nil
}

// subscribeFromStart subscribes to an existing turn from its first frame.
func (h *turnHandlers) subscribeFromStart(ctx context.Context, conversation, turn string) (*chat.Reader, error) {
	var first int64
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		first, _, err = snap.Chat().FrameNumber(ctx, conversation, "started:"+turn)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h.chat.Broadcaster.Subscribe(ctx, conversation, max(0, first-1))
}

// getVisibleTurn returns the run of a turn. It fails with NOT_FOUND if the caller may not see its conversation.
func getVisibleTurn(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (run reeve.Run, err error) {
	if run, err = snap.Runs().GetRun(ctx, who.Workspace, id); err == nil && run.Reason == reeve.ReasonUser {
		_, err = getVisibleConversation(ctx, snap, who, run.SessionID)
	} else if err == nil {
		err = &reeve.Error{Code: reeve.NotFound}
	}
	if reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "turn %q not found", id)
	}
	return run, err
}

func (h *turnHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.TurnDetail], error) {
	out := &body[api.TurnDetail]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		run, err := getVisibleTurn(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Turn = run.Turn()
		if out.Body.Messages, err = snap.Ledger().AllRunMessages(ctx, who.Workspace, run.ID); err != nil {
			return err
		}
		if err := snap.Ledger().SetPrevious(ctx, out.Body.Messages); err != nil {
			return err
		}
		out.Body.Feedback, err = snap.Chat().ListFeedback(ctx, who.Workspace, run.ID)
		return err
	})
}

// cancel cancels a turn that the caller may see.
func (h *turnHandlers) cancel(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Turn], error) {
	convertStoredResponse(ctx, func(run reeve.Run) any { return run.Turn() })
	t, err := h.canceler.cancel(ctx, who, "", in.ID)
	return &body[reeve.Turn]{t}, err
}

func (h *turnHandlers) rate(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.FeedbackRequest
}) (*body[reeve.Feedback], error) {
	out := &body[reeve.Feedback]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		run, err := getVisibleTurn(ctx, &tx.Snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body = reeve.Feedback{ID: tx.NewID(reeve.PrefixFeedback), TurnID: run.ID, UserID: who.User,
			Score: in.Body.Score, Comment: in.Body.Comment, CreatedAt: tx.Now()}
		if err := tx.Chat().InsertFeedback(ctx, who.Workspace, out.Body); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}
