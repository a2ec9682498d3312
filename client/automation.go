package client

import (
	"context"
	"net/url"
	"strconv"

	"reeve"
	"reeve/api"
)

// List lists automations by name.
func (s AutomationService) List(ctx context.Context, p Page) (api.AutomationList, error) {
	return get[api.AutomationList](ctx, s.conn, path("automations"), p.query())
}

// Get returns one automation.
func (s AutomationService) Get(ctx context.Context, id string) (reeve.Automation, error) {
	return get[reeve.Automation](ctx, s.conn, path("automations", id), nil)
}

// Create makes an automation, of a new agent or of one that is there.
func (s AutomationService) Create(ctx context.Context, r reeve.AutomationRequest) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, s.conn, path("automations"), r)
}

// Versions lists an automation's versions, newest first.
func (s AutomationService) Versions(ctx context.Context, id string) (api.ScriptVersionList, error) {
	return get[api.ScriptVersionList](ctx, s.conn, path("automations", id, "versions"), nil)
}

// SaveVersion saves a version of an automation's script.
func (s AutomationService) SaveVersion(ctx context.Context, id string,
	r reeve.ScriptRequest) (reeve.ScriptVersion, error) {
	return post[reeve.ScriptVersion](ctx, s.conn, path("automations", id, "versions"), r)
}

// Version returns one version with its text.
func (s AutomationService) Version(ctx context.Context, id, version string) (reeve.ScriptVersion, error) {
	return get[reeve.ScriptVersion](ctx, s.conn, path("automations", id, "versions", version), nil)
}

// Activate chooses the version that runs.
func (s AutomationService) Activate(ctx context.Context, id, version string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, s.conn, path("automations", id, "activate"),
		api.VersionRequest{Version: version})
}

// Pause keeps it from making calls; a run under way ends at its next.
func (s AutomationService) Pause(ctx context.Context, id string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, s.conn, path("automations", id, "pause"), nil)
}

// Resume lets it go on.
func (s AutomationService) Resume(ctx context.Context, id string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, s.conn, path("automations", id, "resume"), nil)
}

// Start asks for a run. [RunService.WaitForWake] returns it, by its wake.
func (s AutomationService) Start(ctx context.Context, id string,
	r reeve.AutomationRunRequest) (reeve.AutomationRun, error) {
	return post[reeve.AutomationRun](ctx, s.conn, path("automations", id, "runs"), r)
}

// Runs lists an automation's runs, newest first.
func (s AutomationService) Runs(ctx context.Context, id string, p Page) (api.AutomationRunList, error) {
	return get[api.AutomationRunList](ctx, s.conn, path("automations", id, "runs"), p.query())
}

// Run says how far a run has come.
func (s AutomationService) Run(ctx context.Context, id, run string) (reeve.AutomationRun, error) {
	return get[reeve.AutomationRun](ctx, s.conn, path("automations", id, "runs", run), nil)
}

// WaitForRun waits until a run has ended or is parked. It calls show with each change.
func (s AutomationService) WaitForRun(ctx context.Context, id, run string,
	show func(reeve.AutomationRun)) (out reeve.AutomationRun, err error) {
	err = s.FollowRun(ctx, id, run, func(r reeve.AutomationRun) error {
		out = r
		show(r)
		if r.Run.State == reeve.RunParked && !r.Run.WaitsForAgents {
			return ErrStop
		}
		return nil
	})
	if reeve.CodeOf(err) == reeve.Canceled {
		err = &reeve.Error{Code: reeve.Canceled, Message: "interrupted: run " + run + " has not ended", Err: err}
	}
	return out, err
}

// Items lists an automation's items, newest first.
func (s AutomationService) Items(ctx context.Context, id string, f reeve.ItemFilter) (reeve.ItemList, error) {
	q := url.Values{"status": {string(f.State)}, "item": {f.ID}}
	for name, n := range map[string]int{"limit": f.Limit, "offset": f.Offset} {
		if n != 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	return get[reeve.ItemList](ctx, s.conn, path("automations", id, "items"), q)
}

// Files lists the files that an automation has written.
func (s AutomationService) Files(ctx context.Context, id string, p Page) (api.SessionFileList, error) {
	return get[api.SessionFileList](ctx, s.conn, path("automations", id, "files"), p.query())
}

// File reads a file that an automation has written.
func (s AutomationService) File(ctx context.Context, id, name string) (api.SessionFileContent, error) {
	return get[api.SessionFileContent](ctx, s.conn, path("automations", id, "files", "content"),
		url.Values{"path": {name}})
}

// Item returns an item and all attempts at it.
func (s AutomationService) Item(ctx context.Context, id, item string) (api.ItemHistory, error) {
	return get[api.ItemHistory](ctx, s.conn, path("automations", id, "items", item), nil)
}

// SkipItem leaves an item alone until it is reprocessed.
func (s AutomationService) SkipItem(ctx context.Context, id string, r api.ItemRequest) (reeve.Item, error) {
	return post[reeve.Item](ctx, s.conn, path("automations", id, "items", "skip"), r)
}

// ReprocessItem begins another attempt at an item: the next run does it anew.
func (s AutomationService) ReprocessItem(ctx context.Context, id string, r api.ItemRequest) (reeve.Item, error) {
	return post[reeve.Item](ctx, s.conn, path("automations", id, "items", "reprocess"), r)
}

// RunPlan returns all that a dry run would have done.
func (s AutomationService) RunPlan(ctx context.Context, run string) (api.Plan, error) {
	calls := []reeve.PlannedCall{}
	for p := (Page{Limit: 500}); ; {
		plan, err := get[api.Plan](ctx, s.conn, path("plans", run), p.query())
		calls = append(calls, plan.Calls...)
		if p.Cursor = plan.Next; err != nil || p.Cursor == "" {
			plan.Calls = calls
			return plan, err
		}
	}
}

// ApplyRunPlan asks for a run that does exactly that. A plan is applied once.
func (s AutomationService) ApplyRunPlan(ctx context.Context, run string) (reeve.AutomationRun, error) {
	return post[reeve.AutomationRun](ctx, s.conn, path("plans", run, "apply"), nil)
}

// Plan has the planner write an automation's script, or change it.
func (s ScriptJobService) Plan(ctx context.Context, id, request string) (reeve.ScriptJob, error) {
	return post[reeve.ScriptJob](ctx, s.conn, path("automations", id, "plan"), reeve.PlanRequest{Request: request})
}

// List lists what the planner and the maintainer do for an automation, newest first.
func (s ScriptJobService) List(ctx context.Context, id string) (api.ScriptJobList, error) {
	return get[api.ScriptJobList](ctx, s.conn, path("automations", id, "script-jobs"), nil)
}

// Get returns a script job.
func (s ScriptJobService) Get(ctx context.Context, id string) (reeve.ScriptJob, error) {
	return get[reeve.ScriptJob](ctx, s.conn, path("script-jobs", id), nil)
}

// Wait waits until a script job has ended or asks a question.
func (s ScriptJobService) Wait(ctx context.Context, id string) (k reeve.ScriptJob, err error) {
	err = patiently(ctx, "script job "+id+" is not over", false, func() (bool, error) {
		k, err = s.Get(ctx, id)
		return k.State != reeve.ScriptJobOpen, err
	})
	return k, err
}

// Answer answers the question of a script job.
func (s ScriptJobService) Answer(ctx context.Context, id, answer string) (reeve.ScriptJob, error) {
	return post[reeve.ScriptJob](ctx, s.conn, path("script-jobs", id, "answer"), api.AnswerRequest{Answer: answer})
}
