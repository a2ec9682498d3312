package wake_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/test/kit"
)

// brokenSummaries is a model that answers requests for summaries with an error or an empty text until it is repaired.
type brokenSummaries struct {
	model.Model
	err      error // nil: the answer is empty
	repaired atomic.Bool
}

func (m *brokenSummaries) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	if m.repaired.Load() || !strings.Contains(r.System, "maintain the memory") {
		return m.Model.Answer(ctx, r, watch)
	}
	return model.Answer{}, m.err
}

// newSummaryHost returns a host whose agent bot has a due summary, which the model has failed once to make.
func newSummaryHost(t *testing.T, m *brokenSummaries) (b *kit.BubbleHost, last func() api.Summary) {
	t.Helper()
	m.Model = kit.ScriptedModel(t, `answers:
- {when: {system: /maintain the memory/}, text: IN SHORT}
- {when: {said: /./}, text: answered}
`)
	b = kit.NewBubbleHost(t, host.Config{Model: m})
	b.NewAgent("bot", kit.Object{"config": kit.Object{"recent_runs": 1}})
	for n := range 3 {
		b.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/wake", kit.Object{"input": fmt.Sprint("q", n)})
		b.StepAll()
	}
	return b, func() api.Summary {
		t.Helper()
		var list api.SummaryList
		b.Want(http.StatusOK, &list, "GET", "/api/agents/bot/summaries", nil)
		if len(list.Summaries) != 1 {
			t.Fatalf("%+v", list.Summaries)
		}
		return list.Summaries[0]
	}
}

// A summary whose request is not valid fails for good. After the cause is gone, a person has it made again.
func TestL14_AFailedSummaryIsRetriedByAPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &brokenSummaries{err: reeve.Errorf(reeve.Validation, "this model does not exist")}
		b, last := newSummaryHost(t, m)
		b.AdvanceBy(10*time.Minute, time.Minute)
		s := last()
		if s.State != "failed" || s.Attempts != 1 || s.Message != "this model does not exist" || s.MessageID != "" {
			t.Fatalf("%+v", s)
		}
		m.repaired.Store(true)
		var queued api.Summary
		b.Want(http.StatusOK, &queued, "POST", "/api/agents/bot/summaries/"+s.ID+"/retry", nil)
		if queued.State != "queued" || queued.Attempts != 0 {
			t.Errorf("%+v", queued)
		}
		b.StepAll()
		if s = last(); s.State != "done" || s.MessageID == "" {
			t.Fatalf("after the retry: %+v", s)
		}
		var page api.MessageList
		b.Want(http.StatusOK, &page, "GET", "/api/agents/bot/messages?run="+s.ID, nil)
		if got := page.Messages[len(page.Messages)-1].Content; got != "IN SHORT" {
			t.Errorf("the summary is %s", got)
		}
	})
}

// After empty answers or rate limits the summary is made by rules.
func TestL14_EmptyAndLimitedModelsGiveSummariesByRules(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]error{"empty": nil,
		"limited": &reeve.Error{Code: reeve.RateLimited, Message: "slow down", RetryAfter: time.Second}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, last := newSummaryHost(t, &brokenSummaries{err: err})
				if s := last(); s.State != "queued" || s.Attempts != 1 || s.Message == "" || s.MessageID != "" {
					t.Fatalf("after the first attempt: %+v", s)
				}
				b.AdvanceBy(10*time.Minute, 10*time.Second)
				if s := last(); s.State != "done" || s.Attempts != 4 {
					t.Fatalf("after all attempts: %+v", s)
				}
			})
		})
	}
}
