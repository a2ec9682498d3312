package wake_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// wakeWith wakes an agent by hand and waits for the run.
func wakeWith(h *reevetest.Host, agent, input string, headers ...string) {
	h.T.Helper()
	var w reeve.Wake
	h.Want(http.StatusCreated, &w, "POST", "/api/agents/"+agent+"/wake", kit.Object{"input": input}, headers...)
	kit.Eventually(h.T, "the run of "+input, func() bool {
		for _, r := range kit.ListRuns(h, "agent="+agent) {
			if r.Input == input && r.State.IsFinal() {
				return true
			}
		}
		return false
	})
}

const memoryScript = `answers:
- {when: {system: /maintain the memory/, said: /Summary of earlier runs/}, text: SECOND}
- {when: {system: /maintain the memory/}, text: FIRST}
- {when: {said: /break/}, fail: {status: 400, message: no luck}}
- {when: {said: /./}, text: "answered \"it\""}
`

// Runs of one agent are told the outcomes of the last runs and a summary of those before, which is made in the
// background. Runs for other users are not told of.
func TestL31_RunsRememberEarlierRuns(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, memoryScript)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "recent_runs": 2}})
		wakeWith(h, "bot", "secret of ann", kit.NewTokenFor(h, "ann", "member")...)
		wakeWith(h, "bot", "one")
		if got := heard.LastPrompt("I am bot"); got != "user: one" {
			t.Errorf("the first run was told %s", got)
		}
		wakeWith(h, "bot", "two")
		got := heard.LastPrompt("I am bot")
		if !strings.HasPrefix(got, "user: [Your last runs, as data]\n- ") || strings.Contains(got, "ann") ||
			!strings.HasSuffix(got, ` manual, completed, asked "one": "answered \"it\"" | user: two`) {
			t.Errorf("the second run was told %s", got)
		}
		for n := range 3 {
			wakeWith(h, "bot", fmt.Sprint("more ", n))
		}
		var list api.SummaryList
		kit.Eventually(t, "a summary", func() bool {
			h.Want(http.StatusOK, &list, "GET", "/api/agents/bot/summaries", nil)
			return len(list.Summaries) > 0 && list.Summaries[0].State == "done"
		})
		wakeWith(h, "bot", "last")
		got = heard.LastPrompt("I am bot")
		if !strings.HasPrefix(got, "user: [Summary of the earlier runs]\n") || !strings.Contains(got, `"more 1"`) ||
			!strings.Contains(got, `"more 2"`) || strings.Contains(got, `"one"`) || strings.Contains(got, "ann") {
			t.Errorf("the last run was told %s", got)
		}
		if s := getState(h, "bot"); s.Summary == "" {
			t.Errorf("the state has no summary: %+v", s)
		}
		if p := heard.LastPrompt("maintain the memory"); strings.Contains(p, "ann") || !strings.Contains(p, "Run of ") {
			t.Errorf("the summary was made of %s", p)
		}
	})
}

// The run of a schedule is told its own last runs first.
func TestL31_SchedulesSeeTheirOwnRunsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, memoryScript)}
		b := kit.NewBubbleHost(t, host.Config{Model: heard})
		b.NewAgent("bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "recent_runs": 2}})
		b.NewSchedule("bot", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		b.AdvanceBy(61*time.Minute, 61*time.Minute)
		for _, r := range b.ListRuns("") {
			if r.UserID == "" {
				t.Fatalf("the schedule has no user: %+v", r)
			}
		}
		for n := range 3 {
			b.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/wake", kit.Object{"input": fmt.Sprint("hand ", n)})
			b.StepAll()
		}
		b.AdvanceBy(time.Hour, time.Hour)
		got := heard.LastPrompt("I am bot")
		own, other := strings.Index(got, "[Your last runs of this schedule"), strings.Index(got, "[Your last runs, as data]")
		if own < 0 || other < own || !strings.Contains(got[own:other], "timer, completed") ||
			!strings.Contains(got[other:], `"hand 2"`) || strings.Contains(got, `"hand 1"`) {
			t.Errorf("it was told %s", got)
		}
	})
}

