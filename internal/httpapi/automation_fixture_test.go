package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// automationFixture has the ids of an automation, a paused automation, and their items, runs and script job.
type automationFixture struct{ automation, paused, item, failed, run, plan, job string }

var missingAutomation = automationFixture{automation: "nobody", paused: "nobody", item: "nothing", failed: "nothing",
	run: "run_none", plan: "run_none", job: "ern_none"}

// createAutomationFixture creates an automation with two items, a run and a plan, and a paused automation with a script
// job that asks a question.
func createAutomationFixture(t *testing.T, h *reevetest.Host) (x automationFixture) {
	t.Helper()
	x.automation, x.paused, x.item, x.failed = "alphauto", "alphapaused", "alpha's item", "alpha's other"
	h.Want(201, nil, "POST", "/api/automations", object{"name": x.paused})
	h.Want(201, nil, "POST", "/api/automations", object{"name": x.automation, "source": `
		await Items.withItem("alpha's item", "alpha's", () => 1)
		if (input === "fail") await Items.withItem("alpha's other", "alpha's", () => { throw new Error("no") })`})
	run := func(kind, input string) string {
		var asked reeve.AutomationRun
		h.Want(201, &asked, "POST", "/api/automations/"+x.automation+"/runs", object{"type": kind, "input": input})
		h.RunUntilIdle(t.Context())
		path := "/api/wakes/" + url.PathEscape(asked.Wake.RunKey)
		return decode[reeve.Wake](t, h.Want(200, nil, "GET", path, nil)).RunID
	}
	x.run, x.plan = run("production", "fail"), run("dry", "")
	if x.run == "" || x.plan == "" {
		t.Fatal("the automation did not run")
	}
	// The rehearsal model makes the call that the request names.
	h.Want(201, nil, "POST", "/api/automations/"+x.paused+"/plan",
		object{"request": "scripts_ask {\"question\": \"alpha's?\"}"})
	h.RunUntilIdle(t.Context())
	for _, k := range decode[api.ScriptJobList](t, h.Want(200, nil, "GET", "/api/automations/"+x.paused+"/script-jobs",
		nil)).ScriptJobs {
		if x.job = k.ID; k.State != reeve.ScriptJobAsking {
			t.Fatalf("script job does not ask: %+v", k)
		}
	}
	return x
}

func (x automationFixture) mask(s string) string {
	for _, id := range []string{x.run, x.plan, x.job, x.automation, x.paused, x.item, x.failed} {
		s = strings.ReplaceAll(s, id, "#")
	}
	return s
}

func (x automationFixture) samples(kind string) map[string]sample {
	at := "/api/automations/" + x.automation
	return map[string]sample{
		"listAutomations":       {"/api/automations", nil, false, reeve.Viewer},
		"createAutomation":      {"/api/automations", object{"name": "auto-" + kind}, false, reeve.Member},
		"listAutomationFiles":   {at + "/files", nil, true, reeve.Viewer},
		"getAutomationFile":     {at + "/files/content?path=%2Falpha.md", nil, true, reeve.Viewer},
		"getAutomation":         {at, nil, true, reeve.Viewer},
		"listScriptVersions":    {at + "/versions", nil, true, reeve.Viewer},
		"createScriptVersion":   {at + "/versions", object{"source": "1"}, true, reeve.Member},
		"getScriptVersion":      {at + "/versions/1.0", nil, true, reeve.Viewer},
		"activateScriptVersion": {at + "/activate", object{"version": "1.0"}, true, reeve.Member},
		"listAutomationRuns":    {at + "/runs", nil, true, reeve.Viewer},
		"startAutomationRun":    {at + "/runs", object{}, true, reeve.Member},
		"getAutomationRun":      {at + "/runs/" + x.run, nil, true, reeve.Viewer},
		"streamRun":             {at + "/runs/" + x.run + "/events", nil, true, reeve.Viewer},
		"listItems":             {at + "/items", nil, true, reeve.Viewer},
		"getItem":               {at + "/items/" + url.PathEscape(x.item), nil, true, reeve.Viewer},
		"reprocessItem":         {at + "/items/reprocess", object{"item": x.item}, true, reeve.Member},
		"skipItem":              {at + "/items/skip", object{"item": x.failed}, true, reeve.Member},
		"listScriptJobs":        {at + "/script-jobs", nil, true, reeve.Viewer},
		"getScriptJob":          {"/api/script-jobs/" + x.job, nil, true, reeve.Viewer},
		"answerScriptJob":       {"/api/script-jobs/" + x.job + "/answer", object{"answer": "yes"}, true, reeve.Member},
		"planAutomation":        {at + "/plan", object{"request": "do it"}, true, reeve.Member},
		"getRunPlan":            {"/api/plans/" + x.plan, nil, true, reeve.Viewer},
		"applyRunPlan":          {"/api/plans/" + x.plan + "/apply", nil, true, reeve.Member},
		"pauseAutomation":       {"/api/automations/" + x.paused + "/pause", nil, true, reeve.Member},
		"resumeAutomation":      {"/api/automations/" + x.paused + "/resume", nil, true, reeve.Member},
	}
}
