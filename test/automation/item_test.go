package automation_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

func TestK03_NewItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `
		const seen = await Items.withItem('a', 'Letter a', async (ctx) => {
		  const l = await Items.list({ id: 'a' });
		  await Mail.send({ to: 'a' });
		  return { isDone: ctx.item.isDone, title: ctx.item.title, state: l.items[0].state };
		});
		JSON.stringify(seen)`)
	r := a.MustComplete()
	kit.Equal(t, r.Run.Output, `{"isDone":false,"title":"Letter a","state":"processing"}`, "what the handler saw")
	v := a.GetItem("a")
	kit.Equal(t, kit.JoinValues(v.State, v.CreatedBy, v.FirstRun == r.Run.ID, v.LastRun == r.Run.ID, v.Attempt,
		v.Title),
		"done automation true true 1 Letter a", "the row")
	kit.Equal(t, d.String(), "map[a:1]", "what was done")
	kit.Equal(t, kit.JoinValues(len(v.Attempts), v.Attempts[0].Version, v.Attempts[0].State), "1 1.0 done",
		"the attempt")
	kit.Equal(t, r.Script.Progress.Done, 1, "items done")
}

func TestK04_DoneItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	a.MustComplete()
	before := a.GetItem("a").Item
	r := a.MustComplete()
	kit.Equal(t, kit.JoinValues(r.Script.Progress.Done, r.Script.Progress.Skipped), "0 3", "progress of a second run")
	a.SaveVersion(`let seen; try { await Items.withItem('a', 'Another title', async (ctx) => { seen = ctx.item.isDone; throw new Error('no') }) } catch (e) { seen = seen + e.message } seen`, false)
	kit.Equal(t, a.MustComplete().Run.Output, "trueno", "the handler ran")
	kit.Equal(t, a.GetItem("a").Item, before, "the row")
	kit.Equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}

func TestK05_ChangeOfADoneItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	a.MustComplete()
	a.SaveVersion(`try { await Items.withItem('b', 'B', async () => { try { await Mail.send({ to: 'again' }) } catch (e) {} }) } catch (e) {}
		await Items.withItem('d', 'D', async () => { await Mail.send({ to: 'd' }) })`, false)
	a.MustFail(reeve.LogicFailure, `"b"`, "done")
	kit.Equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
	a.WantItems(3)
	kit.Equal(t, a.ItemState("b"), reeve.ItemDone, "the item")
}

func TestK06_FailedItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	d.refuse("b", true)
	first := a.MustFail(reeve.LogicFailure, "b was refused")
	kit.Equal(t, kit.JoinValues(a.ItemState("a"), a.ItemState("b")), "done failed", "after the first run")
	a.WantItems(2)
	d.refuse("b", false)
	a.SaveVersion(strings.Replace(threeItems, "Letter", "Better letter", 1), true)
	second := a.MustComplete()
	v := a.GetItem("b")
	kit.Equal(t, kit.JoinValues(v.State, v.FirstRun == first.Run.ID, v.LastRun == second.Run.ID, v.Title, v.Attempt),
		"done true true Better letter b 1", "the row")
	kit.Equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}

func TestK07_Throw(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, strings.Replace(threeItems, "if (ctx", "if (id === 'b') throw new Error('cannot read b');\nif (ctx",
		1))
	r := a.MustFail(reeve.LogicFailure, "cannot read b", "script.js:4")
	kit.Equal(t, kit.JoinValues(a.ItemState("a"), a.ItemState("b"), r.Script.Progress.Failed), "done failed 1", "items")
	a.WantItems(2)
	kit.Equal(t, d.String(), "map[a:1]", "what was done")
	// A script that catches it can go on, but its run has failed all the same.
	a.SaveVersion(`try { await Items.withItem('x', 'X', () => { throw new Error('sync') }) } catch (e) {} await Items.withItem('y', 'Y', () => 1)`, false)
	a.MustFail(reeve.LogicFailure, "sync")
	kit.Equal(t, kit.JoinValues(a.ItemState("x"), a.ItemState("y")), "failed done", "items")
}

func TestK08_OneItemAtATime(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `await Items.withItem('outer', 'Outer', async () => { try { await Items.withItem('inner', 'Inner', async () => {}) } catch (e) {} })`)
	a.MustFail(reeve.LogicFailure, `"inner"`, `"outer"`)
	kit.Equal(t, a.ItemState("outer"), reeve.ItemFailed, "the outer item")
	a.WantItems(1)
	a.SaveVersion(`await Promise.allSettled([Items.withItem('p', 'P', async () => { await Mail.list() }), Items.withItem('q', 'Q', async () => { await Mail.list() })])`, false)
	a.MustFail(reeve.LogicFailure, "is open")
	a.SaveVersion(`for (let i = 0; i < 10000; i++) await Items.withItem('n' + i, 'N', async () => {})`, false)
	kit.Equal(t, a.MustComplete().Script.Progress.Done, 10000, "items")
	kit.Equal(t, a.ListItems("status=done&limit=1").Total, 10000, "items that are done")
	kit.Equal(t, a.MustComplete().Script.Progress.Skipped, 10000, "items")
	kit.Equal(t, d.String(), "map[]", "what was done")
}

