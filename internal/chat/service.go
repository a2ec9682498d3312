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

// RunQueue serves a run that was begun here.
type RunQueue interface{ Enqueue(run reeve.Run) }

// Service begins conversations and turns, and writes how turns end.
type Service struct {
	DB      *store.DB
	Hub     *Broadcaster
	Process string   // who owns the runs begun here; it must be announced in the store
	Server  RunQueue // serves them
	Fetcher Fetcher  // reads what is attached by its address
}

// VisibleTo is the user whose conversations somebody sees: their own, or, empty, everybody's.
func VisibleTo(who reeve.Principal) string {
	if who.Role.Allows(reeve.Owner) {
		return ""
	}
	return who.User
}

// Open begins a conversation, for who asks and the others who are named. A given id opens that one; when it is there
// already it must be with the same agent, and who asks must see it.
func (d *Service) Open(ctx context.Context, who reeve.Principal, id, origin string,
	r reeve.ConversationRequest) (c reeve.Conversation, err error) {
	for i, user := range r.Participants {
		if blank(user) || len(user) > mostName {
			return c, wrong(fmt.Sprintf("/participants/%d", i), "is empty or too long", "a user's name")
		}
	}
	begin := func(tx *store.Tx) (err error) {
		if c, err = open(ctx, tx, who, id, origin, r); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, c)
	}
	if err = d.DB.Update(ctx, begin); id != "" && reeve.CodeOf(err) == reeve.AlreadyExists {
		err = d.DB.Update(ctx, begin) // somebody else has just begun it
	}
	return c, err
}

// open is Open in somebody's transaction.
func open(ctx context.Context, tx *store.Tx, who reeve.Principal, id, origin string,
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
				Hintf("use another session, or name the agent %s", c.AgentID)
		case err == nil || reeve.CodeOf(err) != reeve.NotFound:
			return c, err
		}
	}
	if err := speaks(a); err != nil {
		return c, err
	}
	c = reeve.Conversation{ID: id, WorkspaceID: who.Workspace, AgentID: a.ID, UserID: who.User, Title: r.Title,
		Origin: origin,
		State:  reeve.ConversationActive, CreatedAt: tx.Now(), UpdatedAt: tx.Now()}
	if id == "" {
		c.ID = tx.NewID(reeve.PrefixConversation)
	}
	c.Members = []reeve.Participant{{Kind: reeve.UserParticipant, ID: who.User, AddedBy: who.User},
		{Kind: reeve.AgentParticipant, ID: a.ID, AddedBy: who.User}}
	for i, user := range r.Participants {
		if user == who.User {
			continue
		}
		if err := CheckUser(ctx, &tx.Snap, who.Workspace, user, fmt.Sprintf("/participants/%d", i)); err != nil {
			return c, err
		}
		c.Members = append(c.Members, reeve.Participant{Kind: reeve.UserParticipant, ID: user, AddedBy: who.User})
	}
	if err := tx.Chat().InsertConversation(ctx, c); err != nil {
		return c, err
	}
	return tx.Chat().GetConversation(ctx, who.Workspace, "", c.ID)
}

// CheckUser refuses a user whom nobody in the workspace is: a typo would be a participant for good. The path is where
// the name stands.
func CheckUser(ctx context.Context, s *store.Snap, workspace, user, path string) error {
	ok, err := s.Agents().HasUser(ctx, workspace, user)
	if err == nil && !ok {
		err = wrong(path, fmt.Sprintf("names nobody: %q has no token of this workspace", user),
			"a user of the workspace")
	}
	return err
}

// speaks tells why nobody can talk to an agent; nil means that people can.
func speaks(a reeve.Agent) error {
	switch {
	case a.Lifecycle != reeve.AgentActive:
		return reeve.Errorf(reeve.Conflict, "the agent is %s", a.Lifecycle).Hintf("talk to one that is active")
	case !a.Mode.Wakes(reeve.ReasonUser):
		return reeve.Errorf(reeve.Conflict, "the agent is %s: it does not wake for a person", a.Mode).
			Hintf("make it hybrid or interactive")
	}
	return nil
}

// BeginTurn begins a turn: what a person says, the wake and the run that answers it, and what clients are told, in one
// transaction. The same key again gives the same turn, and false; with anything else said it is refused.
func (d *Service) BeginTurn(ctx context.Context, who reeve.Principal, conversation, key string,
	r reeve.TurnRequest) (turn reeve.Turn, fresh bool, err error) {
	if err := check(r); err != nil {
		return turn, false, err
	}
	if err := d.gather(ctx, who, conversation, key, &r); err != nil {
		return turn, false, err
	}
	return d.speak(ctx, who, conversation, key, r, nil)
}

