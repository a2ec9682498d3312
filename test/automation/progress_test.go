package automation_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/test/kit"
)

// runFeed collects what a follower of a run receives.
type runFeed struct {
	mu   sync.Mutex
	seen []reeve.AutomationRun
}

func (f *runFeed) receive(r reeve.AutomationRun) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r)
	return nil
}

// hasSeen reports whether a run was seen with a progress text.
func (f *runFeed) hasSeen(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.seen {
		p := r.Script.Progress
		if kit.JoinValues(r.Run.State, p.Done, p.Total, p.Current, p.Spent.Calls) == what {
			return true
		}
	}
	return false
}

// The CLI's client and a WebSocket follow a run and see its progress and its end.
func TestK25_ProgressIsStreamed(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `Items.total(3); Console.log('a word'); for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Letter ' + id, async () => { await Mail.send({ to: id }) })`)
	c, err := client.New(client.Config{URL: a.URL, Token: a.Token})
	if err != nil {
		t.Fatal(err)
	}
	var events, socket runFeed
	var following sync.WaitGroup
	d.hook = func(what string) {
		switch what {
		case "a":
			run := kit.ListAutomationRuns(a)[0].Run.ID
			following.Go(func() {
				if err := c.Automations().FollowRun(t.Context(), "mailer", run, events.receive); err != nil {
					t.Errorf("the events: %v", err)
				}
			})
			following.Go(func() { followSocket(t, a, run, &socket) })
		case "b":
			const there = "running 1 3 Letter b 1"
			kit.Eventually(t, "both see the second item", func() bool { return events.hasSeen(there) && socket.hasSeen(there) })
		}
	}
	r := a.MustComplete()
	following.Wait()
	for name, f := range map[string]*runFeed{"events": &events, "socket": &socket} {
		last := f.seen[len(f.seen)-1]
		kit.Equal(t, kit.JoinValues(last.Run.State, last.Script.Progress.Done, last.Script.Log), "completed 3 a word",
			name+": the end")
		kit.Equal(t, last.Run.ID, r.Run.ID, name+": whose")
	}

	// A client that connects after the end gets one frame. Unknown runs and runs of others are refused.
	var late runFeed
	if err := c.Automations().FollowRun(t.Context(), "mailer", r.Run.ID, late.receive); err != nil || len(late.seen) != 1 {
		t.Errorf("after the end: %d frames, %v", len(late.seen), err)
	}
	newAutomation(t, a.Host, "other", `1`)
	a.Want(404, nil, "GET", "/api/automations/other/runs/"+r.Run.ID+"/events", nil)
	a.Want(404, nil, "GET", a.Path("/runs/run_nothing/events"), nil)
	a.Want(400, nil, "GET", "/automations/mailer/runs/"+r.Run.ID, nil)
}

// followSocket follows a run over a WebSocket to its end.
func followSocket(t *testing.T, a *kit.Automation, run string, f *runFeed) {
	url := strings.Replace(a.URL, "http", "ws", 1) + "/automations/mailer/runs/" + run
	conn, _, err := websocket.Dial(t.Context(), url,
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + a.Token},
			"X-Workspace-Id": {"default"}}})
	if err != nil {
		t.Errorf("the socket: %v", err)
		return
	}
	for {
		_, text, err := conn.Read(context.WithoutCancel(t.Context()))
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			return
		}
		var frame api.RunFrame
		if err != nil || json.Unmarshal(text, &frame) != nil {
			t.Errorf("the socket: %s, %v", text, err)
			return
		}
		_ = f.receive(frame.AutomationRun)
	}
}

func TestK25_Progress(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `await Items.total(3); for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Letter ' + id, async () => { await Mail.send({ to: id }) })`)
	var during reeve.AutomationRun
	d.hook = func(what string) {
		if what == "b" {
			runs := kit.ListAutomationRuns(a)
			a.Want(200, &during, "GET", a.Path("/runs/"+runs[0].Run.ID), nil)
		}
	}
	r := a.MustComplete()
	p := during.Script.Progress
	kit.Equal(t, kit.JoinValues(during.Run.State, p.Done, p.Total, p.Current, p.Spent.Calls), "running 1 3 Letter b 1",
		"while it runs")
	kit.Equal(t, kit.JoinValues(r.Script.Progress.Done, r.Script.Progress.Total, r.Script.Progress.Current,
		r.Script.Progress.Spent.Calls), "3 3  3", "at its end")
}

// A run that waited for a person executes its script again and shows its real cost; so does a run that finds calls of
// an earlier run done.
func TestK25_RunCostIsCountedOnce(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `await Items.withItem('a', 'A', async () => { await Mail.send({ to: 'one' }); await Mail.note({ to: 'two' }); await Mail.send({ to: 'three' }) })`)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", kit.Call{"policy": kit.Call{"tools": kit.Call{"mail_note": "ask"}}})
	d.refuse("three", true)
	r := a.RunOnce()
	kit.Decide(a.Host, kit.GetInbox(a.Host).Approvals[0].ID, "approve")
	a.RunUntilIdle(t.Context())
	a.Want(200, &r, "GET", a.Path("/runs/"+r.Run.ID), nil)
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Spent.Calls, r.Script.Progress.Spent.Calls), "failed 3 3",
		"with the one that was refused")
	d.refuse("three", false)
	r = a.MustComplete()
	kit.Equal(t, kit.JoinValues(r.Run.Spent.Calls, r.Script.Progress.Spent.Calls, d), "1 1 map[one:1 three:1 two:1]",
		"the next run")
}
