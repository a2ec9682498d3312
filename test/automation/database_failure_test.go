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

// startWithFailingCommit starts an automation on PostgreSQL whose server loses its connection at the first commit that
// records item b.
func startWithFailingCommit(t *testing.T, source string) (*kit.Automation, *effectLog) {
	t.Helper()
	cfg, d := kit.FastConfig(t), newEffectLog()
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	a := newAutomation(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", source)
	kit.ExecPostgres(t, cfg.Database, `CREATE SEQUENCE entered`,
		`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.item_id = 'b' AND nextval('entered') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
			RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`)
	return a, d
}

// A script cannot catch a database failure. Its run continues when the database is back.
func TestK18_TheDatabaseFailsARun(t *testing.T) {
	t.Parallel()
	a, d := startWithFailingCommit(t, `
		const caught = [];
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => {
		  try { await Mail.list({}) } catch (e) { caught.push(e.code + ': ' + e.message) }
		  if (!ctx.item.isDone) await Mail.send({ to: id });
		});
		caught.join()`)
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Output, a.Get().Status, d), "completed  active map[a:1 b:1 c:1]",
		"the run")
}

// A plan that is being applied when the database fails is continued, and none of its items fails.
func TestK28_TheDatabaseFailsAnApply(t *testing.T) {
	t.Parallel()
	a, d := startWithFailingCommit(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: id }) })`)
	asked := a.StartRun(kit.Call{"type": "dry"})
	a.Want(201, &asked, "POST", "/api/plans/"+asked.Run.ID+"/apply", nil)
	r := a.ServeRun(asked)
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Message, a.ListItems("status=done").Total, d),
		"completed  3 map[a:1 b:1 c:1]",
		"the run")
}

// A version that a person saves while the failure of the version before is handled is not blocked by that failure.
func TestK19_SaveDuringAFailure(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	a := newAutomation(t, reevetest.StartWith(t, cfg, newEffectLog().tools()...), "mailer", `oops()`)
	c := kit.ExecPostgres(t, cfg.Database, // the trigger blocks the insert of a failure until the test unlocks it
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`,
		`CREATE TRIGGER wait BEFORE INSERT ON automation_failures FOR EACH ROW EXECUTE FUNCTION wait()`,
		`SELECT pg_advisory_lock(1)`)
	var both sync.WaitGroup
	both.Go(func() { a.RunOnce() })
	kit.Eventually(t, "the failure is decided", func() bool { return countLockWaits(t, c) == 1 })
	saved := make(chan string, 1)
	both.Go(func() { saved <- a.SaveVersion(`'well'`, false) })
	kit.Eventually(t, "the version is saved, or waits", func() bool { return len(saved) == 1 || countLockWaits(t, c) == 2 })
	if _, err := c.Exec(t.Context(), `SELECT pg_advisory_unlock(1)`); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	m := a.Get()
	kit.Equal(t, kit.JoinValues(m.Version, m.Status, m.Failure == nil), "2.0 active true", "the automation")
	kit.Equal(t, a.ListScriptJobs()[0].State, reeve.ScriptJobStale, "the repair of the version before")
}
