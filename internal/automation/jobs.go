package automation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Jobs opens, resumes and closes script jobs: the planner writing a script, or the maintainer repairing one.
type Jobs struct {
	Config
	stopper stopper
}

// NewJobs returns the script jobs.
func NewJobs(cfg Config) *Jobs {
	cfg.Backoff = cfg.Backoff.WithDefaults()
	return &Jobs{Config: cfg, stopper: stopper{webhook: cfg.Webhook}}
}

// Plan opens a script job for the planner, which writes or changes an automation's script. It fails if a plan is open.
func (j *Jobs) Plan(ctx context.Context, workspace, id, user string,
	q reeve.PlanRequest) (k reeve.ScriptJob, err error) {
	if strings.TrimSpace(q.Request) == "" {
		return k, reeve.InvalidField("/request", "is empty", "a description of what the automation should do")
	}
	err = j.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Automations().LockAutomation(ctx, workspace, id)
		if err != nil {
			return err
		}
		open, err := tx.Automations().OpenScriptJobs(ctx, m.AgentID)
		if err != nil {
			return err
		}
		for _, o := range open {
			if o.Kind == reeve.PlanJob {
				return reeve.Errorf(reeve.Conflict, "a plan is already in progress: script job %s is %s", o.ID,
					o.State).
					Hintf("wait for it, or answer its question; see: reeve automations jobs %s", m.Name)
			}
		}
		request := q.Request
		if m.ScriptID != "" {
			request = fmt.Sprintf("%s\n\n(Automation %q has version %s. Read it with scripts_get and change it.)",
				q.Request, m.Name, m.Version)
		}
		k, _, err = j.open(ctx, tx, reeve.ScriptJob{Kind: reeve.PlanJob, WorkspaceID: workspace, AgentID: m.AgentID,
			ScriptID: m.ScriptID, UserID: user, Request: request})
		if err != nil {
			return err
		}
		k.Automation, k.Version = m.Name, m.Version
		return tx.Ledger().SaveResponse(ctx, k)
	})
	if err == nil {
		j.Waker.Wakeup()
	}
	return k, err
}

// Answer stores a person's answer to the question of a script job and wakes its agent.
func (j *Jobs) Answer(ctx context.Context, workspace, id, answer string) (k reeve.ScriptJob, err error) {
	if strings.TrimSpace(answer) == "" {
		return k, reeve.InvalidField("/answer", "is empty", "an answer")
	}
	err = j.DB.Update(ctx, func(tx *store.Tx) error {
		if k, err = tx.Automations().GetScriptJob(ctx, workspace, id); err != nil {
			return err
		}
		if k.State != reeve.ScriptJobAsking {
			return reeve.Errorf(reeve.Conflict, "the script job has no open question: it is %s", k.State)
		}
		a, err := j.ensureWorker(ctx, tx, workspace, k.Kind) // the agent that asked may have been deleted
		if err != nil {
			return err
		}
		k.WorkerID = a.ID
		k.Exchanges = append(k.Exchanges, reeve.Exchange{Question: k.Question, Answer: answer})
		k.State, k.Question = reeve.ScriptJobOpen, ""
		k.RunKey = reeve.DeriveID("wake", string(reeve.ReasonScriptJob), k.ID,
			fmt.Sprint(k.Restarts, ":", len(k.Exchanges)))
		if moved, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobAsking, k); err != nil {
			return err
		} else if !moved {
			return reeve.Errorf(reeve.Conflict, "the question was answered meanwhile")
		}
		if err := j.wakeWorker(ctx, tx, k, tx.Now()); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, k)
	})
	if err == nil {
		j.Waker.Wakeup()
	}
	return k, err
}

