package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// agentNamePattern matches the names of agents.
var agentNamePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// resolveAgentFilter returns the id of the agent that a list is filtered by. Without a name it returns "".
func resolveAgentFilter(ctx context.Context, snap *store.Snap, workspace, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	a, err := snap.Agents().GetAgent(ctx, workspace, name)
	return a.ID, err
}

// agentHandlers serves agents, their state and their threads.
type agentHandlers struct {
	db          *store.DB
	gate        *gate.Gate
	scheduler   *wake.Scheduler
	jobs        ScriptJobs
	delegations Delegations
	announcer   changeAnnouncer
}

func (h *agentHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
}) (*body[api.AgentList], error) {
	after, err := parseNameCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &body[api.AgentList]{}
	err = h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Agents, err = snap.Agents().ListAgents(ctx, who.Workspace, after, in.Limit)
		return err
	})
	if n := len(out.Body.Agents); n == in.Limit {
		out.Body.Next = nameCursor + out.Body.Agents[n-1].Name
	}
	return out, err
}

func (h *agentHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.AgentRequest
}) (*body[reeve.Agent], error) {
	if in.Body.Name == nil {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "an agent needs a name",
			Fields: []reeve.Field{{Path: "/name", Message: "is missing", Expected: "a name"}}}
	}
	if l := in.Body.Lifecycle; l == nil {
		in.Body.Lifecycle = new(reeve.AgentActive)
	} else if *l == reeve.AgentDestroyed {
		return nil, reeve.InvalidField("/lifecycle", "cannot be destroyed for a new agent",
			"created, active or dormant")
	}
	out := &body[reeve.Agent]{}
	return out, h.announcer.update(ctx, who, func(tx *store.Tx) (tokens []reeve.Token, err error) {
		a := reeve.Agent{ID: tx.NewID(reeve.PrefixAgent), WorkspaceID: who.Workspace, Kind: "assistant",
			Lifecycle: reeve.AgentCreated, Mode: reeve.Hybrid,
			Categories: []string{}, Config: json.RawMessage("{}"), CreatedAt: tx.Now(), UpdatedAt: tx.Now()}
		if err := applyAgentRequest(ctx, tx, &a, in.Body); err != nil {
			return nil, err
		}
		if err := tx.Agents().InsertAgent(ctx, a); err != nil {
			return nil, err
		}
		if err := tx.Agents().StampAgent(ctx, a.ID); err != nil {
			return nil, err
		}
		if out.Body, err = tx.Agents().GetAgent(ctx, who.Workspace, a.ID); err != nil { // with stored defaults
			return nil, err
		}
		if tokens, err = recordAgentChange(ctx, tx, who, nil, &out.Body); err != nil {
			return nil, err
		}
		return tokens, tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

// recordAgentChange records what changed of an agent and returns the tokens of the change, or none if nothing changed.
// The agent before or after is nil if it did not exist.
func recordAgentChange(ctx context.Context, tx *store.Tx, who reeve.Principal, before,
	after *reeve.Agent) ([]reeve.Token, error) {
	known := after
	var was, is any
	if before != nil {
		known, was = before, before
	}
	if after != nil {
		known, is = after, after
	}
	change, err := store.DiffEntity("agent", known.ID, known.Name, was, is)
	if err != nil || change.Action == reeve.EntityChanged && len(change.Fields) == 0 {
		return nil, err
	}
	return known.ChangeTokens(change.Action), tx.Queue().InsertPersonChanges(ctx, who.Workspace, who.User, change)
}

// applyAgentRequest applies a request to an agent. It resolves category names to ids, and fails if a category does not
// exist. It also fails if the policy names a tool that does not exist, because a misspelled id would leave the intended
// tool without a policy. Deleted tools that the policy named before may stay.
func applyAgentRequest(ctx context.Context, tx *store.Tx, a *reeve.Agent, r api.AgentRequest) error {
	oldTools := a.Policy.Tools
	if r.Categories != nil {
		ids, err := tx.ResolveCategories(ctx, a.WorkspaceID, *r.Categories, a.Categories)
		if err != nil {
			return err
		}
		r.Categories = &ids
	}
	if err := applyAgentFields(a, r); err != nil || r.Policy == nil {
		return err
	}
	for id := range a.Policy.Tools {
		if _, named := oldTools[id]; named {
			continue
		}
		_, err := tx.Agents().GetTool(ctx, a.WorkspaceID, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			return (&reeve.Error{Code: reeve.Validation, Message: "the policy names a tool that does not exist",
				Fields: []reeve.Field{{Path: "/policy/tools/" + id, Message: "is not a tool",
					Expected: "the id of a tool"}}}).Hintf("list the tools with reeve tools; nothing was changed")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyAgentFields copies the fields that a request sets to an agent. It fails if a field is invalid.
func applyAgentFields(a *reeve.Agent, r api.AgentRequest) error {
	if r.Name != nil && *r.Name != a.Name {
		if err := reeve.CheckName(*r.Name); err != nil {
			return err
		}
		a.Name = *r.Name
	}
	if r.Kind != nil {
		a.Kind = *r.Kind
	}
	if r.Lifecycle != nil {
		if err := a.Lifecycle.CheckTransition(*r.Lifecycle); err != nil {
			return err
		}
		a.Lifecycle = *r.Lifecycle
	}
	if r.Mode != nil {
		a.Mode = *r.Mode
	}
	if r.ThrottleMS != nil {
		a.ThrottleMS = *r.ThrottleMS
	}
	if r.Categories != nil {
		a.Categories = *r.Categories
	}
	if r.Policy != nil {
		if err := r.Policy.Validate(); err != nil {
			return err
		}
		a.Policy = *r.Policy
	}
	if r.Config != nil && string(r.Config) != "null" {
		if err := gate.CheckAgentConfig(r.Config); err != nil {
			return err
		}
		a.Config = r.Config
	}
	return nil
}

func (h *agentHandlers) get(ctx context.Context, who reeve.Principal, in *AgentPath) (*body[reeve.Agent], error) {
	out := &body[reeve.Agent]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		return err
	})
}

func (h *agentHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body api.AgentRequest
}) (*body[reeve.Agent], error) {
	out := &body[reeve.Agent]{}
	err := h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		if err := tx.BeginRevision(ctx, who.Workspace); err != nil {
			return nil, err
		}
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return nil, err
		}
		was := a
		if err := applyAgentRequest(ctx, tx, &a, in.Body); err != nil {
			return nil, err
		}
		if a.Lifecycle == reeve.AgentDestroyed { // before its turns end, so that they report the cancelled calls
			if err := h.cancelWork(ctx, tx, a, "destroyed"); err != nil {
				return nil, err
			}
		}
		if err := tx.Agents().ChangeAgent(ctx, a); err != nil {
			return nil, err
		}
		if out.Body, err = tx.Agents().GetAgent(ctx, who.Workspace, a.ID); err != nil { // with stored defaults
			return nil, err
		}
		return recordAgentChange(ctx, tx, who, &was, &out.Body)
	})
	if err == nil && out.Body.Lifecycle == reeve.AgentDestroyed {
		h.scheduler.Interrupt(who.Workspace, out.Body.ID, reeve.ErrEnded)
		h.delegations.Wakeup() // another agent's call may wait for its run
	}
	return out, err
}

