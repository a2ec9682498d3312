package host_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

// TestK22_BadScripts runs scripts that go wrong in every way there is. Each run ends within its limits with a typed
// error at the script's own line, the ledger says what happened, and the server is fine.
func TestK22_BadScripts(t *testing.T) {
	d := newDeeds()
	cfg := quick(t)
	// enough for each on a busy machine; the endless ones take all of it
	cfg.ScriptTimeout = host.Duration(10 * time.Second)
	h := reevetest.StartWith(t, cfg, d.tools()...)
	a := newAuto(t, h, "bad", `1`)
	inItem := func(body string) string {
		return "await Items.withItem(input, 'Bad', async (ctx) => {\n  await Mail.send({ to: input });\n  " + body +
			"\n});"
	}
	for name, c := range map[string]struct {
		source string
		code   reeve.Code
		says   []string
		item   reeve.ItemState // "" means that there is none
		deed   bool
	}{
		"throws": {inItem(`throw new Error('on purpose')`), reeve.ToolFailed,
			[]string{"script.js:3:", "on purpose"}, reeve.ItemFailed, true},
		"throws no error": {inItem(`throw 'just words'`), reeve.ToolFailed, []string{"just words"},
			reeve.ItemFailed, true},
		"unhandled rejection": {inItem(`Promise.reject(new Error('nobody hears'))`), reeve.ToolFailed,
			[]string{"script.js:3:", "nobody hears"}, reeve.ItemDone, true},
		"endless loop": {inItem(`for (;;) Math.random()`), reeve.Timeout,
			[]string{"script.js:3:", "the time is over"}, reeve.ItemFailed, true},
		"endless microtasks": {inItem(`for (;;) await null`), reeve.Timeout,
			[]string{"script.js:3:", "the time is over"}, reeve.ItemFailed, true},
		"endless recursion": {inItem(`const f = () => f() + 1; f()`), reeve.TooLarge,
			[]string{"script.js:3:", "nest"}, reeve.ItemFailed, true},
		"waits for nothing": {inItem(`await new Promise(() => {})`), reeve.Timeout, []string{"the time is over"},
			reeve.ItemFailed, true},
		"a 100 MB string": {inItem(`const s = 'x'.repeat(1e8) + ctx; return s.length`), reeve.TooLarge,
			[]string{"out of memory"}, reeve.ItemFailed, true},
		"a long argument": {inItem(`await Mail.send({ to: 'y', text: 'x'.repeat(9e6) })`), reeve.TooLarge,
			[]string{"script.js:3:", "too large", "at most 8 MB"}, reeve.ItemFailed, true},
		"catches everything": {"try {\n  await Mail.send({ to: input });\n} catch (e) {} finally { Console.log('went " +
			"on'); }\nfor (;;) {}",
			reeve.Conflict, []string{"script.js:2:", "outside Items.withItem"}, "", false},
		"catches by promise": {"await Mail.note({ to: input }).then(() => 1, () => 2).catch(() => 3);\nawait " +
			"Promise.allSettled([Mail.note({ to: input })]);", reeve.Conflict, []string{"script.js:1:", "outside"}, "",
			false},
		"NUL in an id": {"1;\nawait Items.withItem(input + '\\0', 'Bad', () => 1)", reeve.Validation,
			[]string{"script.js:2:", "NUL"}, "", false},
		"an id of 10 KB": {"1;\n2;\nawait Items.withItem(input.repeat(10240), 'Bad', () => 1)", reeve.Validation,
			[]string{"script.js:3:", "bytes"}, "", false},
		"half a character": {"await Items.withItem(input + '\\ud800', 'Bad', () => 1)", reeve.Validation,
			[]string{"script.js:1:", "half a surrogate pair"}, "", false},
		"nested items": {inItem(`await Items.withItem('inner', 'Inner', () => 1)`), reeve.Conflict,
			[]string{"script.js:3:", "is open"}, reeve.ItemFailed, true},
		"polluted prototypes": {"Object.prototype.isDone = true; Object.prototype.toJSON = () => 'x'; " +
			"Array.prototype.push = null;\n" + inItem(`1`), reeve.Validation,
			[]string{"script.js:3:", "not valid JSON"}, reeve.ItemFailed, false},
		"polluted promises": {"Promise.prototype.then = null; Promise = null; JSON.stringify = null; " +
			"Error.prototype.name = 'Nothing';\n" + inItem(`throw new Error('as meant')`), reeve.ToolFailed,
			[]string{"script.js:4:", "as meant"}, reeve.ItemFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auto{Host: h, t: t, name: "bad"}
			version := a.save(c.source, false)
			id := strings.ReplaceAll(name, " ", "-")
			r := a.start(call{"version": version, "input": id})
			if r.Run.State != reeve.RunFailed || r.Run.Code != c.code || r.Script.Class != reeve.LogicFailure &&
				r.Script.Class != reeve.NetworkFailure {
				t.Errorf("the run is %s, %s, %s: %s", r.Run.State, r.Run.Code, r.Script.Class, r.Run.Message)
			}
			for _, s := range c.says {
				if !strings.Contains(r.Run.Message, s) {
					t.Errorf("%q does not say %q", r.Run.Message, s)
				}
			}
			if strings.Contains(r.Script.Log, "went on") {
				t.Error("the script caught it")
			}
			switch l := a.items("item=" + id); {
			case c.item == "" && l.Total != 0, c.item != "" && (l.Total != 1 || l.Items[0].State != c.item):
				t.Errorf("the ledger has %+v, want %q", l.Items, c.item)
			}
			if did := strings.Contains(d.String(), id+":1"); did != c.deed {
				t.Errorf("what was done: %s", d)
			}
		})
	}
	// A script that cannot be read is refused when it is saved, at its line, and is no version.
	for _, language := range []string{"js", "ts"} {
		r := h.Want(400, nil, "POST", a.at("/versions"), call{"source": "1;\nconst a = ;\n", "language": language})
		if !strings.Contains(string(r.Body), "script."+language+":2:") ||
			!strings.Contains(string(r.Body), `"/source"`) {
			t.Errorf("a syntax error in %s: %s", language, r.Body)
		}
	}
	a.save(`await Items.withItem('after', 'After', async () => { await Mail.send({ to: 'after' }) }); 'fine'`, false)
	equal(t, a.completes().Run.Output, "fine", "after all that")
}