// openRepair opens a repair of the failed version and wakes the maintainer. It returns false if the version had a
// repair before.
func (v failureDecision) openRepair(ctx context.Context, tx *store.Tx) (reeve.ScriptJob, bool, error) {
	script, err := tx.Automations().GetScript(ctx, v.automation.WorkspaceID, v.record.ScriptID)
	if err != nil {
		return reeve.ScriptJob{}, false, err
	}
	request, err := renderFailure(ctx, tx, v.automation, script, v.run, v.record)
	if err != nil {
		return reeve.ScriptJob{}, false, err
	}
	user := v.automation.Owner
	if user == "" {
		user = v.run.UserID
	}
	return v.jobs.open(ctx, tx, reeve.ScriptJob{Kind: reeve.RepairJob, WorkspaceID: v.automation.WorkspaceID,
		AgentID:  v.automation.AgentID,
		ScriptID: script.ID, RunID: v.run.ID, UserID: user, Request: request})
}

// open inserts a script job and wakes its agent. It returns false if an equal job exists.
func (j *Jobs) open(ctx context.Context, tx *store.Tx, k reeve.ScriptJob) (reeve.ScriptJob, bool, error) {
	a, err := j.ensureWorker(ctx, tx, k.WorkspaceID, k.Kind)
	if err != nil {
		return k, false, err
	}
	k.ID, k.State, k.WorkerID, k.CreatedAt = tx.NewID(reeve.PrefixScriptJob), reeve.ScriptJobOpen, a.ID, tx.Now()
	k.RunKey = reeve.DeriveID("wake", string(reeve.ReasonScriptJob), k.ID, "0")
	fresh, err := tx.Automations().InsertScriptJob(ctx, k)
	if err != nil || !fresh {
		return k, false, err
	}
	return k, true, j.wakeWorker(ctx, tx, k, tx.Now())
}

// wakeWorker enqueues a run of the job's agent, with the job as its input.
func (j *Jobs) wakeWorker(ctx context.Context, tx *store.Tx, k reeve.ScriptJob, at time.Time) error {
	functions, err := renderFunctions(ctx, tx, k)
	if err != nil {
		return err
	}
	_, err = tx.Queue().InsertWake(ctx, reeve.Wake{RunKey: k.RunKey, WorkspaceID: k.WorkspaceID, AgentID: k.WorkerID,
		Reason: reeve.ReasonScriptJob, ReasonID: k.ID, SessionID: store.ScriptJobSession + k.ID,
		UserID: k.UserID, Input: renderBrief(k) + functions, DueAt: at, State: reeve.WakeQueued})
	return err
}

// renderBrief renders a script job as the input of its agent.
func renderBrief(k reeve.ScriptJob) string {
	var b strings.Builder
	b.WriteString(k.Request)
	for _, x := range k.Exchanges {
		fmt.Fprintf(&b, "\n\nYou asked: %s\nThe user answered: %s", x.Question, x.Answer)
	}
	return b.String()
}

// maxFunctionDocs is the largest size, in bytes, of the function descriptions in a script job's prompt. If they are
// larger, the prompt has only the names, and the agent calls getDocs.
const maxFunctionDocs = 24 << 10

// renderFunctions describes the functions of the tools that are attached to the job's automation.
func renderFunctions(ctx context.Context, tx *store.Tx, k reeve.ScriptJob) (string, error) {
	list, err := tx.Agents().ListAttachments(ctx, k.AgentID)
	if err != nil {
		return "", err
	}
	tools := make([]reeve.Tool, len(list))
	for i, t := range list {
		tools[i] = t.Tool
	}
	table := nameTools(tools)
	var full, names strings.Builder
	for _, f := range table.functionNames() {
		if _, ok := table.byName[f]; ok {
			full.WriteString(table.renderDocs(f))
			names.WriteString(f + "\n")
		}
	}
	switch {
	case names.Len() == 0:
		return "", nil
	case full.Len() > maxFunctionDocs:
		return "\n\nFunctions of the automation's tools; getDocs('Name') describes them:\n" + names.String(), nil
	}
	return "\n\nFunctions of the automation's tools:\n" + full.String(), nil
}

