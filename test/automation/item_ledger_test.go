package automation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A script visits many items, most of which its process has loaded ahead: done, failed, skipped and new ones, other
// attempts, other titles, odd names, and one item twice. Each matches the ledger, and nothing is done twice.
func TestK04_ItemsMatchTheLedger(t *testing.T) {
	t.Parallel()
	source := `const seen = [];
const work = async (id, title) => {
  seen.push('?');
  await Items.withItem(id, title, async ({ item }) => {
    seen[seen.length - 1] = item.id + (item.title === title ? '' : '~') + (item.isDone ? '+' : '-') + item.attempt;
    if (!item.isDone) await Mail.send({ to: item.id });
  }).catch((e) => { seen[seen.length - 1] += '!' });
};
for (let i = 10; i < input.to; i++) await work('i' + i, 'Item ' + i + input.mark);
for (const id of ['i12', 'i15', 'q "<&>', 'q "<&>', 'ü é', 'x\u2028y', 'i14']) await work(id, id + input.mark);
seen.join(' ')`
	a, d := newMailer(t, source)
	d.refuse("i13", true)
	r := a.StartRun(kit.Call{"input": kit.Call{"to": 20, "mark": ""}})
	kit.Equal(t, r.Run.State, reeve.RunFailed, "an item failed")
	kit.Equal(t, r.Script.Progress.Done, 12, "items done")
	a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "i13"})
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "i16"})
	d.refuse("i20", true)
	r = a.StartRun(kit.Call{"input": kit.Call{"to": 22, "mark": " again"}})
	kit.Equal(t, r.Run.State, reeve.RunFailed, "another failed")
	a.SaveVersion(strings.ReplaceAll(source, "seen.join(' ')", "seen.join(' ') + '.'"), true)
	d.refuse("i20", false)
	r = a.StartRun(kit.Call{"input": kit.Call{"to": 24, "mark": "", "why": "mended"}})
	kit.Equal(t, r.Run.State, reeve.RunCompleted, r.Run.Message)
	kit.Equal(t, r.Run.Output,
		`i10+1 i11+1 i12+1 ? i14+1 i15+1 i16~+2 i17+1 i18+1 i19+1 i20-1 i21~+1 i22-1 i23-1 i12~+1 i15~+1 q "<&>+1 q "<&>+1 ü é+1 `+"x\u2028y"+`+1 i14~+1.`, "what the script saw")
	for id, n := range d.done {
		if want := map[string]int{"i16": 2}[id]; n != max(1, want) {
			t.Errorf("%s was done %d times", id, n)
		}
	}
	kit.Equal(t, len(d.done), 16, "deeds")
}

// A call belongs to the item in whose handler it is made, however late it executes, and the item is not done before the
// call is.
func TestK20_CallThatIsNotAwaited(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `for (const id of input.ids) await Items.withItem(id, id, async ({ item }) => { if (!item.isDone) Mail.send({ to: id }) }); 'over'`)
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint("i", 10+i))
	}
	for n := 5; n <= len(ids); n += 5 {
		r := a.StartRun(kit.Call{"input": kit.Call{"ids": ids[:n]}})
		kit.Equal(t, r.Run.State, reeve.RunCompleted, r.Run.Message)
		kit.Equal(t, len(d.done), n, "deeds")
	}
	for id, n := range d.done {
		kit.Equal(t, n, 1, id)
		kit.Equal(t, a.ItemState(id), reeve.ItemDone, id)
	}
}

// A call that was made before an item was entered does not belong to it, although it executes while the item is open.
func TestK10_CallBeforeAnItemIsOutside(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `Mail.send({ to: 'early' }); await Items.withItem('a', 'a', async () => { await Mail.list() })`)
	a.MustFail(reeve.LogicFailure, "outside Items.withItem")
	kit.Equal(t, len(d.done), 0, "deeds")
}

// A person's decision about an item counts at once, for the current item and for later ones.
func TestK16_PersonDecidesDuringARun(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async ({ item }) => {
  if (item.isDone) return;
  await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 });
}).catch((e) => e); 'over'`)
	d.refuse("b1", true)
	kit.Equal(t, a.RunOnce().Run.State, reeve.RunFailed, "the first run")
	d.refuse("b1", false)
	a.SaveVersion(`for (const id of ['x', 'a', 'b', 'c']) await Items.withItem(id, id, async ({ item }) => {
  if (item.isDone) return;
  await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 });
}); 'over'`, true)
	d.hook = func(what string) {
		if what == "x2" { // b failed, and is still to come
			a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "b"})
		}
	}
	a.MustComplete()
	kit.Equal(t, a.ItemState("b"), reeve.ItemSkipped, "b")
	a.SaveVersion(`for (const id of ['y', 'z']) await Items.withItem(id, id, async ({ item }) => { await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 }) })`, true)
	d.hook = func(what string) {
		if what == "y1" { // y is worked on
			a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "y"})
		}
	}
	a.MustFail(reeve.LogicFailure, `a person skipped or restarted item "y"`)
	kit.Equal(t, a.ItemState("y"), reeve.ItemSkipped, "y")
	if d.done["y2"]+d.done["z1"] > 0 {
		t.Errorf("it went on: %s", d)
	}
}

// A handler that never ends does not affect the items before it.
func TestK22_EndlessHandlerKeepsEarlierItems(t *testing.T) {
	t.Parallel()
	d, cfg := newEffectLog(), kit.FastConfig(t)
	cfg.ScriptTimeout = host.Duration(3 * time.Second)
	a := newAutomation(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer",
		`for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (i === 39) for (;;) {}; if (i < 12) await Mail.send({ to: 'i' + i }) })`)
	a.MustFail(reeve.LogicFailure, "time limit exceeded")
	kit.Equal(t, len(d.done), 2, "deeds")
	for i := 10; i < 39; i++ {
		kit.Equal(t, a.ItemState(fmt.Sprint("i", i)), reeve.ItemDone, fmt.Sprint("i", i))
	}
	kit.Equal(t, a.ItemState("i39"), reeve.ItemFailed, "the one that never ends")
}
