package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

const three = `
for (const id of ['a', 'b', 'c']) {
  await Items.withItem(id, 'Letter ' + id, async (ctx) => {
    if (ctx.item.isDone) return;
    await Mail.send({ to: id });
  });
}`

func TestK03_NewItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `
		const seen = await Items.withItem('a', 'Letter a', async (ctx) => {
		  const l = await Items.list({ id: 'a' });
		  await Mail.send({ to: 'a' });
		  return { isDone: ctx.item.isDone, title: ctx.item.title, state: l.items[0].state };
		});
		JSON.stringify(seen)`)
	r := a.completes()
	equal(t, r.Run.Output, `{"isDone":false,"title":"Letter a","state":"processing"}`, "what the handler saw")
	v := a.item("a")
	equal(t, spoken(v.State, v.CreatedBy, v.FirstRun == r.Run.ID, v.LastRun == r.Run.ID, v.Attempt, v.Title),
		"done automation true true 1 Letter a", "the row")
	equal(t, d.String(), "map[a:1]", "what was done")
	equal(t, spoken(len(v.Attempts), v.Attempts[0].Version, v.Attempts[0].State), "1 1.0 done", "the attempt")
	equal(t, r.Script.Progress.Done, 1, "items done")
}

func TestK04_DoneItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	a.completes()
	before := a.item("a").Item
	r := a.completes()
	equal(t, spoken(r.Script.Progress.Done, r.Script.Progress.Skipped), "0 3", "progress of a second run")
	a.save(`let seen; try { await Items.withItem('a', 'Another title', async (ctx) => { seen = ctx.item.isDone; throw new Error('no') }) } catch (e) { seen = seen + e.message } seen`, false)
	equal(t, a.completes().Run.Output, "trueno", "the handler ran")
	equal(t, a.item("a").Item, before, "the row")
	equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}

func TestK05_ChangeOfADoneItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	a.completes()
	a.save(`try { await Items.withItem('b', 'B', async () => { try { await Mail.send({ to: 'again' }) } catch (e) {} }) } catch (e) {}
		await Items.withItem('d', 'D', async () => { await Mail.send({ to: 'd' }) })`, false)
	a.fails(reeve.LogicFailure, `"b"`, "done")
	equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
	a.wantItems(3)
	equal(t, a.state("b"), reeve.ItemDone, "the item")
}

func TestK06_FailedItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	d.refuse("b", true)
	first := a.fails(reeve.LogicFailure, "b was refused")
	equal(t, spoken(a.state("a"), a.state("b")), "done failed", "after the first run")
	a.wantItems(2)
	d.refuse("b", false)
	a.save(strings.Replace(three, "Letter", "Better letter", 1), true)
	second := a.completes()
	v := a.item("b")
	equal(t, spoken(v.State, v.FirstRun == first.Run.ID, v.LastRun == second.Run.ID, v.Title, v.Attempt),
		"done true true Better letter b 1", "the row")
	equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}

func TestK07_Throw(t *testing.T) {
	t.Parallel()
	a, d := automate(t, strings.Replace(three, "if (ctx", "if (id === 'b') throw new Error('cannot read b');\nif (ctx",
		1))
	r := a.fails(reeve.LogicFailure, "cannot read b", "script.js:4")
	equal(t, spoken(a.state("a"), a.state("b"), r.Script.Progress.Failed), "done failed 1", "items")
	a.wantItems(2)
	equal(t, d.String(), "map[a:1]", "what was done")
	// A script that catches it can go on, but its run has failed all the same.
	a.save(`try { await Items.withItem('x', 'X', () => { throw new Error('sync') }) } catch (e) {} await Items.withItem('y', 'Y', () => 1)`, false)
	a.fails(reeve.LogicFailure, "sync")
	equal(t, spoken(a.state("x"), a.state("y")), "failed done", "items")
}

