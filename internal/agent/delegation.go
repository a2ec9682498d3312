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

// TurnStarter begins turns that agents ask for.
type TurnStarter interface {
	BeginDelegatedTurn(ctx context.Context, tx *store.Tx, a reeve.DelegationRequest) (reeve.Run, error)
	ServeDelegatedTurn(run reeve.Run)
}

// AwaitedCalls records what calls came to that wait.
type AwaitedCalls interface {
	CompleteAwaited(ctx context.Context, tx *store.Tx, workspace, operation string, end reeve.CallOutcome) error
}

// DefaultDepth is how many calls of agents by agents may lie within each other when the operator does not say.
const DefaultDepth = 3

// Delegation lets agents call agents. The call, the conversation that it begins and the row that waits for the answer
// are one transaction, and so are the end of the other's run and the answer: whatever dies in between, the other
// answers once, and the caller hears it once. Nothing waits but rows.
type Delegation struct {
	DelegationConfig
	changed notify.Signal // a deadline was set, or brought forward
}

// DelegationConfig configures a Delegation.
type DelegationConfig struct {
	DB    *store.DB
	Turns  TurnStarter
	Gate  AwaitedCalls
	Depth int // how many calls of agents by agents may lie within each other. Default: DefaultDepth
}

// NewDelegation makes a Delegation.
func NewDelegation(cfg DelegationConfig) *Delegation {
	if cfg.Depth == 0 {
		cfg.Depth = DefaultDepth
	}
	return &Delegation{DelegationConfig: cfg, changed: notify.New()}
}

// Wakeup makes Deadlines look now.
func (d *Delegation) Wakeup() { d.changed.Notify() }

// Delegate hands a task to another agent, which knows nothing but the input.
func (d *Delegation) Delegate(ctx context.Context, inv *reeve.Invocation, to, input string,
	within time.Duration) error {
	return d.startTurn(ctx, inv, reeve.DelegationRequest{Input: input}, to, within)
}

// LoopIn calls another agent into the conversation that the call is made in.
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
		return reeve.Errorf(reeve.Conflict, "there is no conversation to call another agent into").
			Hintf("delegate the task instead")
	}
	return d.startTurn(ctx, inv, reeve.DelegationRequest{Input: input, Conversation: run.SessionID}, to, within)
}

// IsListed tells whether an agent is one of a list. Both may name it by its name or its id; one that is not there is
// none.
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

// Exists tells whether there is an agent of that name or id.
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
			d.Wakeup() // its time is up before Deadlines would look
		}
	})
	waits := reeve.Errorf(reeve.InProgress, "%s has been asked, in %s", a.Agent.Name, run.ID)
	waits.RetryAfter = within
	return waits
}

// getAgent gives an agent that can be asked now.
func (d *Delegation) getAgent(ctx context.Context, tx *store.Tx, workspace, to string) (reeve.Agent, error) {
	a, err := tx.Agents().GetAgent(ctx, workspace, to)
	if reeve.CodeOf(err) == reeve.NotFound {
		return a, reeve.Errorf(reeve.NotFound, "there is no agent %q", to).Hintf("%s", d.listNames(ctx, tx, workspace))
	}
	if err != nil {
		return a, err
	}
	script, err := tx.Automations().IsAutomation(ctx, a.ID)
	switch {
	case err != nil:
		return a, err
	case script:
		return a, reeve.Errorf(reeve.Unsupported, "%s is an automation, and answers nobody", a.Name).
			Hintf("ask an agent that a model drives")
	case a.Lifecycle != reeve.AgentActive:
		return a, reeve.Errorf(reeve.Conflict, "the agent %s is %s", a.Name, a.Lifecycle).
			Hintf("ask one that is active")
	case a.StoppedAt != nil:
		return a, reeve.Errorf(reeve.Stopped, "the agent %s is stopped", a.Name).Hintf("a member can resume it")
	}
	return a, nil
}

// maxListedAgents bounds how many agents are listed for one who asked for another.
const maxListedAgents = 20

func (d *Delegation) listNames(ctx context.Context, tx *store.Tx, workspace string) string {
	list, err := tx.Agents().ListAgents(ctx, workspace, "", 10*maxListedAgents)
	if err != nil {
		return "list the workspace's agents to see who is there"
	}
	var names []string
	for _, a := range list {
		if a.Lifecycle == reeve.AgentActive && len(names) < maxListedAgents {
			names = append(names, a.Name)
		}
	}
	return "the workspace has " + strings.Join(names, ", ")
}

// checkChain refuses circles, and calls that lie too deep within each other.
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
		return reeve.Errorf(reeve.Denied, "this would be a circle: %s", path).
			Hintf("answer with what you have; whoever asked you is waiting for it")
	}
	return reeve.Errorf(reeve.Denied, "agents may call each other %d deep, and this would be deeper: %s", d.Depth,
		path).Hintf("do it yourself, or answer with what you have")
}

// OnRunEnd delivers what a run came to that another's call began, in the transaction that ends it.
func (d *Delegation) OnRunEnd(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.Answers == "" || !run.State.Final() {
		return nil
	}
	return d.Gate.CompleteAwaited(ctx, tx, run.WorkspaceID, run.Answers, d.outcome(ctx, tx, run))
}

// outcome is a run's end as the call that began it is told.
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

// sharedCodes are the reasons for which a run ended that its caller is told by their code. Others are the other's own
// affair.
var sharedCodes = []reeve.Code{reeve.AssemblyFailed, reeve.BudgetExceeded, reeve.Canceled, reeve.Crashed,
	reeve.ModelFailed, reeve.RateLimited, reeve.StepLimit, reeve.Stopped,
	reeve.Timeout, reeve.Unavailable}