const (
	logTail    = 5000 // bytes of a failed run's log in a repair request
	maxChanges = 20   // versions whose comments are in a repair request
)

// renderFailure renders the request of a repair: the error, the goal, the changes and the log.
func renderFailure(ctx context.Context, tx *store.Tx, m reeve.Automation, script reeve.ScriptVersion, run reeve.Run,
	note reeve.ScriptRun) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Version %s of automation %q failed in run %s. Repair its script.\n\nError %s: %s\n",
		script.Version(), m.Name, run.ID, run.Code, run.Message)
	if run.Input != "" {
		fmt.Fprintf(&b, "\nInput: %s\n", reeve.Truncate(run.Input, logTail))
	}
	goal, _, err := tx.Automations().LastPlan(ctx, m.AgentID)
	if err != nil {
		return "", err
	}
	if goal.Request != "" {
		fmt.Fprintf(&b, "\nThe user's request: %s\n", goal.Request)
	}
	all, err := tx.Automations().ListVersions(ctx, m.AgentID, maxChanges)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		if v.Major == script.Major && v.Comment != "" {
			fmt.Fprintf(&b, "\nChange %s: %s", v.Version(), reeve.Truncate(v.Comment, 500))
		}
	}
	if log := note.Log; log != "" {
		fmt.Fprintf(&b, "\n\nEnd of the log:\n%s", log[max(0, len(log)-logTail):])
	}
	return strings.ToValidUTF8(b.String(), ""), nil
}

// concludeRun closes the script job of a run that has ended.
func (j *Jobs) concludeRun(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	k, ok, err := tx.Automations().FindScriptJobOfRun(ctx, run.WorkspaceID, run.ID)
	if err != nil || !ok {
		return err
	}
	return j.conclude(ctx, tx, run, k)
}

