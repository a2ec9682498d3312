package wake_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

// The budget of the operator ends a scheduled run of a model that would never stop. The row of the run shows model
// calls and cost as the provider counts them, and no request mentions the budget.
func TestO18_AScheduledRunOfAModel(t *testing.T) {
	t.Parallel()
	var asked int
	var bodies []string
	h := kit.RunWithPricedProvider(t, host.Config{Dir: t.TempDir(), RunCalls: 3, RunMicros: 7_654_321},
		func(w io.Writer, body string) {
			asked++
			bodies = append(bodies, body)
			kit.WriteToolCall(w, "list_files", "{}")
			kit.WriteLastChunk(w, "")
		})
	h.Agent("aide")
	var s api.Schedule
	h.Want(http.StatusCreated, &s, "POST", "/api/schedules", kit.Object{"agent": "aide", "goal": "list and list",
		"cadence_type": "once", "cadence_value": time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)})
	kit.Eventually(t, "the run to end", func() bool {
		runs := kit.ListRuns(h, "agent=aide")
		return len(runs) == 1 && runs[0].State.IsFinal()
	})
	run := kit.ListRuns(h, "agent=aide")[0]
	h.Stop()
	if run.State != reeve.RunFailed || run.Code != reeve.BudgetExceeded || run.Spent.Calls != 3 {
		t.Errorf("the budget of three calls: %+v", run)
	}
	if asked < 3 || run.ModelRequests != asked || run.Spent.Tokens != int64(150*asked) ||
		run.Spent.Micros != int64(2000*asked) {
		t.Errorf("the model was asked %d times; the run says %d, and that it spent %+v", asked, run.ModelRequests, run.Spent)
	}
	for _, body := range bodies {
		if !strings.Contains(body, "list and list") {
			t.Errorf("the model was not given its goal: %s", body)
		}
		for _, word := range []string{"7654321", "budget", "run_calls", "run_micros"} {
			if strings.Contains(strings.ToLower(body), word) {
				t.Errorf("the model is told of %s: %s", word, body)
			}
		}
	}
}

// Agents create schedules in two conversations. Each conversation gets the result of its own schedule. A schedule that
// never notifies sends nothing to conversation or person.
func TestO17_ResultsGoBackToTheConversation(t *testing.T) {
	t.Parallel()
	words := []string{"tides", "stars", "moons"}
	script := "- {when: {tool: schedule_create}, text: Planned.}\n"
	for _, word := range words {
		notify := "always"
		if word == "moons" {
			notify = "never"
		}
		script += fmt.Sprintf("- {when: {said: report %s}, text: News of the %s.}\n", word, word) +
			fmt.Sprintf("- {when: {said: plan %s}, calls: [{name: schedule_create, args: {goal: report %s, name: The "+
				"%s, "+
				"cadence_type: interval, cadence_value: 1h, notification: %s}}]}\n", word, word, word, notify)
	}
	var cfg host.Config
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, script)
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, cfg)
		// The answers of the script depend on words that reports of earlier runs contain.
		b.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Object{"name": "bot",
			"config": kit.Object{"recent_runs": 0}})
		b.AttachTools("bot", "schedule_create")
		talks := map[string]string{}
		for _, word := range words {
			var c reeve.Conversation
			b.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot"})
			talks[word] = c.ID
			var turn reeve.Turn
			b.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
				kit.Object{"content": "plan " + word})
			b.StepAll()
			var d api.TurnDetail
			b.Want(http.StatusOK, &d, "GET", "/api/turns/"+turn.ID, nil)
			if d.State != reeve.RunCompleted || d.Output != "Planned." || d.Issues.ToolFailures > 0 {
				t.Fatalf("%s: %+v", word, d)
			}
		}
		b.AdvanceBy(time.Hour+time.Minute, time.Minute)
		for _, word := range words {
			var list api.MessageList
			b.Want(http.StatusOK, &list, "GET", "/api/conversations/"+talks[word]+"/messages", nil)
			for _, of := range words {
				heard, want := 0, 0
				for _, m := range list.Messages {
					if m.Kind == reeve.Observation && strings.Contains(m.Content, "News of the "+of) {
						heard++
					}
				}
				if of == word && word != "moons" {
					want = 1
				}
				if heard != want {
					t.Errorf("the conversation about %s was told %d times of the %s: %+v", word, heard, of,
						list.Messages)
				}
			}
		}
		told := b.ListNotifications()
		for _, n := range told {
			word := strings.TrimPrefix(n.Title, "The ")
			if n.Body != "News of the "+word+"." || !strings.Contains(n.Session, talks[word]) {
				t.Errorf("%+v", n)
			}
		}
		if len(told) != 2 {
			t.Errorf("%d notifications", len(told))
		}
	})
}
