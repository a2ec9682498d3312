package chat

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// OriginDelegate is the origin of conversations that agents open with each other.
const OriginDelegate = "delegate"

// BeginDelegatedTurn begins a turn at the request of another agent, in the caller's transaction. By default it opens a
// new conversation, which contains the request and the attachments of the requesting turn. If the request names a
// conversation, the agent becomes a participant there and sees all its messages. After the commit, the caller calls
// ServeDelegatedTurn.
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
		c.Participants = []reeve.Participant{{Kind: reeve.AgentParticipant, ID: a.Agent.ID, AddedBy: by.RunID}}
		if a.User != "" {
			c.Participants = append(c.Participants, reeve.Participant{Kind: reeve.UserParticipant, ID: a.User,
				AddedBy: by.RunID})
		}
		if err = tx.Chat().InsertConversation(ctx, c); err == nil {
			task.Attachments, err = listAttachments(ctx, tx, a.Workspace, by.RunID)
		}
	}
	if err != nil {
		return run, err
	}
	delegated := reeve.Run{AgentID: a.Agent.ID, UserID: a.User, ParentID: by.RunID, CallerOperationID: a.Operation,
		Ancestors:  a.Ancestors,
		OnBehalfOf: a.OnBehalfOf}
	if delegated.Origins, err = listOrigins(ctx, tx, a.Workspace, by); err != nil {
		return run, err
	}
	run, _, err = d.insertTurn(ctx, tx, c, delegated, a.Operation, task, nil)
	return run, err
}

// listOrigins returns the agents whose work led to a delegated turn: the caller and those that led to its run. The turn
// then wakes none of them.
func listOrigins(ctx context.Context, tx *store.Tx, workspace string, by reeve.Ancestor) ([]string, error) {
	origins := []string{by.AgentID}
	if by.RunID == "" {
		return origins, nil
	}
	caller, err := tx.Runs().GetRun(ctx, workspace, by.RunID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return origins, nil
	}
	for _, id := range caller.Origins {
		if id != by.AgentID {
			origins = append(origins, id)
		}
	}
	return origins, err
}

// listAttachments returns the attachments of the user message that a run answers, if there is one.
func listAttachments(ctx context.Context, tx *store.Tx, workspace, run string) ([]reeve.Attachment, error) {
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

// ServeDelegatedTurn publishes the first frame of a delegated turn and passes its run to the queue.
func (d *Service) ServeDelegatedTurn(run reeve.Run) {
	d.Broadcaster.Changed(run.SessionID)
	d.Queue.Enqueue(run)
}

// getRequestingAgent returns the agent that requested a run. It is empty if a person did.
func getRequestingAgent(run reeve.Run) string {
	if n := len(run.Ancestors); n > 0 {
		return run.Ancestors[n-1].AgentID
	}
	return ""
}
