package automation_test

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

func TestK20_RepairKeepsProgress(t *testing.T) {
	t.Parallel()
	source := `for (const id of ['1', '2', '3', '4', '5']) await Items.withItem(id, 'Item ' + id, async (ctx) => { if (ctx.item.isDone) return; await Mail.send({ to: id }); %s })`
	a, d := newMailer(t, fmt.Sprintf(source, `if (id === '4') undefinedFunction()`))
	a.MustFail(reeve.LogicFailure, "undefinedFunction")
	kit.Equal(t, a.SaveVersion(fmt.Sprintf(source, ""), true), "1.1", "the fix")
	a.MustComplete()
	kit.Equal(t, d.String(), "map[1:1 2:1 3:1 4:1 5:1]", "five effects in all")
	// A call that was already made, repeated with other arguments, needs a person's decision.
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "5"})
	d.refuse("x", true)
	a.SaveVersion(`await Items.withItem('5', 'Item 5', async (ctx) => { await Mail.send({ to: '5', text: 'one' }); await Mail.send({ to: 'x' }) })`, true)
	a.MustFail(reeve.LogicFailure, "x was refused")
	a.SaveVersion(`await Items.withItem('5', 'Item 5', async (ctx) => { try { await Mail.send({ to: '5', text: 'two' }) } catch (e) {} })`, true)
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Code, a.ItemState("5")), "failed CONFLICT needs_attention",
		"other content")
	kit.Equal(t, d.String(), "map[1:1 2:1 3:1 4:1 5:1 5one:1]", "what was done")
	a.MustComplete() // it is passed over
}

func TestK21_Versions(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `'first'`)
	kit.Equal(t, a.SaveVersion(`'fixed'`, true), "1.1", "a fix")
	kit.Equal(t, a.SaveVersion(`'second'`, false), "2.0", "a new one")
	var v reeve.ScriptVersion
	a.Want(201, &v, "POST", a.Path("/versions"), kit.Call{"source": `'draft'`, "draft": true})
	kit.Equal(t, v.Version(), "0.1", "a draft")
	kit.Equal(t, a.MustComplete().Run.Output, "second", "the active one")
	a.Want(200, nil, "POST", a.Path("/activate"), kit.Call{"version": "1.0"})
	kit.Equal(t, a.MustComplete().Run.Output, "first", "rolled back")
	kit.Equal(t, a.SaveVersion(`'third'`, false), "3.0", "after a roll-back nothing is overwritten")
	a.Want(200, &v, "GET", a.Path("/versions/2.0"), nil)
	kit.Equal(t, v.Source, `'second'`, "an old version")
	a.Want(409, nil, "POST", a.Path("/activate"), kit.Call{"version": "0.1"})
	a.Want(404, nil, "POST", a.Path("/activate"), kit.Call{"version": "7.0"})
	a.Want(400, nil, "POST", a.Path("/activate"), kit.Call{"version": "abc"})
	kit.Equal(t, a.StartRun(kit.Call{"type": "test", "version": "0.1"}).Run.Output, "draft", "a test of a draft")
	a.Want(409, nil, "POST", a.Path("/runs"), kit.Call{"version": "0.1"})
	// Nobody replaces a version that they have not seen.
	r := a.Do("POST", a.Path("/versions"), kit.Call{"source": `'mine'`, "base_version": "2.0"})
	if r.Status != 409 || !strings.Contains(string(r.Body), "STALE") || !strings.Contains(string(r.Body), "version 3.0") {
		t.Errorf("a script based on an old version: %d %s", r.Status, r.Body)
	}
	a.Want(201, &v, "POST", a.Path("/versions"), kit.Call{"source": `'mine'`, "base_version": "3.0", "fix": true})
	kit.Equal(t, v.Version(), "3.1", "based on the active one")
	r = a.Do("POST", a.Path("/versions"), kit.Call{"source": "let x = ;\n"})
	if r.Status != 400 || !strings.Contains(string(r.Body), "script.js:1") {
		t.Errorf("a script that cannot be read: %d %s", r.Status, r.Body)
	}
}
