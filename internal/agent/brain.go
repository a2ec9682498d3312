package agent

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// Brain gives runs to the brain that their agent has: a script, a rehearsal in its config, or else a model.
type Brain struct {
	DB        *store.DB
	Script    Runner // runs automations. Default: there are none
	Rehearsal *Rehearsal
	Thinker   *ModelRunner
}

// Runner runs an agent.
type Runner interface {
	Run(ctx context.Context, run reeve.Run) reeve.RunEnd
}

// start is what is read at once when a run begins: a person waits for its first word.
type start struct {
	agent  reeve.Agent
	script bool
	log    *log
}

// Run runs it. Whatever a brain ran into because a person ended the run, it is that which ended it.
// The server serves the runs that this one begins.
func (b *Brain) Run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd {
	end := b.run(ctx, run, server)
	if why := reeve.CancelCause(ctx); why != nil && (end.State == reeve.RunFailed || end.State == reeve.RunCancelled) {
		end.State, end.Err = reeve.RunCancelled, why
	}
	return end
}

func (b *Brain) run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd {
	var begin start
	err := b.DB.View(ctx, func(s *store.Snap) (err error) {
		if begin.script, err = s.Automations().IsAutomation(ctx, run.AgentID); err != nil || begin.script {
			return err
		}
		if begin.agent, err = s.Agents().GetAgent(ctx, run.WorkspaceID, run.AgentID); err != nil {
			return err
		}
		begin.log, err = readRun(ctx, s, run)
		return err
	})
	if err != nil {
		return failed(err)
	}
	if begin.script {
		return b.Script.Run(ctx, run)
	}
	set, err := readSettings(begin.agent.Config)
	if err != nil {
		return failed(err)
	}
	if set.Rehearsal != nil {
		return b.Rehearsal.Run(ctx, run)
	}
	return b.Thinker.run(ctx, run, begin, set, server)
}
