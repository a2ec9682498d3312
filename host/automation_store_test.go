package host_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// breaking is an automation on PostgreSQL, whose server loses its connection when it first commits that item b was entered.
func breaking(t *testing.T, source string) (*auto, *deeds) {
	t.Helper()
	cfg, d := quick(t), newDeeds()
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	a := newAuto(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", source)
	c, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	for _, query := range []string{`CREATE SEQUENCE entered`,
		`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.item_id = 'b' AND nextval('entered') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
			RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`} {
		if _, err := c.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return a, d
}

// TestK18_TheDatabaseFailsARun: a script learns nothing of a database that fails it, whatever it catches, and its run goes on when the database is there.
func TestK18_TheDatabaseFailsARun(t *testing.T) {
	a, d := breaking(t, `
		const caught = [];
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => {
		  try { await Mail.list({}) } catch (e) { caught.push(e.code + ': ' + e.message) }
		  if (!ctx.item.isDone) await Mail.send({ to: id });
		});
		caught.join()`)
	r := a.run()
	equal(t, spoken(r.Run.State, r.Run.Output, a.get().Status, d), "completed  active map[a:1 b:1 c:1]", "the run")
}

// TestK28_TheDatabaseFailsAnApply: a plan that is being applied when the database fails is carried on with, and no item of it fails.
func TestK28_TheDatabaseFailsAnApply(t *testing.T) {
	a, d := breaking(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: id }) })`)
	asked := a.start(call{"type": "dry"})
	a.Want(201, &asked, "POST", "/api/plans/"+asked.Run.ID+"/apply", nil)
	r := a.served(asked)
	equal(t, spoken(r.Run.State, r.Run.Message, a.items("status=done").Total, d), "completed  3 map[a:1 b:1 c:1]", "the run")
}