// BeginTurnWithHistory begins a turn for a client that keeps a history of its own: what it brings along counts, and not
// what was said before in the conversation. It may bring nothing but results of tools that it offers itself. Where no
// conversation is named, one begins with the turn.
func (d *Service) BeginTurnWithHistory(ctx context.Context, who reeve.Principal, conversation string,
	r reeve.TurnRequest, b HistoryInput) (reeve.Turn, error) {
	turn, _, err := d.speak(ctx, who, conversation, "", r, &b)
	return turn, err
}

// HistoryInput is what a client with a history of its own brings along.
type HistoryInput struct {
	reeve.ClientHistory
	With string // the agent that leads the conversation, if it begins with the turn
	// the history: messages as models are told them, in JSON; kept by hash. Empty means that the conversation's own
	// counts
	Messages []byte
}

func (d *Service) speak(ctx context.Context, who reeve.Principal, conversation, key string, r reeve.TurnRequest,
	b *HistoryInput) (turn reeve.Turn, fresh bool, err error) {
	var run reeve.Run
	err = d.DB.Update(ctx, func(tx *store.Tx) error {
		w, err := tx.Queue().LockWorkspace(ctx, who.Workspace)
		if err != nil {
			return err
		}
		id := conversation
		if id == "" && b != nil {
			begun, err := open(ctx, tx, who, "", "openai", reeve.ConversationRequest{Agent: b.With})
			if err != nil {
				return err
			}
			id = begun.ID
		}
		c, a, err := enter(ctx, &tx.Snap, w, who, id, r.Agent)
		if err != nil {
			return err
		}
		if err := known(ctx, tx, who.Workspace, r.Tools); err != nil {
			return err
		}
		run, fresh, err = d.begin(ctx, tx, c, reeve.Run{AgentID: a.ID, UserID: who.User}, key, r, b)
		return err
	})
	if err != nil {
		return turn, false, err
	}
	if fresh {
		d.Hub.MarkPending(run.SessionID)
		d.Server.Enqueue(run)
		d.Hub.Flush(run.SessionID)
	}
	return run.Turn(), fresh, nil
}

