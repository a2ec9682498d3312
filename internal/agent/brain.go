package agent

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// Brain runs each agent with its own brain: a script, the rehearsal in its config, or else a model.
type Brain struct {
	DB          *store.DB
	Script      Runner // runs automations. Default: there are no automations
	Rehearsal   *Rehearsal
	ModelRunner *ModelRunner
}

// Runner runs an agent.
type Runner interface {
	Run(ctx context.Context, run reeve.Run) reeve.RunEnd
}

// runStart holds what one transaction reads at the start of a run, to keep the time to the first token short.
type runStart struct {
	agent        reeve.Agent
	isAutomation bool
	log          *runLog
}

// Run runs an agent. If a person ended the run, the result is that cancellation, whatever error the brain returned. The
// server serves the runs that this run begins.
func (b *Brain) Run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd {
	end := b.run(ctx, run, server)
	if why := reeve.CancelCause(ctx); why != nil && (end.State == reeve.RunFailed || end.State == reeve.RunCancelled) {
		end.State, end.Err = reeve.RunCancelled, why
	}
	return end
}

func (b *Brain) run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd {
	var begin runStart
	err := b.DB.View(ctx, func(s *store.Snap) (err error) {
		if begin.isAutomation, err = s.Automations().IsAutomation(ctx, run.AgentID); err != nil || begin.isAutomation {
			return err
		}
		if begin.agent, err = s.Agents().GetAgent(ctx, run.WorkspaceID, run.AgentID); err != nil {
			return err
		}
		begin.log, err = readRun(ctx, s, run)
		return err
	})
	if err != nil {
		return failedEnd(err)
	}
	if begin.isAutomation {
		return b.Script.Run(ctx, run)
	}
	set, err := readSettings(begin.agent.Config)
	if err != nil {
		return failedEnd(err)
	}
	if set.Rehearsal != nil {
		return b.Rehearsal.Run(ctx, run)
	}
	return b.ModelRunner.run(ctx, run, begin, set, server)
}
