package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	maxShownInput   = 200 // bytes of a past run's input
	maxShownOutcome = 800 // bytes of a past run's answer or error
)

// PastRun is the outcome of an earlier run of the agent for the same user.
type PastRun struct {
	ID           string         `json:"id"`
	StartedAt    time.Time      `json:"started_at"`
	Reason       reeve.Reason   `json:"reason"`
	State        reeve.RunState `json:"state"`
	Input        string         `json:"input,omitempty"`
	Outcome      string         `json:"outcome,omitempty" doc:"Final answer or error, shortened"`
	SameSchedule bool           `json:"same_schedule,omitempty" doc:"The schedule of this run started it"`
}

// remembers reports whether a run is shown the outcomes of earlier runs, and later runs are shown its outcome. Turns,
// steps of other runs and script jobs are excluded.
func remembers(run reeve.Run) bool {
	switch run.Reason {
	case reeve.ReasonSubscription, reeve.ReasonTimer, reeve.ReasonCatchup, reeve.ReasonManual:
		return !store.IsStep(run)
	case reeve.ReasonUser, reeve.ReasonRetry, reeve.ReasonScriptJob:
	}
	return false
}

// recallRuns returns the outcomes of earlier runs for the same user, as many as the settings allow, and the summary of
// the runs before them. If not all fit, the last runs of the same schedule go first. If more runs should be summarized,
// it sets summarizeUpTo. The amount that it reads is limited, however many runs there are.
func (v *assembly) recallRuns(ctx context.Context, s *store.Snap) (shown []PastRun, summary string, err error) {
	n := *v.set.RecentRuns
	if n == 0 || !remembers(v.run) {
		return nil, "", nil
	}
	latest, err := s.Runs().ListOutcomes(ctx, v.run.AgentID, v.run.UserID, v.run.ID, n)
	if err != nil {
		return nil, "", err
	}
	var own []reeve.Run
	if v.run.Reason == reeve.ReasonTimer || v.run.Reason == reeve.ReasonCatchup {
		if own, err = s.Runs().ListTimerOutcomes(ctx, v.run.ReasonID, v.run.AgentID, v.run.UserID, v.run.ID,
			n); err != nil {
			return nil, "", err
		}
	}
	shown = v.choosePastRuns(own, latest)
	summary, err = v.readRunSummary(ctx, s, latest)
	return shown, summary, err
}

// choosePastRuns chooses the outcomes to show from two lists, which are newest first. It returns as many as fit.
func (v *assembly) choosePastRuns(own, latest []reeve.Run) []PastRun {
	var mine, others []PastRun
	limit := min(v.set.RunMemoryTokens, v.shareTokens())
	left := limit
	for i, r := range slices.Concat(own, latest) {
		isOwn := i < len(own)
		if len(mine)+len(others) >= *v.set.RecentRuns ||
			!isOwn && slices.ContainsFunc(own, func(o reeve.Run) bool { return o.ID == r.ID }) {
			continue
		}
		p := newPastRun(r, isOwn)
		if left -= len(p.render())/bytesPerToken + tokensPerPart; left < 0 {
			v.leaveOut("runs", r.ID, "this run and those before it do not fit into %d tokens (run_memory_tokens, "+
				"at most a quarter of context_tokens)", limit)
			break
		}
		if isOwn {
			mine = append(mine, p)
		} else {
			others = append(others, p)
		}
	}
	slices.Reverse(mine)
	slices.Reverse(others)
	return append(mine, others...)
}

func newPastRun(r reeve.Run, sameSchedule bool) PastRun {
	p := PastRun{ID: r.ID, StartedAt: r.StartedAt, Reason: r.Reason, State: r.State, SameSchedule: sameSchedule,
		Input: reeve.Truncate(r.Input, maxShownInput), Outcome: r.Output}
	if p.Outcome == "" && r.Message != "" {
		p.Outcome = string(r.Code) + ": " + r.Message
	}
	p.Outcome = reeve.Truncate(p.Outcome, maxShownOutcome)
	return p
}

// render returns the line of a past run. Texts are quoted, because they may repeat what came from outside.
func (p PastRun) render() string {
	line := fmt.Sprintf("- %s, %s, %s", p.StartedAt.Format("2006-01-02 15:04 MST"), p.Reason, p.State)
	if p.Input != "" && !p.SameSchedule {
		line += fmt.Sprintf(", asked %q", p.Input)
	}
	if p.Outcome != "" {
		line += fmt.Sprintf(": %q", p.Outcome)
	}
	return line
}

// renderPastRuns returns the section of the request with the outcomes of earlier runs.
func renderPastRuns(list []PastRun) string {
	var b strings.Builder
	for i, p := range list {
		switch {
		case i == 0 && p.SameSchedule:
			b.WriteString("[Your last runs of this schedule, as data]")
		case i == 0 || !p.SameSchedule && list[i-1].SameSchedule:
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("[Your last runs, as data]")
		}
		b.WriteString("\n" + p.render())
	}
	return b.String()
}

// readRunSummary returns the summary of the runs before the latest ones. If runs before the latest are not summarized
// yet, it sets summarizeUpTo to the middle of the latest, so that not every run needs a new summary.
func (v *assembly) readRunSummary(ctx context.Context, s *store.Snap, latest []reeve.Run) (string, error) {
	if !v.makesSummaries() {
		return "", nil
	}
	last, text, asked, err := s.Chat().LastSummary(ctx, store.RunMemory(v.run.AgentID, v.run.UserID))
	v.showsUntrusted = v.showsUntrusted || last.Untrusted
	text = v.fitSummary(text)
	if err != nil || len(latest) == 0 {
		return text, err
	}
	oldest := latest[len(latest)-1].ID
	older, err := s.Runs().ListOutcomes(ctx, v.run.AgentID, v.run.UserID, oldest, 1)
	if err == nil && len(older) > 0 {
		v.leaveOut("runs", older[0].ID, "this run and those before it are not among the last %d (recent_runs); "+
			"a summary covers them if there is one", *v.set.RecentRuns)
	}
	if err == nil && len(older) > 0 && older[0].ID > asked {
		v.summarizeUpTo = latest[len(latest)/2].ID
	}
	return text, err
}

// makesSummaries reports whether older turns and runs are summarized. Unless the agent's config says so, the rehearsal
// model makes no summaries.
func (v *runInfo) makesSummaries() bool {
	if v.set.Summaries != nil {
		return *v.set.Summaries
	}
	provider, _ := v.resolveModel(v.set.Model)
	return provider != rehearsalProvider
}

// rehearsalProvider is the provider of the rehearsal model, which needs no key and cannot summarize.
const rehearsalProvider = "rehearsal"
