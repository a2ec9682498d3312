package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// TurnStarter begins turns for delegated tasks.
type TurnStarter interface {
	BeginDelegatedTurn(ctx context.Context, tx *store.Tx, a reeve.DelegationRequest) (reeve.Run, error)
	ServeDelegatedTurn(run reeve.Run)
}

// AwaitedCalls stores the results of waiting calls.
type AwaitedCalls interface {
	CompleteAwaited(ctx context.Context, tx *store.Tx, workspace, operation string, end reeve.CallOutcome) error
}

// DefaultDepth is the default limit of nested calls between agents.
const DefaultDepth = 3

// Delegation lets agents call agents. One transaction stores the call, the new turn and the operation that waits.
// Another stores the end of the turn and the result of the call. So the caller gets exactly one result, even after a
// crash, and no process waits.
type Delegation struct {
	DelegationConfig
	changed notify.Signal // a deadline was set or brought forward
}

// DelegationConfig configures a Delegation.
type DelegationConfig struct {
	DB    *store.DB
	Turns TurnStarter
	Gate  AwaitedCalls
	Depth int // limit of nested calls between agents. Default: DefaultDepth
}

// NewDelegation returns a Delegation.
func NewDelegation(cfg DelegationConfig) *Delegation {
	if cfg.Depth == 0 {
		cfg.Depth = DefaultDepth
	}
	return &Delegation{DelegationConfig: cfg, changed: notify.New()}
}

// Wakeup makes [Deadlines] look for passed deadlines now.
func (d *Delegation) Wakeup() { d.changed.Notify() }

// Delegate starts a task for another agent, in a new conversation. That agent gets only the input.
func (d *Delegation) Delegate(ctx context.Context, inv *reeve.Invocation, to, input string,
	within time.Duration) error {
	return d.startTurn(ctx, inv, reeve.DelegationRequest{Input: input}, to, within)
}

// LoopIn starts a turn of another agent in the caller's conversation.
func (d *Delegation) LoopIn(ctx context.Context, inv *reeve.Invocation, to, input string, within time.Duration) error {
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return err
	}
	run, err := tx.Runs().GetRun(ctx, inv.Workspace, inv.Run)
	if err != nil && reeve.CodeOf(err) != reeve.NotFound {
		return err
	}
	if err != nil || run.Reason != reeve.ReasonUser {
		return reeve.Errorf(reeve.Conflict, "this run has no conversation that another agent could join").
			Hintf("delegate the task instead")
	}
	return d.startTurn(ctx, inv, reeve.DelegationRequest{Input: input, Conversation: run.SessionID}, to, within)
}

// IsListed reports whether an agent is in a list. Names and ids are accepted. An agent that does not exist is not
// listed.
func (d *Delegation) IsListed(ctx context.Context, workspace, agent string, list []string) (is bool, err error) {
	if slices.Contains(list, agent) {
		return true, nil
	}
	err = d.DB.View(ctx, func(s *store.Snap) error {
		a, err := s.Agents().GetAgent(ctx, workspace, agent)
		if reeve.CodeOf(err) == reeve.NotFound {
			return nil
		}
		is = err == nil && (slices.Contains(list, a.ID) || slices.Contains(list, a.Name))
		return err
	})
	return is, err
}

// Exists reports whether an agent with that name or id exists.
func (d *Delegation) Exists(ctx context.Context, workspace, agent string) (bool, error) {
	err := d.DB.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().GetAgent(ctx, workspace, agent)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return false, nil
	}
	return err == nil, err
}

// startTurn begins the turn of another agent and returns an InProgress error, which makes the call wait.
func (d *Delegation) startTurn(ctx context.Context, inv *reeve.Invocation, a reeve.DelegationRequest, to string,
	within time.Duration) error {
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return err
	}
	a.Workspace, a.User, a.Operation, a.Ancestors = inv.Workspace, inv.User, inv.Operation, inv.Ancestors
	a.OnBehalfOf = inv.OnBehalfOf(true)
	if a.Agent, err = d.getAgent(ctx, tx, inv.Workspace, to); err != nil {
		return err
	}
	if err := d.checkChain(ctx, tx, a); err != nil {
		return err
	}
	run, err := d.Turns.BeginDelegatedTurn(ctx, tx, a)
	if err != nil {
		return err
	}
	inv.AfterCommit(func() {
		d.Turns.ServeDelegatedTurn(run)
		if within < deadlinePoll {
			d.Wakeup() // the deadline is before the next poll
		}
	})
	waits := reeve.Errorf(reeve.InProgress, "%s was asked, in run %s", a.Agent.Name, run.ID)
	waits.RetryAfter = within
	return waits
}

