package chat

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// OriginDelegate is the origin of conversations that agents begin among themselves.
const OriginDelegate = "delegate"

// BeginDelegatedTurn begins a turn that another agent asks for: in a conversation of its own, which holds nothing but
// what is asked and what was attached to the turn that asks, or in the one in which it is asked, where the agent takes
// part from then on and sees all that. It belongs to the caller's transaction; once that is committed, the run is
// served by Serve.
func (d *Service) BeginDelegatedTurn(ctx context.Context, tx *store.Tx,
	a reeve.DelegationRequest) (run reeve.Run, err error) {
	by, task := a.Requester(), reeve.TurnRequest{Content: a.Input}
	c := reeve.Conversation{ID: tx.NewID(reeve.PrefixConversation), WorkspaceID: a.Workspace, AgentID: a.Agent.ID,
		UserID: a.User, Origin: OriginDelegate,
		State: reeve.ConversationActive}
	if a.Conversation != "" {
		if c, err = tx.Chat().GetConversation(ctx, a.Workspace, "", a.Conversation); err != nil {
			return run, err
		}
		_, err = tx.Chat().AddParticipant(ctx, c.ID, reeve.Participant{Kind: reeve.AgentParticipant, ID: a.Agent.ID,
			AddedBy: by.RunID})
	} else {
		c.Members = []reeve.Participant{{Kind: reeve.AgentParticipant, ID: a.Agent.ID, AddedBy: by.RunID}}
		if a.User != "" {
			c.Members = append(c.Members, reeve.Participant{Kind: reeve.UserParticipant, ID: a.User, AddedBy: by.RunID})
		}
		if err = tx.Chat().InsertConversation(ctx, c); err == nil {
			task.Attachments, err = attached(ctx, tx, a.Workspace, by.RunID)
		}
	}
	if err != nil {
		return run, err
	}
	asked := reeve.Run{AgentID: a.Agent.ID, UserID: a.User, ParentID: by.RunID, Answers: a.Operation,
		Ancestors:  a.Ancestors,
		OnBehalfOf: a.OnBehalfOf}
	run, _, err = d.begin(ctx, tx, c, asked, a.Operation, task, nil)
	return run, err
}

// attached is what came with what a run answers; of a run that answers nobody it is nothing.
func attached(ctx context.Context, tx *store.Tx, workspace, run string) ([]reeve.Attachment, error) {
	if run == "" {
		return nil, nil
	}
	first, err := tx.Ledger().RunMessages(ctx, workspace, run, "", 1)
	if err != nil || len(first) == 0 || first[0].Kind != reeve.UserMessage {
		return nil, err
	}
	var info reeve.MessageInfo
	err = json.Unmarshal(first[0].Metadata, &info)
	return info.Attachments, err
}

// ServeDelegatedTurn serves a run that Hand began.
func (d *Service) ServeDelegatedTurn(run reeve.Run) {
	d.Hub.Changed(run.SessionID)
	d.Server.Enqueue(run)
}

// by is the agent that asks for a run; empty means that it is a person.
func by(run reeve.Run) string {
	if n := len(run.Ancestors); n > 0 {
		return run.Ancestors[n-1].AgentID
	}
	return ""
}
