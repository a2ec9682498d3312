package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

const day = 24 * time.Hour

// Outputs older than the configured retention are removed, unless they were stored again since. The ledger still says
// what was done.
func TestG20_RetentionRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := ""
		b := kit.NewBubbleHost(t, host.Config{Retention: host.Duration(30 * day)},
			kit.ToolReturning("say", func() (any, error) { return strings.Repeat(said, 40_000), nil }))
		b.NewAgent("aide", nil)
		b.AttachTools("aide", "say", "output_read", "file_write")
		say := func(text string) string {
			t.Helper()
			said = text
			res := b.CallAs("", "aide", "say", kit.Object{})
			if res.IsError || !res.Truncated {
				t.Fatalf("%+v", res)
			}
			return res.Hash
		}
		kept := func(hash string) bool {
			t.Helper()
			res := b.CallAs("", "aide", "output_read", kit.Object{"hash": hash})
			if res.IsError && !strings.Contains(res.Hint, "retention") {
				t.Errorf("%+v", res)
			}
			status := 200
			if res.IsError {
				status = 404
			}
			b.Want(status, nil, "GET", "/api/outputs/"+hash, nil)
			return !res.IsError
		}
		file := filepath.Join(b.Config.Dir, "workspaces", "default", "shared", "plan.txt")
		b.CallAs("", "aide", "file_write", kit.Object{"path": "/shared/plan.txt", "content": "as it was"})
		old, again := say("old "), say("again ")
		first := b.CallAs("", "aide", "file_write", kit.Object{"path": "/shared/plan.txt", "content": "changed",
			"overwrite": true})
		b.AdvanceBy(20*day, day)
		if !kept(old) || !kept(again) {
			t.Error("something is gone before its time")
		}
		say("again ")
		second := b.CallAs("", "aide", "file_write", kit.Object{"path": "/shared/plan.txt", "content": "and again",
			"overwrite": true})
		b.AdvanceBy(11*day, day)
		if kept(old) || !kept(again) {
			t.Errorf("after 31 days: old %t, kept again %t", kept(old), kept(again))
		}
		b.Want(200, nil, "POST", "/api/operations/"+second.OperationID+"/undo", nil)
		if got, _ := os.ReadFile(file); string(got) != "changed" {
			t.Errorf("after the undo of what is young: %q", got)
		}
		b.Want(422, nil, "POST", "/api/operations/"+first.OperationID+"/undo", nil)
		if got, _ := os.ReadFile(file); string(got) != "changed" {
			t.Errorf("after the undo of what is old: %q", got)
		}
		var op reeve.Operation
		b.Want(200, &op, "GET", "/api/operations/"+first.OperationID, nil)
		if op.State != reeve.Committed {
			t.Errorf("the ledger: %+v", op)
		}
		b.AdvanceBy(20*day, day)
		if kept(again) {
			t.Error("what was kept again is there for ever")
		}
	})
}

// Without the setting nothing is removed.
func TestG20_WithoutRetentionNothingIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{}, kit.ToolReturning("say", func() (any, error) {
			return strings.Repeat("text ", 40_000), nil
		}))
		b.NewAgent("aide", nil)
		b.AttachTools("aide", "say", "output_read")
		res := b.CallAs("", "aide", "say", kit.Object{})
		b.AdvanceBy(10*365*day, 365*day)
		if got := b.CallAs("", "aide", "output_read", kit.Object{"hash": res.Hash}); got.IsError {
			t.Errorf("%+v", got)
		}
	})
}

// What models were asked is removed after 30 days, or after the configured time. The turn itself stays.
func TestG20_RequestsToModelsExpire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config host.Config
		days   int
	}{
		"by default":        {host.Config{}, 30},
		"configured":        {host.Config{RequestRetention: host.Duration(60 * day)}, 60},
		"shorter retention": {host.Config{Retention: host.Duration(10 * day)}, 10},
		"both": {host.Config{Retention: host.Duration(10 * day), RequestRetention: host.Duration(20 * day)},
			20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.config.Model = kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: answered}\n")
				b := kit.NewBubbleHost(t, c.config)
				b.NewAgent("bot", kit.Object{"config": kit.Object{"instructions": "I am bot."}})
				b.Want(201, nil, "POST", "/api/agents/bot/wake", kit.Object{"input": "hello"})
				b.StepAll()
				run := b.ListRuns("agent=bot")[0]
				requests := func() int {
					var got api.AskedRequestList
					b.Want(200, &got, "GET", "/api/runs/"+run.ID+"/requests", nil)
					return len(got.Requests)
				}
				b.AdvanceBy(time.Duration(c.days)*day-time.Hour, 5*day)
				if n := requests(); n != 1 {
					t.Errorf("before their time: %d requests", n)
				}
				b.AdvanceBy(2*time.Hour, time.Hour)
				if n := requests(); n != 0 {
					t.Errorf("after %d days: %d requests", c.days, n)
				}
				if got := b.ListRuns("agent=bot")[0]; got.Output != "answered" {
					t.Errorf("the run: %+v", got)
				}
			})
		})
	}
}
