package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// pricedProvider runs a Reeve whose models are a server that speaks as OpenAI does. Each answer counts 100 tokens in
// and 50 out, which cost 2000 millionths. answer is given the body of a request.
func pricedProvider(t *testing.T, cfg host.Config, answer func(w io.Writer, body string),
	tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		answer(w, string(body))
	}))
	t.Cleanup(s.Close)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("acme/x: {input: 10, output: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Models.Servers, cfg.Models.Default = map[string]model.Endpoint{"acme": {URL: s.URL}}, "acme/x"
	cfg.Models.Prices = prices
	return reevetest.Run(t, cfg, tools...)
}

// toolCall is the part of such an answer that calls a tool.
func toolCall(w io.Writer, name, args string) {
	chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",`+
		`"function":{"name":%q,"arguments":%q}}]}}]}`, name, args)
}

// endAnswer is the end of such an answer.
func endAnswer(w io.Writer, text string) {
	chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":100,"completion_tokens":50}}`, text)
}

// TestO18_AScheduledRunOfAModel: the operator's budget ends a scheduled run of a model that would go on for ever; the
// run's row says how often the model was asked and what that cost, as the model's own server counts it; and no request
// to the model says anything of the budget.
func TestO18_AScheduledRunOfAModel(t *testing.T) {
	t.Parallel()
	var asked int
	var bodies []string
	h := pricedProvider(t, host.Config{Dir: t.TempDir(), RunCalls: 3, RunMicros: 7_654_321},
		func(w io.Writer, body string) {
			asked++
			bodies = append(bodies, body)
			toolCall(w, "list_files", "{}")
			endAnswer(w, "")
		})
	h.Agent("aide")
	var s api.Schedule
	h.Want(http.StatusCreated, &s, "POST", "/api/schedules", object{"agent": "aide", "goal": "list and list",
		"cadence_type": "once", "cadence_value": time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)})
	eventually(t, "the run to end", func() bool {
		runs := runsOf(h, "agent=aide")
		return len(runs) == 1 && runs[0].State.IsFinal()
	})
	run := runsOf(h, "agent=aide")[0]
	h.Stop()
	if run.State != reeve.RunFailed || run.Code != reeve.BudgetExceeded || run.Spent.Calls != 3 {
		t.Errorf("the budget of three calls: %+v", run)
	}
	if asked < 3 || run.ModelRequests != asked || run.Spent.Tokens != int64(150*asked) ||
		run.Spent.Micros != int64(2000*asked) {
		t.Errorf("the model was asked %d times; the run says %d, and that it spent %+v", asked, run.ModelRequests,
			run.Spent)
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

// TestO17_ResultsGoBackToTheConversation: agents make schedules in two conversations; each conversation is given the
// result of its own schedule, and of one that notifies never neither it nor the person hears anything.
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
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, script)
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, cfg)
		b.want(http.StatusCreated, nil, "POST", "/api/agents", object{"name": "bot"})
		b.attach("bot", "schedule_create")
		talks := map[string]string{}
		for _, word := range words {
			var c reeve.Conversation
			b.want(http.StatusCreated, &c, "POST", "/api/conversations", object{"agent": "bot"})
			talks[word] = c.ID
			var turn reeve.Turn
			b.want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
				object{"content": "plan " + word})
			b.settle()
			var d api.TurnDetail
			b.want(http.StatusOK, &d, "GET", "/api/turns/"+turn.ID, nil)
			if d.State != reeve.RunCompleted || d.Output != "Planned." || d.Issues.ToolFailures > 0 {
				t.Fatalf("%s: %+v", word, d)
			}
		}
		b.pass(time.Hour+time.Minute, time.Minute)
		for _, word := range words {
			var list api.MessageList
			b.want(http.StatusOK, &list, "GET", "/api/conversations/"+talks[word]+"/messages", nil)
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
		told := b.notifications()
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