func TestK08_OneItemAtATime(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `await Items.withItem('outer', 'Outer', async () => { try { await Items.withItem('inner', 'Inner', async () => {}) } catch (e) {} })`)
	a.fails(reeve.LogicFailure, `"inner"`, `"outer"`)
	equal(t, a.state("outer"), reeve.ItemFailed, "the outer item")
	a.wantItems(1)
	a.save(`await Promise.allSettled([Items.withItem('p', 'P', async () => { await Mail.list() }), Items.withItem('q', 'Q', async () => { await Mail.list() })])`, false)
	a.fails(reeve.LogicFailure, "is open")
	a.save(`for (let i = 0; i < 10000; i++) await Items.withItem('n' + i, 'N', async () => {})`, false)
	equal(t, a.completes().Script.Progress.Done, 10000, "items")
	equal(t, a.items("status=done&limit=1").Total, 10000, "items that are done")
	equal(t, a.completes().Script.Progress.Skipped, 10000, "items")
	equal(t, d.String(), "map[]", "what was done")
}

func TestK09_BadItems(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `1`)
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
		a.save("try { await "+source+" } catch (e) {}", false)
		a.fails(reeve.LogicFailure, "Items.withItem", says)
	}
	a.wantItems(0)
	a.save(`await Items.withItem('x'.repeat(1024), 'Ü'.repeat(512), () => 1)`, false)
	a.completes()
	a.wantItems(1)
}

func TestK10_ChangeOutsideAnItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `Console.log('hello', {a: 1}); (await Mail.list()).length + (await Mail.any({ to: 'read' })).sent.length`)
	r := a.completes()
	equal(t, r.Run.Output, "7", "what reads gave")
	equal(t, r.Script.Log, `hello {"a":1}`, "the log")
	for _, source := range []string{`Mail.send({ to: 'x' })`, `Mail.note({ to: 'x' })`, `Mail.vague({ to: 'x' })`,
		`Mail.any({ to: 'x' })`, `Tools.call('mail_send', { to: 'x' })`} {
		a.save("try { await "+source+" } catch (e) {} Console.log('went on')", false)
		if r := a.fails(reeve.LogicFailure, "outside Items.withItem"); r.Script.Log != "" {
			t.Errorf("%s: the script caught it: %s", source, r.Script.Log)
		}
	}
	equal(t, d.String(), "map[read:1]", "what was done")
	a.wantItems(0)
}

func TestK11_BadInputFirst(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `let e; try { await Mail.send({ to: 7, too: 1 }) } catch (x) { e = x } e.code`)
	equal(t, a.completes().Run.Output, string(reeve.Validation), "bad input outside an item")
	equal(t, d.String(), "map[]", "what was done")
}

func TestK12_List(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `for (let i = 0; i < 150; i++) { try { await Items.withItem('i' + String(149 - i).padStart(3, '0'), 'I', () => { if (i === 7) throw new Error('seven') }) } catch (e) {} }`)
	a.run()
	other := newAuto(t, a.Host, "other", `await Items.withItem('i001', 'Other', () => 1)`)
	other.completes()
	other.wantItems(1)
	a.save(`
		const short = (l) => [l.items.length, l.total, l.has_more, l.items[0]?.id].join(' ');
		const codes = [];
		for (const bad of [{limit: 0}, {limit: 1001}, {limit: -1}, {offset: -1}, {status: 'x'}, {nope: 1}, 'x']) { try { await Items.list(bad); codes.push('none') } catch (e) { codes.push(e.code) } }
		[short(await Items.list()), short(await Items.list({limit: 1000})), short(await Items.list({limit: 1, offset: 149})), short(await Items.list({status: 'failed'})),
		 short(await Items.list({id: 'i003'})), short(await Items.list({status: 'done', id: 'i142'})), [...new Set(codes)].join()].join('; ')`, false)
	equal(t, a.completes().Run.Output,
		"100 150 true i000; 150 150 false i000; 1 150 false i149; 1 1 false i142; 1 1 false i003; 0 0 false ; "+
			"VALIDATION_ERROR", "lists")
}

