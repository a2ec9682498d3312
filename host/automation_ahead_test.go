package host_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

// TestK04_ItemsAreWhatTheLedgerSays goes over many items, most of which the script's process knows beforehand: done,
// failed, skipped, new ones, those at another attempt, with other titles and odd names, and the same one twice in a
// run. Each is what the ledger says, and nothing is done twice.
func TestK04_ItemsAreWhatTheLedgerSays(t *testing.T) {
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
	a, d := automate(t, source)
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

// TestK08_TwoItemsAtOnce begins two items side by side, as the first ones of a run and later, when the script's process
// knows them: that is never allowed, however short their handlers are.
func TestK08_TwoItemsAtOnce(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `1`)
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