func TestK09_BadItems(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `1`)
	for source, says := range map[string]string{
		`Items.withItem('', 'T', () => 1)`:                     "id",
		`Items.withItem('  ', 'T', () => 1)`:                   "id",
		`Items.withItem(7, 'T', () => 1)`:                      "id",
		`Items.withItem(null, 'T', () => 1)`:                   "id",
		`Items.withItem()`:                                     "id",
		`Items.withItem('i', '', () => 1)`:                     "title",
		`Items.withItem('i', {}, () => 1)`:                     "title",
		`Items.withItem('i', 'T', 'handler')`:                  "handler",
		`Items.withItem('i', 'T')`:                             "handler",
		`Items.withItem('a\0b', 'T', () => 1)`:                 "NUL",
		`Items.withItem('x'.repeat(10240), 'T', () => 1)`:      "10240",
		`Items.withItem('i', 'y'.repeat(1025), async () => 1)`: "1025",
	} {
		a.SaveVersion("try { await "+source+" } catch (e) {}", false)
		a.MustFail(reeve.LogicFailure, "Items.withItem", says)
	}
	a.WantItems(0)
	a.SaveVersion(`await Items.withItem('x'.repeat(1024), 'Ü'.repeat(512), () => 1)`, false)
	a.MustComplete()
	a.WantItems(1)
}

func TestK10_ChangeOutsideAnItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `Console.log('hello', {a: 1}); (await Mail.list()).length + (await Mail.any({ to: 'read' })).sent.length`)
	r := a.MustComplete()
	kit.Equal(t, r.Run.Output, "7", "what reads gave")
	kit.Equal(t, r.Script.Log, `hello {"a":1}`, "the log")
	for _, source := range []string{`Mail.send({ to: 'x' })`, `Mail.note({ to: 'x' })`, `Mail.vague({ to: 'x' })`,
		`Mail.any({ to: 'x' })`, `Tools.call('mail_send', { to: 'x' })`} {
		a.SaveVersion("try { await "+source+" } catch (e) {} Console.log('went on')", false)
		if r := a.MustFail(reeve.LogicFailure, "outside Items.withItem"); r.Script.Log != "" {
			t.Errorf("%s: the script caught it: %s", source, r.Script.Log)
		}
	}
	kit.Equal(t, d.String(), "map[read:1]", "what was done")
	a.WantItems(0)
}

func TestK11_BadInputFirst(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `let e; try { await Mail.send({ to: 7, too: 1 }) } catch (x) { e = x } e.code`)
	kit.Equal(t, a.MustComplete().Run.Output, string(reeve.Validation), "bad input outside an item")
	kit.Equal(t, d.String(), "map[]", "what was done")
}

func TestK16_SkippedUntilReprocessed(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	d.refuse("b", true)
	a.MustFail(reeve.LogicFailure)
	d.refuse("b", false)
	a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "b", "reason": "not this one"})
	a.MustComplete()
	kit.Equal(t, d.String(), "map[a:1 c:1]", "what was done")
	kit.Equal(t, a.ItemState("b"), reeve.ItemSkipped, "the item")
	a.Want(409, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "b"})
	a.Want(404, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "nothing"})
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "b"})
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "a"})
	a.MustComplete()
	kit.Equal(t, d.String(), "map[a:2 b:1 c:1]", "what was done")
	v := a.GetItem("b")
	kit.Equal(t, kit.JoinValues(v.State, v.Attempt, len(v.Attempts), v.Attempts[0].State, v.Attempts[0].Message,
		v.Attempts[1].State), "done 2 2 skipped not this one done", "attempts")
}

// Two items begin in parallel, as the first of a run and later when the process of the script has loaded them. That is
// never allowed, however short their handlers are.
func TestK08_TwoItemsAtOnce(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `1`)
	for name, source := range map[string]string{
		"first":  `await Promise.all([Items.withItem('NAME1', 'One', () => 1), Items.withItem('NAME2', 'Two', () => 1)])`,
		"later":  `await Items.withItem('NAME0', 'Zero', () => 1); await Promise.allSettled([Items.withItem('NAME1', 'One', () => 1), Items.withItem('NAME2', 'Two', () => 1)])`,
		"nested": `await Items.withItem('NAME0', 'Zero', () => 1); await Items.withItem('NAME1', 'One', () => Items.withItem('NAME2', 'Two', () => 1).catch(() => 1))`,
	} {
		a.SaveVersion(strings.ReplaceAll(source, "NAME", name), false)
		a.MustFail(reeve.LogicFailure, "script.js:1:", `Items.withItem was called for item "`+name+`2" while item "`+
			name+
			`1" is open`)
		kit.Equal(t, a.ItemState(name+"1"), reeve.ItemFailed, name)
		kit.Equal(t, a.ListItems("item="+name+"2").Total, 0, name)
	}
}
