package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func (s *server) listTurns(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[reeve.TurnList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.TurnList]{Body: reeve.TurnList{Turns: []reeve.Turn{}}}
	err := s.DB.View(ctx, func(snap *store.Snap) error {
		c, err := see(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		runs, err := snap.ListTurns(ctx, c.ID, in.Cursor, in.Limit)
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

// createTurn begins a turn, and answers with it or with what happens in it. Who follows it may go away: the turn goes on.
func (s *server) createTurn(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Key    string `header:"Idempotency-Key" maxLength:"255" doc:"The same key says it once"`
	Accept string `header:"Accept"`
	Body   reeve.TurnRequest
}) (*huma.StreamResponse, error) {
	if !strings.Contains(in.Accept, eventType) {
		turn, fresh, err := s.Desk.Begin(ctx, who, in.ID, in.Key, in.Body)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			if !fresh {
				c.SetHeader(replayHeader, "true")
			}
			s.reply(c, http.StatusCreated, turn)
		}}, nil
	}
	f, err := s.begin(ctx, who, in.ID, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { s.send(c, http.StatusCreated, f) }}, nil
}

// reply answers with one document.
func (s *server) reply(c huma.Context, status int, v any) {
	c.SetHeader("Content-Type", "application/json")
	c.SetStatus(status)
	if err := json.NewEncoder(c.BodyWriter()).Encode(v); err != nil {
		s.Log.Debug("an answer was not taken", "request", requestID(c.Context()), "error", err)
	}
}

// begin begins a turn that is followed from its first frame to its last.
func (s *server) begin(ctx context.Context, who reeve.Principal, conversation, key string, r reeve.TurnRequest) (*following, error) {
	reader, err := s.Desk.Hub.Subscribe(ctx, conversation, -1) // so that a new turn is heard from its first frame on without looking for it
	if err != nil {
		return nil, err
	}
	turn, fresh, err := s.Desk.Begin(ctx, who, conversation, key, r)
	if err == nil && !fresh {
		reader.Close()
		reader, err = s.rejoin(ctx, conversation, turn.ID)
	}
	if err != nil {
		if reader != nil {
			reader.Close()
		}
		return nil, err
	}
	return &following{reader: reader, who: who, conversation: conversation, turn: turn.ID, follow: true}, nil
}

// rejoin follows a turn that has begun before, from its first frame on.
func (s *server) rejoin(ctx context.Context, conversation, turn string) (*chat.Reader, error) {
	var first int64
	err := s.DB.View(ctx, func(snap *store.Snap) (err error) {
		first, _, err = snap.FrameNumber(ctx, conversation, "started:"+turn)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Desk.Hub.Subscribe(ctx, conversation, max(0, first-1))
}

// seeTurn reads a turn of a conversation that somebody may see.
func seeTurn(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (run reeve.Run, err error) {
	if run, err = snap.GetRun(ctx, who.Workspace, id); err == nil && run.Reason == reeve.ReasonUser {
		_, err = see(ctx, snap, who, run.SessionID)
	} else if err == nil {
		err = &reeve.Error{Code: reeve.NotFound}
	}
	if reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "turn %q not found", id)
	}
	return run, err
}

func (s *server) getTurn(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.TurnDetail], error) {
	out := &body[reeve.TurnDetail]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		run, err := seeTurn(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Turn = run.Turn()
		if out.Body.Messages, err = snap.WholeRun(ctx, who.Workspace, run.ID); err != nil {
			return err
		}
		if err := snap.SetPrevious(ctx, out.Body.Messages); err != nil {
			return err
		}
		out.Body.Feedback, err = snap.ListFeedback(ctx, who.Workspace, run.ID)
		return err
	})
}

// cancelTurn ends a turn by the word of somebody who sees it.
func (s *server) cancelTurn(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Turn], error) {
	answerAs(ctx, func(run reeve.Run) any { return run.Turn() })
	t, err := s.cancel(ctx, who, "", in.ID)
	return &body[reeve.Turn]{t}, err
}

// cancel ends a turn, of any conversation or of one.
func (s *server) cancel(ctx context.Context, who reeve.Principal, conversation, id string) (reeve.Turn, error) {
	err := s.DB.View(ctx, func(snap *store.Snap) error {
		run, err := seeTurn(ctx, snap, who, id)
		if err == nil && conversation != "" && run.SessionID != conversation {
			err = reeve.Errorf(reeve.NotFound, "turn %q not found in this conversation", id)
		}
		return err
	})
	if err != nil {
		return reeve.Turn{}, err
	}
	run, err := s.Wake.Cancel(ctx, who.Workspace, id)
	return run.Turn(), err
}

func (s *server) rateTurn(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.FeedbackRequest
}) (*body[reeve.Feedback], error) {
	out := &body[reeve.Feedback]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) error {
		run, err := seeTurn(ctx, &tx.Snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body = reeve.Feedback{ID: tx.NewID(reeve.PrefixFeedback), TurnID: run.ID, UserID: who.User, Score: in.Body.Score, Comment: in.Body.Comment, CreatedAt: tx.Now()}
		if err := tx.InsertFeedback(ctx, who.Workspace, out.Body); err != nil {
			return err
		}
		return tx.Answer(ctx, out.Body)
	})
}
