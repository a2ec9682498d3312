package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// RunQueue serves runs that this process has inserted.
type RunQueue interface{ Enqueue(run reeve.Run) }

// Service opens conversations, begins turns, and records how turns end.
type Service struct {
	DB          *store.DB
	Broadcaster *Broadcaster
	Process     string   // id of this process, which owns the runs begun here; it must be registered in the store
	Queue       RunQueue // serves the runs
	Fetcher     Fetcher  // downloads attachments that are given by URL
}

// VisibleTo returns the user whose conversations a principal can see. It is empty for owners, who see all
// conversations.
func VisibleTo(who reeve.Principal) string {
	if who.Role.Allows(reeve.Owner) {
		return ""
	}
	return who.User
}

// Open starts a conversation between the principal, the other named participants and an agent. If id names an existing
// conversation, Open returns that one. It fails with Conflict if that conversation is with another agent.
func (d *Service) Open(ctx context.Context, who reeve.Principal, id, origin string,
	r reeve.ConversationRequest) (c reeve.Conversation, err error) {
	for i, user := range r.Participants {
		if isBlank(user) || len(user) > maxNameBytes {
			return c, newFieldError(fmt.Sprintf("/participants/%d", i), "is empty or too long", "a user's name")
		}
	}
	openInTx := func(tx *store.Tx) (err error) {
		if c, err = openConversation(ctx, tx, who, id, origin, r); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, c)
	}
	if err = d.DB.Update(ctx, openInTx); id != "" && reeve.CodeOf(err) == reeve.AlreadyExists {
		err = d.DB.Update(ctx, openInTx) // a concurrent request has inserted the conversation
	}
	return c, err
}

// openConversation is Open in the caller's transaction.
func openConversation(ctx context.Context, tx *store.Tx, who reeve.Principal, id, origin string,
	r reeve.ConversationRequest) (c reeve.Conversation, err error) {
	a, err := tx.Agents().GetAgent(ctx, who.Workspace, r.Agent)
	if err != nil {
		return c, err
	}
	if id != "" {
		c, err = tx.Chat().GetConversation(ctx, who.Workspace, VisibleTo(who), id)
		switch {
		case err == nil && c.AgentID != a.ID:
			return c, reeve.Errorf(reeve.Conflict, "the conversation is with another agent").
				Hintf("use another session, or set the agent to %s", c.AgentID)
		case err == nil || reeve.CodeOf(err) != reeve.NotFound:
			return c, err
		}
	}
	if err := checkCanTalk(a); err != nil {
		return c, err
	}
	c = reeve.Conversation{ID: id, WorkspaceID: who.Workspace, AgentID: a.ID, UserID: who.User, Title: r.Title,
		Origin: origin,
		State:  reeve.ConversationActive, CreatedAt: tx.Now(), UpdatedAt: tx.Now()}
	if id == "" {
		c.ID = tx.NewID(reeve.PrefixConversation)
	}
	c.Participants = []reeve.Participant{{Kind: reeve.UserParticipant, ID: who.User, AddedBy: who.User},
		{Kind: reeve.AgentParticipant, ID: a.ID, AddedBy: who.User}}
	for i, user := range r.Participants {
		if user == who.User {
			continue
		}
		if err := CheckUser(ctx, &tx.Snap, who.Workspace, user, fmt.Sprintf("/participants/%d", i)); err != nil {
			return c, err
		}
		c.Participants = append(c.Participants, reeve.Participant{Kind: reeve.UserParticipant, ID: user,
			AddedBy: who.User})
	}
	if err := tx.Chat().InsertConversation(ctx, c); err != nil {
		return c, err
	}
	return tx.Chat().GetConversation(ctx, who.Workspace, "", c.ID)
}

// CheckUser fails with Validation if the workspace has no such user. A misspelled name would otherwise stay a
// participant forever. The path is the position of the name in the request.
func CheckUser(ctx context.Context, s *store.Snap, workspace, user, path string) error {
	ok, err := s.Agents().HasUser(ctx, workspace, user)
	if err == nil && !ok {
		err = newFieldError(path, fmt.Sprintf("is unknown: %q has no token in this workspace", user),
			"a user of the workspace")
	}
	return err
}