// CloseJobsOfAgent closes the script jobs whose runs are open, because their agent is about to be deleted. Jobs with
// queued wakes are closed when those are skipped. The word end completes "the agent was ...".
func (j *Jobs) CloseJobsOfAgent(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error {
	open, err := tx.Runs().OpenRuns(ctx, a.WorkspaceID, a.ID)
	for i := 0; i < len(open) && err == nil; i++ {
		if run := open[i]; run.Reason == reeve.ReasonScriptJob {
			run.State, run.Message = reeve.RunCancelled, "the agent was "+end
			err = j.concludeRun(ctx, tx, run)
		}
	}
	return err
}

// conclude closes an open script job whose run has ended or was skipped, and notifies its user. After a network failure
// the job is retried with backoff.
func (j *Jobs) conclude(ctx context.Context, tx *store.Tx, run reeve.Run, k reeve.ScriptJob) error {
	if k.State != reeve.ScriptJobOpen {
		return nil
	}
	was := k.State
	if run.State == reeve.RunFailed && reeve.FailureClassOf(run.Code) == reeve.NetworkFailure &&
		k.Restarts < j.Backoff.Attempts {
		k.Restarts++
		k.RunKey = reeve.DeriveID("wake", string(reeve.ReasonScriptJob), k.ID,
			fmt.Sprint(k.Restarts, ":", len(k.Exchanges)))
		if moved, err := tx.Automations().TransitionScriptJob(ctx, was, k); err != nil || !moved {
			return err
		}
		return j.wakeWorker(ctx, tx, k, tx.Now().Add(j.Backoff.After(k.Restarts)))
	}
	if k.ResultID != "" { // the planner saved a version
		return j.completePlan(ctx, tx, run, k)
	}
	said := run.Output
	if run.State != reeve.RunCompleted {
		said = strings.TrimSpace(fmt.Sprintf("its run %s: %s", run.State, run.Message))
	}
	k.State, k.Message = reeve.ScriptJobFailed, reeve.Truncate(said, 4000)
	if moved, err := tx.Automations().TransitionScriptJob(ctx, was, k); err != nil || !moved {
		return err
	}
	m, err := tx.Automations().GetAutomation(ctx, k.WorkspaceID, k.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if k.Kind == reeve.PlanJob {
		return j.stopper.notifyOwner(ctx, tx, m, run, "The planner wrote no script for "+m.Name, k.Message)
	}
	return j.stopper.stopUnrepaired(ctx, tx, m, run, k, "its script failed and the maintainer did not repair it",
		k.Message)
}

// completePlan closes a plan that saved a version, and notifies the user who asked for it.
func (j *Jobs) completePlan(ctx context.Context, tx *store.Tx, run reeve.Run, k reeve.ScriptJob) error {
	was := k.State
	k.State, k.Message = reeve.ScriptJobDone, reeve.Truncate(run.Output, 4000)
	if moved, err := tx.Automations().TransitionScriptJob(ctx, was, k); err != nil || !moved {
		return err
	}
	m, err := tx.Automations().GetAutomation(ctx, k.WorkspaceID, k.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil // the automation was deleted
	}
	if err != nil {
		return err
	}
	m.Owner = k.UserID // notify the user who asked
	return j.stopper.notifyOwner(ctx, tx, m, run, fmt.Sprintf("The planner wrote version %s of %s", k.Result, m.Name),
		fmt.Sprintf("%s\n\nPreview it: reeve automations run %s --plan --version %s\nActivate it: reeve "+
			"automations activate %s %s", k.Message, m.Name, k.Result, m.Name, k.Result))
}

// Kinds of the agents that do script jobs. A workspace can replace them with its own agents of these kinds. The kind
// planner is another one: agents that plan a person's day.
const (
	PlannerKind    = "script_planner"
	MaintainerKind = "maintainer"
)

// plannerName is the name of the agent that writes scripts, and what it is called as the author of a script version.
const plannerName = "planner"

// ensureWorker returns the agent that does script jobs of a kind. It creates the agent the first time.
func (j *Jobs) ensureWorker(ctx context.Context, tx *store.Tx, workspace string,
	what reeve.ScriptJobKind) (reeve.Agent, error) {
	kind, name := PlannerKind, plannerName
	text, tools, caps := plannerPrompt, plannerTools, []string{readCapability, planCapability}
	if what == reeve.RepairJob {
		kind, name, text, tools, caps = MaintainerKind, MaintainerKind, maintainerPrompt, maintainerTools,
			[]string{readCapability, fixCapability}
	}
	a, ok, err := tx.Automations().FindAgentOfKind(ctx, workspace, kind)
	if err != nil || ok {
		return a, err
	}
	calm := 0.1
	config, err := json.Marshal(reeve.AgentConfig{Instructions: text, MaxModelRequests: 60, MaxTokens: 16_000,
		Temperature: &calm})
	if err != nil {
		return a, err
	}
	a = reeve.Agent{ID: tx.NewID(reeve.PrefixAgent), WorkspaceID: workspace, Name: name, Kind: kind,
		Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, Categories: []string{}, Config: config, CreatedAt: tx.Now()}
	if _, err := tx.Agents().GetAgent(ctx, workspace, name); err == nil {
		a.Name = name + "-" + a.ID // the name is taken
	} else if reeve.CodeOf(err) != reeve.NotFound {
		return a, err
	}
	if err := tx.Agents().InsertAgent(ctx, a); err != nil {
		return a, err
	}
	if err := tx.Agents().StampAgent(ctx, a.ID); err != nil {
		return a, err
	}
	if _, ok, err := tx.Agents().GetProfile(ctx, workspace, kind); err != nil {
		return a, err
	} else if !ok {
		if err := tx.Agents().PutProfile(ctx, workspace, reeve.Profile{Kind: kind, Capabilities: caps}); err != nil {
			return a, err
		}
	}
	for _, id := range tools {
		t, err := tx.Agents().GetTool(ctx, workspace, id)
		if err != nil {
			return a, err
		}
		if err := tx.Agents().Attach(ctx, a, t, nil); err != nil {
			return a, err
		}
	}
	return a, nil
}