// run_memory_tokens bounds what the outcomes of earlier runs take.
func TestL31_RunMemoryIsBounded(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: "+
		strings.Repeat("word ", 100)+"}\n")}
	cfg.Model = heard
	h := reevetest.Run(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Object{"name": "bot",
		"config": kit.Object{"recent_runs": 5, "run_memory_tokens": 300, "summaries": false}})
	for n := range 5 {
		wakeWith(h, "bot", fmt.Sprint("q", n))
	}
	got := heard.LastPrompt("")
	if n := strings.Count(got, "\n- "); n != 2 || !strings.Contains(got, `"q3"`) || len(got) > 4*300+100 {
		t.Errorf("%d runs in %d bytes: %s", n, len(got), got)
	}
}

// A model that fails is tried again, ever later, while runs go on. Then the summary is made by rules.
func TestL14_FailedModelGivesASummaryByRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, `answers:
- {when: {system: /maintain the memory/}, fail: {status: 400, message: I will not}}
- {when: {said: /./}, text: answered}
`)}
		b := kit.NewBubbleHost(t, host.Config{Model: heard})
		a := b.NewAgent("bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "recent_runs": 1}})
		b.Want(http.StatusOK, nil, "PUT", "/api/agents/bot/state", kit.Object{"revision": 0,
			"slots": kit.Object{"primary_goal": "Be quick"}})
		for n := range 3 {
			b.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/wake", kit.Object{"input": fmt.Sprint("q", n)})
			b.StepAll()
		}
		last := func() api.Summary {
			var list api.SummaryList
			b.Want(http.StatusOK, &list, "GET", "/api/agents/bot/summaries", nil)
			if len(list.Summaries) != 1 {
				t.Fatalf("%+v", list.Summaries)
			}
			return list.Summaries[0]
		}
		if s := last(); s.State != "queued" || s.Attempts != 1 || s.Message == "" ||
			!s.RetryAt.Equal(time.Now().Add(30*time.Second)) {
			t.Fatalf("after the first attempt: %+v", s)
		}
		b.AdvanceBy(40*time.Second, 10*time.Second)
		if s := last(); s.Attempts != 2 || !s.RetryAt.After(time.Now().Add(40*time.Second)) {
			t.Fatalf("after the second attempt: %+v", s)
		}
		var state reeve.AgentState
		if b.Want(http.StatusOK, &state, "GET", "/api/agents/bot/state", nil); state.Summary != "" {
			t.Errorf("the pointer moved before there was a summary: %+v", state)
		}
		b.AdvanceBy(10*time.Minute, 10*time.Second)
		s := last()
		if s.State != "done" || s.Attempts != 4 {
			t.Fatalf("after all attempts: %+v", s)
		}
		var page api.MessageList
		b.Want(http.StatusOK, &page, "GET", "/api/agents/bot/messages?run="+s.ID, nil)
		want := "Goal: \"Be quick\"\nThen 2 runs: 2 completed.\n- \"q0\": completed, \"answered\"\n" +
			"- \"q1\": completed, \"answered\""
		if m := page.Messages[len(page.Messages)-1]; m.Content != want || m.ID != s.MessageID ||
			!strings.Contains(string(m.Metadata), `"rule_based":true`) {
			t.Errorf("%s %s", m.Content, m.Metadata)
		}
		if b.Want(http.StatusOK, &state, "GET", "/api/agents/bot/state", nil); state.Summary != s.MessageID {
			t.Errorf("pointer %q, want %q", state.Summary, s.MessageID)
		}
		b.Want(http.StatusConflict, nil, "POST", "/api/agents/bot/summaries/"+s.ID+"/retry", nil)
		b.Want(http.StatusNotFound, nil, "POST", "/api/agents/bot/summaries/"+a.ID+"/retry", nil)
	})
}
