package automation_test

import (
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Runs that are steps of turns run in parallel. Only one of them works on an item at a time.
func TestK14_RunsSideBySide(t *testing.T) {
	t.Parallel()
	h, _, d := runWithSteps(t, kit.Object{"assembly": "context"}, map[string]string{"context": `
await Items.withItem('shared', 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: 'x', text: input.session_id || String(Math.random()) }) });
input.request`})
	at, goOn := make(chan struct{}), make(chan struct{})
	d.hook = func(string) { close(at); <-goOn }
	first, second := h.StartConversation("bot"), h.StartConversation("bot")
	one := kit.StartTurn(h, first.ID, "first").ID
	<-at
	two := kit.WaitForTurn(h, kit.StartTurn(h, second.ID, "second").ID)
	if two.State != reeve.RunFailed || !strings.Contains(two.Message, "is being processed by another run") {
		t.Errorf("the second turn is %s: %s", two.State, two.Message)
	}
	close(goOn)
	if got := kit.WaitForTurn(h, one); got.State != reeve.RunCompleted {
		t.Errorf("the first turn is %s: %s", got.State, got.Message)
	}
	kit.Equal(t, len(d.done), 1, "deeds")
	d.hook = nil
	if got := kit.WaitForTurn(h, kit.StartTurn(h, second.ID, "again").ID); got.State != reeve.RunCompleted {
		t.Errorf("the next turn is %s: %s", got.State, got.Message)
	}
	kit.Equal(t, len(d.done), 1, "deeds")
}

// Two people create an automation for the same agent at once. The second request fails, and the version of the first
// stays active.
func TestK14_SecondCreatorOfAnAutomationIsRefused(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	a := &kit.Automation{Host: reevetest.StartWith(t, cfg), T: t, Name: "mailer"}
	a.Agent("mailer")
	c := kit.ExecPostgres(t, cfg.Database,
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`,
		`CREATE TRIGGER wait BEFORE INSERT ON automations FOR EACH ROW EXECUTE FUNCTION wait()`,
		`SELECT pg_advisory_lock(1)`)
	var both sync.WaitGroup
	answers := make([]int, 2)
	for i, body := range []kit.Call{{"name": "mailer", "source": "'first'"}, {"name": "mailer"}} {
		both.Go(func() { answers[i] = a.Do("POST", "/api/automations", body).Status })
		kit.Eventually(t, "it waits", func() bool { return countLockWaits(t, c) == i+1 })
	}
	if _, err := c.Exec(t.Context(), `SELECT pg_advisory_unlock(1)`); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	kit.Equal(t, kit.JoinValues(answers, a.Get().Status), "[201 409] active", "the answers, and the automation")
}

func TestK14_TwoAutomations(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	b := newAutomation(t, a.Host, "second", threeItems)
	a.MustComplete()
	b.MustComplete()
	a.WantItems(3)
	b.WantItems(3)
	kit.Equal(t, d.String(), "map[a:2 b:2 c:2]", "each did its own")
}
