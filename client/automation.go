package client

import (
	"context"
	"net/url"
	"strconv"

	"reeve"
)

// Automations lists automations by name.
func (c *Client) Automations(ctx context.Context, p Page) (reeve.AutomationList, error) {
	return get[reeve.AutomationList](ctx, c, path("automations"), p.query())
}

// Automation gives one automation.
func (c *Client) Automation(ctx context.Context, id string) (reeve.Automation, error) {
	return get[reeve.Automation](ctx, c, path("automations", id), nil)
}

// CreateAutomation makes an automation, of a new agent or of one that is there.
func (c *Client) CreateAutomation(ctx context.Context, r reeve.AutomationRequest) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, c, path("automations"), r)
}

// Versions lists an automation's versions, newest first.
func (c *Client) Versions(ctx context.Context, id string) (reeve.ScriptVersionList, error) {
	return get[reeve.ScriptVersionList](ctx, c, path("automations", id, "versions"), nil)
}

// SaveVersion saves a version of an automation's script.
func (c *Client) SaveVersion(ctx context.Context, id string, r reeve.ScriptRequest) (reeve.ScriptVersion, error) {
	return post[reeve.ScriptVersion](ctx, c, path("automations", id, "versions"), r)
}

// Version gives one version with its text.
func (c *Client) Version(ctx context.Context, id, version string) (reeve.ScriptVersion, error) {
	return get[reeve.ScriptVersion](ctx, c, path("automations", id, "versions", version), nil)
}

// ActivateVersion chooses the version that runs.
func (c *Client) ActivateVersion(ctx context.Context, id, version string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, c, path("automations", id, "activate"), reeve.VersionRequest{Version: version})
}

// PauseAutomation keeps it from making calls; a run under way ends at its next.
func (c *Client) PauseAutomation(ctx context.Context, id string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, c, path("automations", id, "pause"), nil)
}

// ResumeAutomation lets it go on.
func (c *Client) ResumeAutomation(ctx context.Context, id string) (reeve.Automation, error) {
	return post[reeve.Automation](ctx, c, path("automations", id, "resume"), nil)
}

// StartAutomation asks for a run. [Client.RunOf] gives it, by its wake.
func (c *Client) StartAutomation(ctx context.Context, id string, r reeve.AutomationRunRequest) (reeve.AutomationRun, error) {
	return post[reeve.AutomationRun](ctx, c, path("automations", id, "runs"), r)
}

// AutomationRuns lists an automation's runs, newest first.
func (c *Client) AutomationRuns(ctx context.Context, id string, p Page) (reeve.AutomationRunList, error) {
	return get[reeve.AutomationRunList](ctx, c, path("automations", id, "runs"), p.query())
}

// AutomationRun says how far a run has come.
func (c *Client) AutomationRun(ctx context.Context, id, run string) (reeve.AutomationRun, error) {
	return get[reeve.AutomationRun](ctx, c, path("automations", id, "runs", run), nil)
}

// WatchRun follows a run until it has ended or is parked, and shows each step.
func (c *Client) WatchRun(ctx context.Context, id, run string, show func(reeve.AutomationRun)) (out reeve.AutomationRun, err error) {
	err = c.FollowRun(ctx, id, run, func(r reeve.AutomationRun) error {
		out = r
		show(r)
		if r.Run.State == reeve.RunParked && !r.Run.GoesOn {
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
func (c *Client) Items(ctx context.Context, id string, f reeve.ItemFilter) (reeve.ItemList, error) {
	q := url.Values{"status": {string(f.State)}, "item": {f.ID}}
	for name, n := range map[string]int{"limit": f.Limit, "offset": f.Offset} {
		if n != 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	return get[reeve.ItemList](ctx, c, path("automations", id, "items"), q)
}

// AutomationFiles lists the files that an automation has written.
func (c *Client) AutomationFiles(ctx context.Context, id string, p Page) (reeve.SessionFileList, error) {
	return get[reeve.SessionFileList](ctx, c, path("automations", id, "files"), p.query())
}

// AutomationFile reads a file that an automation has written.
func (c *Client) AutomationFile(ctx context.Context, id, name string) (reeve.SessionFileContent, error) {
	return get[reeve.SessionFileContent](ctx, c, path("automations", id, "files", "content"), url.Values{"path": {name}})
}

// Item gives an item and all attempts at it.
func (c *Client) Item(ctx context.Context, id, item string) (reeve.ItemHistory, error) {
	return get[reeve.ItemHistory](ctx, c, path("automations", id, "items", item), nil)
}

// SkipItem leaves an item alone until it is reprocessed.
func (c *Client) SkipItem(ctx context.Context, id string, r reeve.ItemRequest) (reeve.Item, error) {
	return post[reeve.Item](ctx, c, path("automations", id, "items", "skip"), r)
}

// ReprocessItem begins another attempt at an item: the next run does it anew.
func (c *Client) ReprocessItem(ctx context.Context, id string, r reeve.ItemRequest) (reeve.Item, error) {
	return post[reeve.Item](ctx, c, path("automations", id, "items", "reprocess"), r)
}

// RunPlan gives all that a dry run would have done.
func (c *Client) RunPlan(ctx context.Context, run string) (reeve.Plan, error) {
	calls := []reeve.PlannedCall{}
	for p := (Page{Limit: 500}); ; {
		plan, err := get[reeve.Plan](ctx, c, path("plans", run), p.query())
		calls = append(calls, plan.Calls...)
		if p.Cursor = plan.Next; err != nil || p.Cursor == "" {
			plan.Calls = calls
			return plan, err
		}
	}
}

// ApplyRunPlan asks for a run that does exactly that. A plan is applied once.
func (c *Client) ApplyRunPlan(ctx context.Context, run string) (reeve.AutomationRun, error) {
	return post[reeve.AutomationRun](ctx, c, path("plans", run, "apply"), nil)
}

// PlanAutomation has the planner write an automation's script, or change it.
func (c *Client) PlanAutomation(ctx context.Context, id, request string) (reeve.Errand, error) {
	return post[reeve.Errand](ctx, c, path("automations", id, "plan"), reeve.PlanRequest{Request: request})
}

// Errands lists what the planner and the maintainer do for an automation, newest first.
func (c *Client) Errands(ctx context.Context, id string) (reeve.ErrandList, error) {
	return get[reeve.ErrandList](ctx, c, path("automations", id, "errands"), nil)
}

// Errand gives an errand.
func (c *Client) Errand(ctx context.Context, id string) (reeve.Errand, error) {
	return get[reeve.Errand](ctx, c, path("errands", id), nil)
}

// WatchErrand looks at an errand until it is over, or asks something.
func (c *Client) WatchErrand(ctx context.Context, id string) (k reeve.Errand, err error) {
	err = patiently(ctx, "errand "+id+" is not over", false, func() (bool, error) {
		k, err = c.Errand(ctx, id)
		return k.State != reeve.ErrandOpen, err
	})
	return k, err
}

// AnswerErrand answers the question of an errand.
func (c *Client) AnswerErrand(ctx context.Context, id, answer string) (reeve.Errand, error) {
	return post[reeve.Errand](ctx, c, path("errands", id, "answer"), reeve.AnswerRequest{Answer: answer})
}