// getAgent returns an agent that can be asked now.
func (d *Delegation) getAgent(ctx context.Context, tx *store.Tx, workspace, to string) (reeve.Agent, error) {
	a, err := tx.Agents().GetAgent(ctx, workspace, to)
	if reeve.CodeOf(err) == reeve.NotFound {
		return a, reeve.Errorf(reeve.NotFound, "agent %q not found", to).Hintf("%s", d.listNames(ctx, tx, workspace))
	}
	if err != nil {
		return a, err
	}
	script, err := tx.Automations().IsAutomation(ctx, a.ID)
	switch {
	case err != nil:
		return a, err
	case script:
		return a, reeve.Errorf(reeve.Unsupported, "%s is an automation and cannot answer", a.Name).
			Hintf("ask an agent with a model brain")
	case a.Lifecycle != reeve.AgentActive:
		return a, reeve.Errorf(reeve.Conflict, "the agent %s is %s", a.Name, a.Lifecycle).Hintf("ask an active agent")
	case a.StoppedAt != nil:
		return a, reeve.Errorf(reeve.Stopped, "the agent %s is stopped", a.Name).Hintf("a member can resume it")
	}
	return a, nil
}

// maxListedAgents bounds the names in the hint of an unknown agent.
const maxListedAgents = 20

func (d *Delegation) listNames(ctx context.Context, tx *store.Tx, workspace string) string {
	list, err := tx.Agents().ListAgents(ctx, workspace, "", 10*maxListedAgents)
	if err != nil {
		return "list the workspace's agents"
	}
	var names []string
	for _, a := range list {
		if a.Lifecycle == reeve.AgentActive && len(names) < maxListedAgents {
			names = append(names, a.Name)
		}
	}
	return "the workspace has " + strings.Join(names, ", ")
}

// checkChain fails if the call would form a cycle or exceed the depth limit.
func (d *Delegation) checkChain(ctx context.Context, tx *store.Tx, a reeve.DelegationRequest) error {
	circle := slices.IndexFunc(a.Ancestors, func(b reeve.Ancestor) bool { return b.AgentID == a.Agent.ID })
	if circle < 0 && len(a.Ancestors) <= d.Depth {
		return nil
	}
	var names []string
	for _, b := range a.Ancestors {
		one, err := tx.Agents().GetAgent(ctx, a.Workspace, b.AgentID)
		if err != nil {
			return err
		}
		names = append(names, one.Name)
	}
	path := strings.Join(append(names, a.Agent.Name), " → ")
	if circle >= 0 {
		return reeve.Errorf(reeve.Denied, "this call would form a cycle: %s", path).
			Hintf("answer with what you have; the caller is waiting")
	}
	return reeve.Errorf(reeve.Denied, "agents may call agents at most %d deep: %s", d.Depth, path).
		Hintf("do the task yourself, or answer with what you have")
}

// OnRunEnd stores the result of the call that began a run, in the transaction that ends the run.
func (d *Delegation) OnRunEnd(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.CallerOperationID == "" || !run.State.IsFinal() {
		return nil
	}
	end := d.outcome(ctx, tx, run)
	var err error
	if end.Untrusted, err = tx.Ledger().HasOutsideText(ctx, run.WorkspaceID, run.ID); err != nil {
		return err
	}
	return d.Gate.CompleteAwaited(ctx, tx, run.WorkspaceID, run.CallerOperationID, end)
}

// outcome returns a run's end as the result of the call that began it.
func (d *Delegation) outcome(ctx context.Context, tx *store.Tx, run reeve.Run) reeve.CallOutcome {
	end := reeve.CallOutcome{Content: run.Output, Spent: run.Spent}
	if run.State == reeve.RunCompleted {
		return end
	}
	name := run.AgentID
	if a, found, err := tx.Agents().FindAgent(ctx, run.WorkspaceID, run.AgentID); err == nil && found {
		name = a.Name
	}
	code := reeve.ToolFailed
	if slices.Contains(sharedCodes, run.Code) {
		code = run.Code
	}
	if end.Err = reeve.Errorf(code, "%s did not answer: its run %s is %s", name, run.ID, run.State); run.Message != "" {
		end.Err.Message += ": " + run.Message
	}
	return end
}

// sharedCodes are the codes of a failed run that the call also gets. For any other code it gets ToolFailed.
var sharedCodes = []reeve.Code{reeve.AssemblyFailed, reeve.BudgetExceeded, reeve.Canceled, reeve.Crashed,
	reeve.ModelFailed, reeve.RateLimited, reeve.StepLimit, reeve.Stopped,
	reeve.Timeout, reeve.Unavailable}
