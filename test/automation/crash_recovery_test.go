package automation_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The server is lost after one of two effects of an item, for each effect class.
func TestK15_CrashInAHandler(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"send", "note"} {
		t.Run(name, func(t *testing.T) {
			d := newEffectLog()
			source := strings.ReplaceAll(
				`for (const id of ['a', 'b']) await Items.withItem(id, id, async (ctx) => { if (ctx.item.isDone) return; await Mail.NAME({ to: id + '1' }); await Mail.list(); await Mail.NAME({ to: id + '2' }) })`, "NAME", name)
			var old *reevetest.Host
			var next *reevetest.Host
			var looks atomic.Int32
			tools := d.tools()
			tools[len(tools)-1].Handler = func(context.Context, *reeve.Invocation) (any, error) {
				if looks.Add(1) == 2 { // in the middle of b
					next = kit.RestartAfterCrash(old, d.tools()...)
				}
				return "looked", nil
			}
			old = reevetest.StartWith(t, kit.FastConfig(t), tools...)
			was := newAutomation(t, old, "mailer", source)
			before := func() string { d.mu.Lock(); defer d.mu.Unlock(); return fmt.Sprint(d.done["b1"]) }
			was.MustComplete() // the old server continues on its own copy of the database
			kit.Equal(t, before(), "1", "the first effect")
			d.mu.Lock()
			delete(d.done, "b2") // what the lost server did after it was lost
			d.mu.Unlock()
			a := &kit.Automation{Host: next, T: t, Name: "mailer"}
			kit.Equal(t, kit.JoinValues(a.ItemState("a"), a.ItemState("b")), "done processing", "after the crash")
			kit.Eventually(t, "the run is taken up", func() bool {
				if _, err := a.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				return a.ItemState("b") == reeve.ItemDone
			})
			kit.Equal(t, d.String(), "map[a1:1 a2:1 b1:1 b2:1]", "what was done")
		})
	}
}

// The server stops while a script, or a plan that is applied, is in a call. The call finishes, the run continues, and
// the item is done.
func TestK15_StopDuringACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		plan bool
	}{{"send", false}, {"note", false}, {"send", true}, {"note", true}} {
		t.Run(kit.JoinValues(c.name, c.plan), func(t *testing.T) {
			cfg, d := kit.FastConfig(t), newEffectLog()
			began, stopping := make(chan struct{}, 1), make(chan struct{})
			tools := d.tools()
			for i, what := range tools[:2] { // send and note
				tools[i].Handler = func(ctx context.Context, inv *reeve.Invocation) (any, error) {
					select {
					case began <- struct{}{}:
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-stopping:
						}
					default:
					}
					return what.Handler(ctx, inv)
				}
			}
			h := reevetest.Run(t, cfg, tools...)
			a := newAutomation(t, h, "mailer",
				strings.ReplaceAll(`await Items.withItem('a', 'A', async (ctx) => { if (ctx.item.isDone) return; await Mail.NAME({ to: '1' }); await Mail.NAME({ to: '2' }) })`, "NAME", c.name))
			ended := func() (r reeve.AutomationRun) {
				kit.Eventually(t, "the run ends", func() bool {
					runs := kit.ListAutomationRuns(a)
					if len(runs) > 0 {
						r = runs[0]
					}
					return r.Run != nil && r.Run.State.IsFinal()
				})
				return r
			}
			if c.plan {
				a.Want(201, nil, "POST", a.Path("/runs"), kit.Call{"type": "dry"})
				a.Want(201, nil, "POST", "/api/plans/"+ended().Run.ID+"/apply", nil)
			} else {
				a.Want(201, nil, "POST", a.Path("/runs"), kit.Call{})
			}
			<-began
			stopped := make(chan struct{})
			go func() { h.Stop(); close(stopped) }()
			kit.Eventually(t, "the server stops", func() bool {
				c, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			close(stopping)
			<-stopped
			began <- struct{}{} // nobody waits any more
			a.Host = reevetest.Run(t, cfg, tools...)
			r := ended()
			kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Message, a.ItemState("a"), d, a.Get().Status),
				"completed  done map[1:1 2:1] active", "after the stop")
		})
	}
}