func TestBadInput_AnAgentIsNotTurnedIntoAnAutomation(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {text: Hello.}\n")
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		object{"name": "coach", "config": object{"instructions": "You coach."}})
	over(h, speak(h, h.StartConversation("bot").ID, "hi").ID)
	for _, name := range []string{"coach", "bot"} { // one was told what to do, the other has run
		h.Want(http.StatusConflict, nil, "POST", "/api/automations", object{"name": name, "source": "1"})
		h.Want(http.StatusNotFound, nil, "GET", "/api/automations/"+name, nil)
	}
}

// A script may come to any text, and throw any: its run ends.
func TestL08_AScriptThatSaysWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `1`)
	a.save(`'a\u0000b'`, false)
	if out := a.completes().Run.Output; !strings.Contains(out, "a\uFFFDb") && !strings.Contains(out, `a\u0000b`) {
		t.Errorf("it came to %q", out)
	}
	a.save(`throw new Error('a\u0000b')`, false)
	a.fails(reeve.LogicFailure, "a\uFFFDb")
}

// What is no number of items is refused, in the same words whatever it is: NaN and Infinity, which JSON does not have,
// too.
func TestK13_TotalsThatAreNone(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `Items.total(0)`)
	a.completes()
	for _, n := range []string{"NaN", "Infinity", "-Infinity", "null", "undefined", "", "-1", "1.5", "1e300", "2 ** 53",
		"'3'"} {
		a.save("Items.total("+n+")", false)
		if r := a.start(call{}); r.Run.State != reeve.RunFailed ||
			!strings.Contains(r.Run.Message, "Items.total requires the number of items") {
			t.Errorf("%s: %s %s", n, r.Run.State, r.Run.Message)
		}
	}
	a.save("Items.total(2 ** 53 - 1)", false)
	a.completes()
	for _, n := range []string{"10n", "10n ** 30n"} {
		a.save("Items.total("+n+")", false)
		if r := a.start(call{}); r.Run.State != reeve.RunFailed ||
			!strings.Contains(r.Run.Message, "was given a BigInt") || !strings.Contains(r.Run.Message, "Number(n)") {
			t.Errorf("%s: %s %s", n, r.Run.State, r.Run.Message)
		}
	}
}
