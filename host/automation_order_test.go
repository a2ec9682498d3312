package host_test

import (
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

// TestK20_ACallThatNobodyAwaits: a call belongs to the item in whose handler it is made, however late it is performed,
// and the item is not done before it is.
func TestK20_ACallThatNobodyAwaits(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `for (const id of input.ids) await Items.withItem(id, id, async ({ item }) => { if (!item.isDone) Mail.send({ to: id }) }); 'over'`)
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint("i", 10+i))
	}
	for n := 5; n <= len(ids); n += 5 {
		r := a.start(call{"input": call{"ids": ids[:n]}})
		equal(t, r.Run.State, reeve.RunCompleted, r.Run.Message)
		equal(t, len(d.done), n, "deeds")
	}
	for id, n := range d.done {
		equal(t, n, 1, id)
		equal(t, a.state(id), reeve.ItemDone, id)
	}
}

// TestK10_OutsideIsOutside: a call that was made before an item was entered is not that item's, though it is performed
// when that is open.
func TestK10_OutsideIsOutside(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `Mail.send({ to: 'early' }); await Items.withItem('a', 'a', async () => { await Mail.list() })`)
	a.fails(reeve.LogicFailure, "outside Items.withItem")
	equal(t, len(d.done), 0, "deeds")
}

// TestK16_SettledByAPersonMeanwhile: what a person says of an item counts at once, for the item that is worked on and
// for one that is still to come.
func TestK16_SettledByAPersonMeanwhile(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async ({ item }) => {
  if (item.isDone) return;
  await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 });
}).catch((e) => e); 'over'`)
	d.refuse("b1", true)
	equal(t, a.run().Run.State, reeve.RunFailed, "the first run")
	d.refuse("b1", false)
	a.save(`for (const id of ['x', 'a', 'b', 'c']) await Items.withItem(id, id, async ({ item }) => {
  if (item.isDone) return;
  await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 });
}); 'over'`, true)
	d.hook = func(what string) {
		if what == "x2" { // b failed, and is still to come
			a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "b"})
		}
	}
	a.completes()
	equal(t, a.state("b"), reeve.ItemSkipped, "b")
	a.save(`for (const id of ['y', 'z']) await Items.withItem(id, id, async ({ item }) => { await Mail.send({ to: id + 1 }); await Mail.send({ to: id + 2 }) })`, true)
	d.hook = func(what string) {
		if what == "y1" { // y is worked on
			a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "y"})
		}
	}
	a.fails(reeve.LogicFailure, `item "y" was resolved by a person`)
	equal(t, a.state("y"), reeve.ItemSkipped, "y")
	if d.done["y2"]+d.done["z1"] > 0 {
		t.Errorf("it went on: %s", d)
	}
}

// TestK22_WhatWasDoneBeforeIsDone: a handler that never ends takes nothing from the items before it.
func TestK22_WhatWasDoneBeforeIsDone(t *testing.T) {
	t.Parallel()
	d, cfg := newDeeds(), quick(t)
	cfg.ScriptTimeout = host.Duration(3 * time.Second)
	a := newAuto(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer",
		`for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (i === 39) for (;;) {}; if (i < 12) await Mail.send({ to: 'i' + i }) })`)
	a.fails(reeve.LogicFailure, "the time is over")
	equal(t, len(d.done), 2, "deeds")
	for i := 10; i < 39; i++ {
		equal(t, a.state(fmt.Sprint("i", i)), reeve.ItemDone, fmt.Sprint("i", i))
	}
	equal(t, a.state("i39"), reeve.ItemFailed, "the one that never ends")
}