// TestK12_NewestFirst begins items in an order that neither their ids nor their titles have, most of them within the
// same millisecond, and fails some of them. The newest is the one that was begun last, for the script, over REST and
// page by page.
func TestK12_NewestFirst(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprintf("i%02d", i*37%60)) // each once
	}
	a, _ := automate(t, `for (const id of `+string(mustJSON(ids))+`) {
		try { await Items.withItem(id, 'Item', () => { if (id > 'i54') throw new Error('no') }) } catch (e) {}
	}`)
	a.run()
	var want string // the last comes first
	for _, id := range ids {
		want = strings.TrimSpace(id + " " + want)
	}
	a.save(`const list = await Items.list(), pages = [];
		for (let offset = 0; offset < 60; offset += 7) pages.push(...(await Items.list({ limit: 7, offset })).items);
		[list.items, pages].map((l) => l.map((i) => i.id).join(' ')).join('; ')`, false)
	equal(t, a.completes().Run.Output, want+"; "+want, "for the script")
	var rest []string
	for more := true; more; {
		var l reeve.ItemList
		a.Want(200, &l, "GET", a.at(fmt.Sprintf("/items?limit=7&offset=%d", len(rest))), nil)
		for _, v := range l.Items {
			rest = append(rest, v.ID)
		}
		more = l.HasMore
	}
	equal(t, strings.Join(rest, " "), want, "over REST")
}

func TestK13_Docs(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `[typeof Items.withItem, typeof Items.list, typeof globalThis.Scripts, await getDocs('Items'), await getDocs('Mail.send'), await getDocs('Mail.list'), await getDocs()].join('\n')`)
	out := a.completes().Run.Output
	for _, s := range []string{"function\nfunction\nundefined\n", "Items.withItem", "Items.list",
		"Not a mutation: call it anywhere.", "Mutation: call it inside Items.withItem", "Mail.any",
		"getDocs(name?)"} {
		if !strings.Contains(out, s) {
			t.Errorf("the docs do not say %q:\n%s", s, out)
		}
	}
}

func TestK14_TwoAutomations(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	b := newAuto(t, a.Host, "second", three)
	a.completes()
	b.completes()
	a.wantItems(3)
	b.wantItems(3)
	equal(t, d.String(), "map[a:2 b:2 c:2]", "each did its own")
}

func TestK16_SkippedUntilReprocessed(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	d.refuse("b", true)
	a.fails(reeve.LogicFailure)
	d.refuse("b", false)
	a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "b", "reason": "not this one"})
	a.completes()
	equal(t, d.String(), "map[a:1 c:1]", "what was done")
	equal(t, a.state("b"), reeve.ItemSkipped, "the item")
	a.Want(409, nil, "POST", a.at("/items/skip"), call{"item": "b"})
	a.Want(404, nil, "POST", a.at("/items/reprocess"), call{"item": "nothing"})
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "b"})
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "a"})
	a.completes()
	equal(t, d.String(), "map[a:2 b:1 c:1]", "what was done")
	v := a.item("b")
	equal(t, spoken(v.State, v.Attempt, len(v.Attempts), v.Attempts[0].State, v.Attempts[0].Message,
		v.Attempts[1].State), "done 2 2 skipped not this one done", "attempts")
}