// checkCanTalk fails with Conflict if people cannot talk to an agent.
func checkCanTalk(a reeve.Agent) error {
	switch {
	case a.Lifecycle != reeve.AgentActive:
		return reeve.Errorf(reeve.Conflict, "the agent is %s", a.Lifecycle).Hintf("talk to an active agent")
	case !a.Mode.Allows(reeve.ReasonUser):
		return reeve.Errorf(reeve.Conflict, "the agent is %s and does not talk to people", a.Mode).
			Hintf("set its mode to hybrid or interactive")
	}
	return nil
}

// BeginTurn begins a turn. It stores the user message, the wake, the run and the first frame in one transaction, and
// then passes the run to the Queue. A turn does not wait for other turns of the conversation; its model sees
// them. A repeated key returns the existing turn and false. It fails with Conflict if the key was used with a different
// request.
func (d *Service) BeginTurn(ctx context.Context, who reeve.Principal, conversation, key string,
	r reeve.TurnRequest) (turn reeve.Turn, isNew bool, err error) {
	if err := checkTurn(r); err != nil {
		return turn, false, err
	}
	if err := d.fetchTurnAttachments(ctx, who, conversation, key, &r); err != nil {
		return turn, false, err
	}
	return d.beginTurn(ctx, who, conversation, key, r, nil)
}

// BeginTurnWithHistory begins a turn for a client that keeps its own history. The model sees that history instead of
// the messages of the conversation. The input may consist of nothing but results of the client's own tools. If
// conversation is empty, the turn opens a new one.
func (d *Service) BeginTurnWithHistory(ctx context.Context, who reeve.Principal, conversation string,
	r reeve.TurnRequest, history HistoryInput) (reeve.Turn, error) {
	turn, _, err := d.beginTurn(ctx, who, conversation, "", r, &history)
	return turn, err
}

// HistoryInput is the history and the tools of a client that keeps its own history.
type HistoryInput struct {
	reeve.ClientHistory
	Agent string // the agent of a conversation that the turn opens
	// Messages is the history as JSON, in the format of model requests. It is stored by hash. If it is empty, the model
	// sees the messages of the conversation.
	Messages []byte
}

// beginTurn begins a turn and passes its run to the queue after the commit.
func (d *Service) beginTurn(ctx context.Context, who reeve.Principal, conversation, key string, r reeve.TurnRequest,
	history *HistoryInput) (turn reeve.Turn, isNew bool, err error) {
	var run reeve.Run
	err = d.DB.Update(ctx, func(tx *store.Tx) error {
		w, err := tx.Queue().LockWorkspace(ctx, who.Workspace)
		if err != nil {
			return err
		}
		id := conversation
		if id == "" && history != nil {
			opened, err := openConversation(ctx, tx, who, "", "openai", reeve.ConversationRequest{Agent: history.Agent})
			if err != nil {
				return err
			}
			id = opened.ID
		}
		c, a, err := getTurnTarget(ctx, &tx.Snap, w, who, id, r.Agent)
		if err != nil {
			return err
		}
		if err := checkTools(ctx, tx, who.Workspace, r.Tools); err != nil {
			return err
		}
		run, isNew, err = d.insertTurn(ctx, tx, c, reeve.Run{AgentID: a.ID, UserID: who.User}, key, r, history)
		return err
	})
	if err != nil {
		return turn, false, err
	}
	if isNew {
		d.Broadcaster.MarkPending(run.SessionID)
		d.Queue.Enqueue(run)
		d.Broadcaster.Flush(run.SessionID)
	}
	return run.Turn(), isNew, nil
}