// cancelWork cancels the pending calls and script jobs of an agent that is about to be destroyed or deleted. The
// parameter end is "destroyed" or "removed", for their messages.
func (h *agentHandlers) cancelWork(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error {
	if err := h.gate.CancelForAgent(ctx, tx, a, end); err != nil {
		return err
	}
	return h.jobs.CloseJobsOfAgent(ctx, tx, a, end)
}

func (h *agentHandlers) remove(ctx context.Context, who reeve.Principal, in *AgentPath) (*none, error) {
	var a reeve.Agent
	err := h.announcer.update(ctx, who, func(tx *store.Tx) (_ []reeve.Token, err error) {
		if err := tx.BeginRevision(ctx, who.Workspace); err != nil {
			return nil, err
		}
		if a, err = tx.Agents().GetAgent(ctx, who.Workspace, in.Agent); err != nil {
			return nil, err
		}
		// before its turns end, so that they report the cancelled calls
		if err := h.cancelWork(ctx, tx, a, "removed"); err != nil {
			return nil, err
		}
		if err := tx.Agents().DeleteAgent(ctx, who.Workspace, a.ID); err != nil {
			return nil, err
		}
		return recordAgentChange(ctx, tx, who, &a, nil)
	})
	if err == nil {
		h.scheduler.Interrupt(who.Workspace, a.ID, reeve.ErrEnded)
		h.delegations.Wakeup() // another agent's call may wait for its run
	}
	return nil, err
}

func (h *agentHandlers) listMessages(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Page
	Session string `query:"session" maxLength:"128" doc:"Session. Default: your default session"`
	Run     string `query:"run" maxLength:"128" doc:"Run or turn; instead of session"`
}) (*body[api.MessageList], error) {
	if err := checkMessageCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.MessageList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		a, missing := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if reeve.CodeOf(missing) == reeve.NotFound && reeve.IsID(in.Agent) {
			a.ID = in.Agent // the messages of a deleted agent can still be read by its id
		} else if missing != nil {
			return missing
		}
		var err error
		if in.Session, err = resolveSession(ctx, snap, who, in.Session); err != nil {
			return err
		}
		if isHidden, err := isSessionHidden(ctx, snap, who, in.Session); err != nil || isHidden {
			out.Body.Messages = []reeve.Message{} // the same as for a missing session
			return err
		}
		list, err := listThreadMessages(ctx, snap, who, a.ID, in.Session, in.Run, in.Page)
		if err == nil && len(list) == 0 && missing != nil {
			return missing
		}
		out.Body.Messages = list
		return err
	})
	if n := len(out.Body.Messages); n == in.Limit {
		out.Body.Next = store.MessageCursor(out.Body.Messages[n-1])
	}
	return out, err
}

// listThreadMessages returns a page of the messages of a run or a session. Without both it reads the caller's default
// session. For a turn it returns only the messages of that turn, which are part of the conversation's thread.
func listThreadMessages(ctx context.Context, snap *store.Snap, who reeve.Principal, agent, session, run string,
	page Page) ([]reeve.Message, error) {
	if run == "" {
		return visibleLedger(snap, who).ListMessages(ctx, who.Workspace,
			reeve.SessionThread(agent, cmp.Or(session, reeve.DefaultSession(who.User))), page.Cursor, page.Limit)
	}
	if isHidden, err := isRunHidden(ctx, snap, who, run); err != nil || isHidden {
		return []reeve.Message{}, err // the same as for a missing run
	}
	r, err := snap.Runs().GetRun(ctx, who.Workspace, run)
	switch {
	case err == nil && r.Reason == reeve.ReasonUser && r.AgentID == agent:
		return visibleLedger(snap, who).ListRunMessages(ctx, who.Workspace, run, page.Cursor, page.Limit)
	case err != nil && reeve.CodeOf(err) != reeve.NotFound: // a thread may exist without a run
		return nil, err
	}
	return visibleLedger(snap, who).
		ListMessages(ctx, who.Workspace, reeve.RunThread(agent, run), page.Cursor, page.Limit)
}