func TestK17_PauseAndResume(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => {
		  if (ctx.item.isDone) return;
		  await Mail.send({ to: id });
		  try { await Mail.send({ to: id + '2' }) } catch (e) {}
		})`)
	d.hook = func(what string) {
		if what == "b" {
			a.Want(200, nil, "POST", a.at("/pause"), nil)
		}
	}
	r := a.run()
	equal(t, spoken(r.Run.State, d, a.state("b")), "paused map[a:1 a2:1 b:1] processing", "paused in the middle of b")
	a.Want(409, nil, "POST", a.at("/runs"), call{})
	d.hook = nil
	a.Want(200, nil, "POST", a.at("/resume"), nil)
	a.Want(200, nil, "POST", a.at("/resume"), nil) // once more does nothing more
	eventually(t, "it carries on", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.items("status=done").Total == 3
	})
	equal(t, d.String(), "map[a:1 a2:1 b:1 b2:1 c:1 c2:1]", "what was done")

	// While it is paused, nothing that wakes it does anything.
	a.Want(200, nil, "POST", a.at("/pause"), nil)
	var w reeve.Wake
	a.Want(201, &w, "POST", "/api/agents/mailer/wake", call{})
	equal(t, a.served(reeve.AutomationRun{Wake: &w}).Run.State, reeve.RunPaused, "a run while it is paused")
}

// TestK17_EveryRunThatAPauseHeldCarriesOn: of a run that was under way when it came, of one that waited for its turn,
// and of those that it then kept from beginning, each is made up for, and what was asked for twice is once.
func TestK17_EveryRunThatAPauseHeldCarriesOn(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		d := newDeeds()
		a := newAuto(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", `
			for (const id of ['a', 'b']) await Items.withItem(input + id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: input + id }) })`)
		d.hook = func(what string) {
			if what == "onea" {
				a.Want(201, nil, "POST", a.at("/runs"), call{"input": "two"})
				a.Want(200, nil, "POST", a.at("/pause"), nil)
			}
		}
		first := a.start(call{"input": "one"})
		for range 3 {
			a.Want(201, nil, "POST", "/api/agents/mailer/wake", call{"input": "three"})
		}
		a.RunUntilIdle(t.Context())
		equal(t, spoken(first.Run.State, a.get().PausedRun == first.Run.ID, d, len(listRuns(a))),
			"paused true map[onea:1] 5", "while it is paused")
		a.Want(200, nil, "POST", a.at("/resume"), nil)
		a.RunUntilIdle(t.Context())
		equal(t, spoken(d, len(listRuns(a))), "map[onea:1 oneb:1 threea:1 threeb:1 twoa:1 twob:1] 8", "resumed")
	})
}

// TestK17_ResumedBeforeThePausedRunHasEnded: one of its calls has seen the pause, and another is still under way when
// the automation is resumed.
func TestK17_ResumedBeforeThePausedRunHasEnded(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	var a *auto
	tools := d.tools()
	looks := 0
	tools[len(tools)-1].Handler = func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		if looks++; looks == 1 {
			a.Want(200, nil, "POST", a.at("/pause"), nil)
			<-ctx.Done()
			a.Want(200, nil, "POST", a.at("/resume"), nil)
		}
		return nil, ctx.Err()
	}
	a = newAuto(t, reevetest.StartWith(t, quick(t), tools...), "mailer", `
		await Items.withItem('a', 'A', async (ctx) => {
		  if (ctx.item.isDone) return;
		  let looked = false;
		  Mail.list({}).then(() => { looked = true });
		  while (!looked) await Items.list({});
		  await Mail.send({ to: input });
		})`)
	equal(t, a.start(call{"input": "one"}).Run.State, reeve.RunPaused, "the run")
	a.RunUntilIdle(t.Context())
	equal(t, spoken(a.get().Status, a.state("a"), d, len(listRuns(a))), "active done map[one:1] 2",
		"another carried on")
}

// A resume whose commit fails, whichever it is, has not happened: asked for again it carries on, also with a plan that
// was being applied.
func TestK17_AnAbandonedResumeIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, planned := range []bool{false, true} {
		for commit := range int32(2) {
			var left atomic.Int32 // commits until the power fails
			cfg, d := quick(t), newDeeds()
			cfg.OnFault.OnBefore = func() {
				if left.Load() > 0 && left.Add(-1) == 0 {
					panic("the power fails")
				}
			}
			a := newAuto(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", `
				for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: id }) })`)
			d.hook = func(what string) {
				if what == "b" {
					a.Want(200, nil, "POST", a.at("/pause"), nil)
				}
			}
			var r reeve.AutomationRun
			if planned {
				a.Want(201, &r, "POST", "/api/plans/"+a.start(call{"type": "dry"}).Run.ID+"/apply", nil)
				r = a.served(r)
			} else {
				r = a.run()
			}
			equal(t, spoken(r.Run.State, d), "paused map[a:1 b:1]", "paused in the middle")
			d.hook = nil
			left.Store(commit + 1)
			a.Do("POST", a.at("/resume"), nil)
			left.Store(0)
			a.Want(200, nil, "POST", a.at("/resume"), nil)
			a.RunUntilIdle(t.Context())
			equal(t, d.String(), "map[a:1 b:1 c:1]",
				fmt.Sprintf("what was done, with a plan: %v, the power gone at commit %d", planned, commit+1))
		}
	}
}

func TestK20_RepairKeepsProgress(t *testing.T) {
	t.Parallel()
	source := `for (const id of ['1', '2', '3', '4', '5']) await Items.withItem(id, 'Item ' + id, async (ctx) => { if (ctx.item.isDone) return; await Mail.send({ to: id }); %s })`
	a, d := automate(t, fmt.Sprintf(source, `if (id === '4') undefinedFunction()`))
	a.fails(reeve.LogicFailure, "undefinedFunction")
	equal(t, a.save(fmt.Sprintf(source, ""), true), "1.1", "the fix")
	a.completes()
	equal(t, d.String(), "map[1:1 2:1 3:1 4:1 5:1]", "five effects in all")
	// The same thing with other content is a person's to decide.
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "5"})
	d.refuse("x", true)
	a.save(`await Items.withItem('5', 'Item 5', async (ctx) => { await Mail.send({ to: '5', text: 'one' }); await Mail.send({ to: 'x' }) })`, true)
	a.fails(reeve.LogicFailure, "x was refused")
	a.save(`await Items.withItem('5', 'Item 5', async (ctx) => { try { await Mail.send({ to: '5', text: 'two' }) } catch (e) {} })`, true)
	r := a.run()
	equal(t, spoken(r.Run.State, r.Run.Code, a.state("5")), "failed CONFLICT needs_attention", "other content")
	equal(t, d.String(), "map[1:1 2:1 3:1 4:1 5:1 5one:1]", "what was done")
	a.completes() // it is passed over
}

func TestK21_Versions(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `'first'`)
	equal(t, a.save(`'fixed'`, true), "1.1", "a fix")
	equal(t, a.save(`'second'`, false), "2.0", "a new one")
	var v reeve.ScriptVersion
	a.Want(201, &v, "POST", a.at("/versions"), call{"source": `'draft'`, "draft": true})
	equal(t, v.Version(), "0.1", "a draft")
	equal(t, a.completes().Run.Output, "second", "the active one")
	a.Want(200, nil, "POST", a.at("/activate"), call{"version": "1.0"})
	equal(t, a.completes().Run.Output, "first", "rolled back")
	equal(t, a.save(`'third'`, false), "3.0", "after a roll-back nothing is overwritten")
	a.Want(200, &v, "GET", a.at("/versions/2.0"), nil)
	equal(t, v.Source, `'second'`, "an old version")
	a.Want(409, nil, "POST", a.at("/activate"), call{"version": "0.1"})
	a.Want(404, nil, "POST", a.at("/activate"), call{"version": "7.0"})
	a.Want(400, nil, "POST", a.at("/activate"), call{"version": "abc"})
	equal(t, a.start(call{"type": "test", "version": "0.1"}).Run.Output, "draft", "a test of a draft")
	a.Want(409, nil, "POST", a.at("/runs"), call{"version": "0.1"})
	r := a.Do("POST", a.at("/versions"), call{"source": "let x = ;\n"})
	if r.Status != 400 || !strings.Contains(string(r.Body), "script.js:1") {
		t.Errorf("a script that cannot be read: %d %s", r.Status, r.Body)
	}
}