// checkTools fails with Validation if a tool is not in the workspace's catalogue.
func checkTools(ctx context.Context, tx *store.Tx, workspace string, tools []string) error {
	for i, id := range tools {
		_, err := tx.Agents().GetTool(ctx, workspace, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			return newFieldError(fmt.Sprintf("/tools/%d", i), fmt.Sprintf("is unknown: there is no tool %q", id),
				"a tool of the workspace; list them with reeve tools")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// getTurnTarget returns the conversation and the agent of a new turn. A named agent must be a participant. Without a
// name, it is the conversation's main agent. It fails if the principal cannot begin a turn there now.
func getTurnTarget(ctx context.Context, s *store.Snap, w reeve.Workspace, who reeve.Principal,
	conversation, agent string) (c reeve.Conversation, a reeve.Agent, err error) {
	if c, err = s.Chat().GetConversation(ctx, who.Workspace, VisibleTo(who), conversation); err != nil {
		return c, a, err
	}
	if c.State != reeve.ConversationActive {
		return c, a, reeve.Errorf(reeve.Conflict, "the conversation is %s", c.State).
			Hintf("open another conversation, or make this one active again")
	}
	a, err = s.Agents().GetAgent(ctx, who.Workspace, cmp.Or(agent, c.AgentID))
	isParticipant := slices.ContainsFunc(c.Participants, func(p reeve.Participant) bool {
		return p.Kind == reeve.AgentParticipant && p.ID == a.ID
	})
	switch {
	case agent != "" && (reeve.CodeOf(err) == reeve.NotFound || err == nil && !isParticipant && a.ID != c.AgentID):
		return c, a, newFieldError("/agent", fmt.Sprintf("%q is not a participant of the conversation", agent),
			"a participating agent")
	case reeve.CodeOf(err) == reeve.NotFound:
		return c, a, reeve.Errorf(reeve.Conflict, "the conversation's agent is gone").
			Hintf("open a conversation with another agent")
	case err != nil:
		return c, a, err
	case w.Hold != nil:
		return c, a, w.Hold.Err()
	case w.StoppedAt != nil:
		return c, a, reeve.Errorf(reeve.Stopped, "everything in the workspace is stopped").
			Hintf("turn the kill switch off first")
	case a.StoppedAt != nil:
		return c, a, reeve.Errorf(reeve.Stopped, "the agent is stopped").Hintf("turn its kill switch off first")
	}
	return c, a, checkCanTalk(a)
}

// turnKey returns the run key of a turn.
func turnKey(agent, conversation, key string) string {
	return reeve.DeriveID("wake", string(reeve.ReasonUser), agent, conversation, key)
}

// insertTurn inserts a turn: the user message, the wake, the run and the frame turn_started. The caller sets the agent,
// the user and, for a delegated turn, the delegation fields of the run. It reports whether the turn is new.
func (d *Service) insertTurn(ctx context.Context, tx *store.Tx, c reeve.Conversation, run reeve.Run, key string,
	r reeve.TurnRequest, history *HistoryInput) (_ reeve.Run, isNew bool, err error) {
	run.ID, run.WorkspaceID, run.Reason, run.ReasonID, run.SessionID, run.Input = tx.NewID(reeve.PrefixRun),
		c.WorkspaceID, reeve.ReasonUser, run.UserID, c.ID, r.Content
	run.ThreadID, run.State, run.Wakes, run.Attempts, run.StartedAt, run.Owner = c.ThreadID(), reeve.RunRunning, 1, 1,
		tx.Now(), d.Process
	if key == "" {
		key = run.ID
	}
	run.Key = turnKey(run.AgentID, c.ID, key)
	message, stored, err := newUserMessage(ctx, tx, run, r, history)
	if err != nil {
		return run, false, err
	}
	w := reeve.Wake{RunKey: run.Key, WorkspaceID: c.WorkspaceID, AgentID: run.AgentID, Reason: reeve.ReasonUser,
		ReasonID: run.UserID, SessionID: c.ID, UserID: run.UserID,
		Input: r.Content, DueAt: tx.Now(), State: reeve.WakeQueued}
	if isNew, err = tx.Queue().InsertWake(ctx, w); err != nil {
		return run, false, err
	}
	if !isNew {
		run, err = getRepeatedTurn(ctx, tx, run.Key, message)
		return run, false, err
	}
	if _, err := tx.Runs().InsertRun(ctx, run); err != nil {
		return run, false, err
	}
	if err := tx.Queue().EndWakes(ctx, []string{run.Key}, reeve.WakeTaken, run.ID, ""); err != nil {
		return run, false, err
	}
	if err := tx.Ledger().AppendMessage(ctx, message); err != nil {
		return run, false, err
	}
	attached, err := tx.Chat().InsertAttachments(ctx, message, c.ID, run.UserID, stored)
	if err != nil {
		return run, false, err
	}
	f := reeve.Frame{Type: reeve.FrameStarted, TurnID: run.ID, AgentID: run.AgentID, UserID: run.UserID,
		ParentID: run.ParentID, ByAgentID: getRequestingAgent(run), MessageID: message.ID, Text: r.Content,
		Attachments: attached}
	if err := tx.Chat().AppendFrame(ctx, c.ID, "started:"+run.ID, f); err != nil {
		return run, false, err
	}
	return run, true, tx.Chat().CountTurn(ctx, c.ID)
}

// newUserMessage returns the message of a turn request and its attachments. It stores attached bytes under their hash.
func newUserMessage(ctx context.Context, tx *store.Tx, run reeve.Run, r reeve.TurnRequest,
	history *HistoryInput) (m reeve.Message, attached []reeve.Attachment, err error) {
	info := reeve.MessageInfo{Type: "said", User: run.UserID, Agent: getRequestingAgent(run), Variables: r.Variables,
		Tools: r.Tools,
		Model: r.Model}
	if history != nil {
		given := history.ClientHistory
		if len(history.Messages) > 0 {
			if given.History, err = tx.Ledger().PutPayload(ctx, run.WorkspaceID, store.ConversationPayload,
				history.Messages); err != nil {
				return m, nil, err
			}
		}
		info.ClientHistory = &given
	}
	for _, a := range r.Attachments {
		if len(a.Data) > 0 || a.URL == "" && a.Hash == "" { // bytes with a hash are stored already
			a.Size = len(a.Data)
			if a.Hash, err = tx.Ledger().PutPayload(ctx, run.WorkspaceID, store.ConversationPayload,
				a.Data); err != nil {
				return m, nil, err
			}
			a.Data = nil
		}
		info.Attachments = append(info.Attachments, a)
	}
	meta, err := json.Marshal(info)
	return reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: run.WorkspaceID, ThreadID: run.ThreadID,
		AgentID: run.AgentID, RunID: run.ID,
		Kind: reeve.UserMessage, Content: r.Content, Metadata: meta}, info.Attachments, err
}

// getRepeatedTurn returns the turn that a key was used for. It fails with Conflict if the message differs.
func getRepeatedTurn(ctx context.Context, tx *store.Tx, key string, message reeve.Message) (run reeve.Run, err error) {
	w, err := tx.Queue().GetWake(ctx, key)
	if err != nil {
		return run, err
	}
	if run, err = tx.Runs().GetRun(ctx, w.WorkspaceID, w.RunID); err != nil {
		return run, err
	}
	list, err := tx.Ledger().RunMessages(ctx, run.WorkspaceID, run.ID, "", 1)
	if err != nil {
		return run, err
	}
	if len(list) == 0 || !isSameMessage(list[0], message) {
		return run, reeve.Errorf(reeve.Conflict,
			"the Idempotency-Key was used before for a different request").
			Hintf("use a new key; nothing was done")
	}
	return run, nil
}

// OnRunEnd appends the last frames of a turn, in the transaction that ends its run.
func (d *Service) OnRunEnd(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.Reason != reeve.ReasonUser || !run.State.IsFinal() {
		return nil
	}
	if run.State == reeve.RunFailed {
		f := reeve.Frame{Type: reeve.FrameError, TurnID: run.ID, AgentID: run.AgentID, Code: run.Code,
			Message: run.Message, Hint: renderHint(run.Code),
			RetryAfterMS: run.RetryAfter.Milliseconds()}
		if err := tx.Chat().AppendFinalFrame(ctx, run.SessionID, "error:"+run.ID, f); err != nil {
			return err
		}
	}
	return tx.Chat().AppendEnd(ctx, run)
}

// AfterRunEnd publishes the frames that OnRunEnd has appended, after the commit.
func (d *Service) AfterRunEnd(run reeve.Run) {
	if run.Reason == reeve.ReasonUser {
		d.Broadcaster.Changed(run.SessionID)
	}
}

// renderHint returns advice for a user whose turn failed.
func renderHint(c reeve.Code) string {
	switch c {
	case reeve.BudgetExceeded:
		return "ask an owner to raise the budget, then send the message again"
	case reeve.ModelFailed, reeve.Unavailable, reeve.Timeout, reeve.RateLimited:
		return "send the message again later"
	case reeve.StepLimit:
		return "send a message with what to do next; the next turn has a new step limit"
	case reeve.Stopped:
		return "turn the kill switch off, then send the message again"
	default:
	}
	return "send another message, or look at the turn for details"
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
