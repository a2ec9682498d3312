package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"reeve"
)

// delegateLimit is how many ms a delegation may add to the time that the other takes itself.
const delegateLimit = 10.0

// delegate measures what it adds that one agent asks another: from the frame that tells of the call to the one that tells its result, less what the
// other's run took by its own row.
func delegate(ctx context.Context, c config, t *table) error {
	s, w, err := talkTo(ctx, filepath.Join(c.dir, "delegate"))
	if err != nil {
		return err
	}
	return errors.Join(w.delegations(ctx, c, t), s.stop())
}

func (w *talker) delegations(ctx context.Context, c config, t *table) error {
	for _, name := range []string{"boss", "helper"} {
		if err := w.post(ctx, "/api/agents", map[string]any{"name": name}, nil); err != nil {
			return err
		}
	}
	if err := w.post(ctx, "/api/agents/boss/tools", map[string]any{"tool_id": "delegate"}, nil); err != nil {
		return err
	}
	var talk reeve.Conversation
	if err := w.post(ctx, "/api/conversations", map[string]any{"agent": "boss"}, &talk); err != nil {
		return err
	}
	var added, own []float64
	for i := range pick(c, 200, 40) + 10 {
		whole, turn, err := w.delegated(ctx, talk.ID)
		if err != nil {
			return err
		}
		child, err := w.child(ctx, turn)
		if err != nil {
			return err
		}
		if took := child.FinishedAt.Sub(child.StartedAt); i >= 10 {
			added, own = append(added, ms(whole-took)), append(own, ms(took))
		}
	}
	t.add(row{Section: "delegate", Name: fmt.Sprintf("what a delegation adds to the %.3g ms of the other, p50", median(own)), Unit: "ms", Ours: median(added), Against: "limit", Peer: delegateLimit,
		Ratio: median(added) / delegateLimit, Target: 1, AtMost: true})
	return nil
}

// delegated has the boss ask the helper, and gives how long that took, and the turn.
func (w *talker) delegated(ctx context.Context, conversation string) (took time.Duration, turn string, err error) {
	var asked time.Time
	err = w.follow(ctx, conversation, "delegate", func(f reeve.Frame) error {
		switch {
		case f.Type == reeve.FrameTool:
			asked = time.Now()
		case f.Type == reeve.FrameResult && f.IsError:
			return errors.New(f.Content)
		case f.Type == reeve.FrameResult:
			took = time.Since(asked)
		}
		turn = f.TurnID
		return nil
	})
	return took, turn, err
}

// child finds the run that a turn began.
func (w *talker) child(ctx context.Context, turn string) (reeve.Run, error) {
	r, err := w.request(ctx, "/api/runs?limit=5", nil)
	if err != nil {
		return reeve.Run{}, err
	}
	r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
	resp, err := w.client.Do(r)
	if err != nil {
		return reeve.Run{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return reeve.Run{}, err
	}
	var list struct {
		Runs []reeve.Run `json:"runs"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return reeve.Run{}, err
	}
	for _, run := range list.Runs {
		if run.ParentID == turn && run.FinishedAt != nil {
			return run, nil
		}
	}
	return reeve.Run{}, fmt.Errorf("turn %s has no child: %s", turn, b)
}
