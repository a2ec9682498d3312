package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// leaveOut records that the request does not show something, or shows it shortened.
func (v *assembly) leaveOut(what, id, why string, args ...any) {
	v.leftOut = append(v.leftOut, reeve.Omission{What: what, ID: id, Why: fmt.Sprintf(why, args...)})
}

// storeRequest stores the request that begins the turn, so that it can be read later. number is the number of the
// answer.
func (v *modelRun) storeRequest(ctx context.Context, tx *store.Tx, number int) error {
	r := *v.base
	r.Messages = withoutMedia(r.Messages)
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return tx.Runs().PutModelRequest(ctx, v.run.WorkspaceID, v.run.ID,
		reeve.AskedRequest{Number: number, Request: raw, LeftOut: v.leftOut}, v.showsUntrusted)
}

// withoutMedia returns messages without the bytes of media. Attachments can be downloaded.
func withoutMedia(list []model.Message) []model.Message {
	out := make([]model.Message, len(list))
	for i, m := range list {
		out[i] = model.Message{Role: m.Role, Parts: make([]model.Part, len(m.Parts))}
		copy(out[i].Parts, m.Parts)
		for j := range out[i].Parts {
			if p := &out[i].Parts[j]; len(p.Data) > 0 {
				p.Text, p.Data = fmt.Sprintf("%d bytes", len(p.Data)), nil
			}
		}
	}
	return out
}

// RequestReader reads what the model was asked in a run.
type RequestReader struct{ DB *store.DB }

// AskedRequests returns the request before each answer of a run. Requests that are older than the retention time are
// missing.
func (r RequestReader) AskedRequests(ctx context.Context, run reeve.Run) ([]reeve.AskedRequest, error) {
	var l *runLog
	var bases []reeve.AskedRequest
	out := []reeve.AskedRequest{}
	var most int
	err := r.DB.View(ctx, func(s *store.Snap) (err error) {
		if bases, err = s.Runs().ListModelRequests(ctx, run.WorkspaceID, run.ID); err != nil || len(bases) == 0 {
			return err
		}
		agent, err := s.Agents().GetAgent(ctx, run.WorkspaceID, run.AgentID)
		if err != nil {
			return err
		}
		set, err := readSettings(agent.Config)
		if err != nil {
			return err
		}
		most = set.MaxModelRequests
		l, err = readRun(ctx, s, run)
		return err
	})
	if err != nil || l == nil {
		return out, err
	}
	for i := range l.answers {
		for len(bases) > 1 && bases[1].Number <= i+1 {
			bases = bases[1:]
		}
		if bases[0].Number > i+1 {
			continue
		}
		var asked model.Request
		if err := json.Unmarshal(bases[0].Request, &asked); err != nil {
			return nil, err
		}
		asked.Messages = append(asked.Messages, withoutMedia(l.messagesBefore(i))...)
		if i == most {
			askForEnd(&asked)
		}
		raw, err := json.Marshal(asked)
		if err != nil {
			return nil, err
		}
		out = append(out, reeve.AskedRequest{Number: i + 1, Request: raw, LeftOut: bases[0].LeftOut})
	}
	return out, nil
}