// known refuses tools that are not in the workspace's catalogue: left out in silence, they would be missed later.
func known(ctx context.Context, tx *store.Tx, workspace string, tools []string) error {
	for i, id := range tools {
		_, err := tx.Agents().GetTool(ctx, workspace, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			return wrong(fmt.Sprintf("/tools/%d", i), fmt.Sprintf("names no tool: %q", id),
				"a tool of the workspace; reeve tools lists them")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter finds a conversation in which somebody may speak now, and who answers: the agent that leads it, unless another
// that takes part is named.
func enter(ctx context.Context, s *store.Snap, w reeve.Workspace, who reeve.Principal,
	conversation, agent string) (c reeve.Conversation, a reeve.Agent, err error) {
	if c, err = s.Chat().GetConversation(ctx, who.Workspace, VisibleTo(who), conversation); err != nil {
		return c, a, err
	}
	if c.State != reeve.ConversationActive {
		return c, a, reeve.Errorf(reeve.Conflict, "the conversation is %s", c.State).
			Hintf("begin another, or make it active again")
	}
	a, err = s.Agents().GetAgent(ctx, who.Workspace, cmp.Or(agent, c.AgentID))
	here := slices.ContainsFunc(c.Members, func(p reeve.Participant) bool {
		return p.Kind == reeve.AgentParticipant &&
			p.ID == a.ID
	})
	switch {
	case agent != "" && (reeve.CodeOf(err) == reeve.NotFound || err == nil && !here && a.ID != c.AgentID):
		return c, a, wrong("/agent", fmt.Sprintf("%q takes no part in the conversation", agent), "an agent that does")
	case reeve.CodeOf(err) == reeve.NotFound:
		return c, a, reeve.Errorf(reeve.Conflict, "the conversation's agent is gone").
			Hintf("begin a conversation with another")
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
	return c, a, speaks(a)
}

// turnKey is the run key of a turn.
func turnKey(agent, conversation, key string) string {
	return reeve.Key("wake", string(reeve.ReasonUser), agent, conversation, key)
}

// begin begins a turn. The run says who answers whom: its agent, its user, and, if another's call began it, that.
func (d *Service) begin(ctx context.Context, tx *store.Tx, c reeve.Conversation, run reeve.Run, key string,
	r reeve.TurnRequest, b *HistoryInput) (_ reeve.Run, fresh bool, err error) {
	run.ID, run.WorkspaceID, run.Reason, run.ReasonID, run.SessionID, run.Input = tx.NewID(reeve.PrefixRun),
		c.WorkspaceID, reeve.ReasonUser, run.UserID, c.ID, r.Content
	run.ThreadID, run.State, run.Wakes, run.Attempts, run.StartedAt, run.Owner = c.ThreadID(), reeve.RunRunning, 1, 1,
		tx.Now(), d.Process
	if key == "" {
		key = run.ID
	}
	run.Key = turnKey(run.AgentID, c.ID, key)
	said, err := say(ctx, tx, run, r, b)
	if err != nil {
		return run, false, err
	}
	w := reeve.Wake{RunKey: run.Key, WorkspaceID: c.WorkspaceID, AgentID: run.AgentID, Reason: reeve.ReasonUser,
		ReasonID: run.UserID, SessionID: c.ID, UserID: run.UserID,
		Input: r.Content, DueAt: tx.Now(), State: reeve.WakeQueued}
	if fresh, err = tx.Queue().InsertWake(ctx, w); err != nil {
		return run, false, err
	}
	if !fresh {
		run, err = again(ctx, tx, run.Key, said)
		return run, false, err
	}
	if _, err := tx.Runs().InsertRun(ctx, run); err != nil {
		return run, false, err
	}
	if err := tx.Queue().EndWakes(ctx, []string{run.Key}, reeve.WakeTaken, run.ID, ""); err != nil {
		return run, false, err
	}
	if err := tx.Ledger().AppendMessage(ctx, said); err != nil {
		return run, false, err
	}
	f := reeve.Frame{Type: reeve.FrameStarted, TurnID: run.ID, AgentID: run.AgentID, UserID: run.UserID,
		ParentID: run.ParentID, ByAgentID: by(run), MessageID: said.ID, Text: r.Content}
	if err := tx.Chat().AppendFrame(ctx, c.ID, "started:"+run.ID, f); err != nil {
		return run, false, err
	}
	return run, true, tx.Chat().CountTurn(ctx, c.ID)
}

// say is the message of what a person says. The bytes that come with it are kept under their hash.
func say(ctx context.Context, tx *store.Tx, run reeve.Run, r reeve.TurnRequest,
	b *HistoryInput) (m reeve.Message, err error) {
	info := reeve.MessageInfo{Type: "said", User: run.UserID, Agent: by(run), Variables: r.Variables, Tools: r.Tools,
		Model: r.Model}
	if b != nil {
		given := b.ClientHistory
		if len(b.Messages) > 0 {
			if given.History, err = tx.Ledger().PutPayload(ctx, run.WorkspaceID, store.ConversationPayload,
				b.Messages); err != nil {
				return m, err
			}
		}
		info.Given = &given
	}
	for _, a := range r.Attachments {
		if len(a.Data) > 0 || a.URL == "" && a.Hash == "" { // what has a hash is kept already
			a.Size = len(a.Data)
			if a.Hash, err = tx.Ledger().PutPayload(ctx, run.WorkspaceID, store.ConversationPayload,
				a.Data); err != nil {
				return m, err
			}
			a.Data = nil
		}
		info.Attachments = append(info.Attachments, a)
	}
	meta, err := json.Marshal(info)
	return reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: run.WorkspaceID, ThreadID: run.ThreadID,
		AgentID: run.AgentID, RunID: run.ID,
		Kind: reeve.UserMessage, Content: r.Content, Metadata: meta}, err
}

// again finds the turn that a key was used for, provided the same was said.
func again(ctx context.Context, tx *store.Tx, key string, said reeve.Message) (run reeve.Run, err error) {
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
	if len(list) == 0 || !same(list[0], said) {
		return run, reeve.Errorf(reeve.Conflict,
			"the Idempotency-Key was used before, for something else that was said").
			Hintf("use a new key; nothing was done")
	}
	return run, nil
}

// OnRunEnd writes how a turn ended, into the transaction that ends it.
func (d *Service) OnRunEnd(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.Reason != reeve.ReasonUser || !run.State.Final() {
		return nil
	}
	if run.State == reeve.RunFailed {
		e := reeve.Frame{Type: reeve.FrameError, TurnID: run.ID, AgentID: run.AgentID, Code: run.Code,
			Message: run.Message, Hint: hint(run.Code),
			RetryAfterMS: run.RetryAfter.Milliseconds()}
		if err := tx.Chat().AppendFinalFrame(ctx, run.SessionID, "error:"+run.ID, e); err != nil {
			return err
		}
	}
	return tx.Chat().AppendEnd(ctx, run)
}

// AfterRunEnd tells it.
func (d *Service) AfterRunEnd(run reeve.Run) {
	if run.Reason == reeve.ReasonUser {
		d.Hub.Changed(run.SessionID)
	}
}

// hint is what to do about a turn that failed.
func hint(c reeve.Code) string {
	switch c {
	case reeve.BudgetExceeded:
		return "an owner can raise the budget; then say it again"
	case reeve.ModelFailed, reeve.Unavailable, reeve.Timeout, reeve.RateLimited:
		return "say it again in a while"
	case reeve.StepLimit:
		return "say how to go on; the next turn starts afresh"
	case reeve.Stopped:
		return "turn the kill switch off, then say it again"
	default:
	}
	return "the conversation goes on: say something else, or look at the turn for details"
}

// blank tells whether nothing is said.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
