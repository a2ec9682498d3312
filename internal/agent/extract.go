package agent

import (
	"context"
	"encoding/json"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Extractor returns notes of a finished turn that the agent should remember. If it fails, the turn does not fail but
// records the problem.
type Extractor interface {
	Extract(ctx context.Context, in ExtractionInput) ([]string, error)
}

// ExtractionInput is the input of an extractor.
type ExtractionInput struct {
	WorkspaceID    string     `json:"workspace_id"`
	AgentID        string     `json:"agent_id"`
	ConversationID string     `json:"conversation_id,omitempty"`
	TurnID         string     `json:"turn_id"`
	UserID         string     `json:"user_id,omitempty"`
	Input          string     `json:"input"`
	Transcript     []Exchange `json:"transcript"`
}

// Exchange is one answer of a turn with its calls.
type Exchange struct {
	Sequence int            `json:"sequence"`
	Text     string         `json:"text,omitempty"`
	Calls    []ExchangeCall `json:"calls,omitempty"`
}

// ExchangeCall is a call of an exchange with its result.
type ExchangeCall struct {
	ID      string          `json:"id"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Result  string          `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// extractNotes extracts and stores notes of the turn. It returns false if that failed.
func (v *modelRun) extractNotes(ctx context.Context) bool {
	extractor := v.chooseExtractor()
	own := extractor == nil && v.set.Notes && v.conversation() != ""
	if extractor == nil && !own || v.log.notesTaken {
		return true
	}
	in := ExtractionInput{WorkspaceID: v.run.WorkspaceID, AgentID: v.run.AgentID, ConversationID: v.conversation(),
		TurnID: v.run.ID, UserID: v.run.UserID,
		Input: v.log.inputs[0].Content, Transcript: transcript(v.log)}
	var notes []string
	err := retryStep(ctx, func(ctx context.Context) (err error) {
		if own {
			return v.extractWithModel(ctx, in)
		}
		notes, err = extractor.Extract(ctx, in)
		return err
	})
	if err == nil && !own {
		err = v.DB.Update(ctx, func(tx *store.Tx) error { return v.storeNotes(ctx, tx, notes) })
	}
	if err == nil && v.set.Notes {
		v.Notes.Wakeup()
	}
	if err != nil {
		v.Log.Warn("note extraction failed", "run", v.run.ID, "error", err)
	}
	return err == nil
}

const (
	maxStepTries   = 3
	firstStepDelay = 100 * time.Millisecond
	stepTimeout    = 30 * time.Second
)

// retryStep tries f three times, 100 and 200 ms apart, each for at most 30 s. A validation error is not retried.
func retryStep(ctx context.Context, f func(context.Context) error) (err error) {
	for n, wait := 1, firstStepDelay; ; n, wait = n+1, 2*wait {
		limited, cancel := context.WithTimeout(ctx, stepTimeout)
		err = f(limited)
		late := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if late && err != nil {
			err = reeve.Errorf(reeve.Timeout, "the step did not finish within %s", stepTimeout)
		}
		if err == nil || n == maxStepTries || reeve.CodeOf(err) == reeve.Validation || !notify.Sleep(ctx, wait) {
			return err
		}
	}
}
