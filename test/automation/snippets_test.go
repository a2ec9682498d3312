package automation_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// snippetTools returns the tools that the scripts in testdata/snippets use.
func snippetTools(d *effectLog) []reeve.Tool {
	gmail := kit.Tool("Gmail.api", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct{ Method string }
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		if in.Method != "users.messages.list" {
			return "done", d.record(in.Method)
		}
		return []kit.Object{{"id": "1", "from": "ann", "subject": "Rain"}, {"id": "2", "from": "bob", "subject": "Sun"}}, nil
	})
	gmail.Parameters = json.RawMessage(`{"type":"object","properties":{"account":{"type":"string"},"params":{},
		"method":{"enum":["users.messages.list","users.messages.get","users.messages.modify","users.messages.send"]}}}`)
	gmail.IsRead = func(args json.RawMessage) bool {
		var in struct{ Method string }
		_ = json.Unmarshal(args, &in)
		return in.Method == "users.messages.list" || in.Method == "users.messages.get"
	}
	create := kit.Tool("memory.create_note", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		return kit.Object{"id": "n2"}, d.record("note")
	})
	find := kit.Tool("memory.get_note", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		return kit.Object{"id": "n1", "title": "First"}, nil
	})
	find.OutputSchema = json.RawMessage(
		`{"type":["object","null"],"required":["id"],"properties":{"id":{"type":"string"},"title":{"type":"string"}}}`)
	return []reeve.Tool{gmail, create, find}
}

// Scripts in the vocabulary of logical items run as they are, beside today's names.
func TestK29_SnippetsRunUnchanged(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newEffectLog()
		h := start(snippetTools(d)...)
		a := &kit.Automation{Host: h, T: t, Name: "snippets"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": "1",
			"tools": []string{"Gmail.api", "memory.create_note", "memory.get_note"}})
		for _, c := range []struct{ file, state, output, log string }{
			{"loop.js", "completed", "looped", ""},
			{"loop.js", "completed", "looped", "Skipping already processed: Email from ann: \"Rain\""},
			{"progress.js", "completed", "2 1 true 0", "Skipping 1 - already done\nMissing new\nProcessed 2 items so far"},
			{"pages.js", "completed", "true Email from bob: \"Sun\" done 1 true true true true true; " +
				"true Email from ann: \"Rain\" done 1 true true true true true", ""},
			{"docs.js", "completed", "string true true true true true true true true NOT_FOUND", "Gmail.api(input)"},
			{"done.js", "completed", "false true", ""},
			{"write.ts", "completed", "First", ""},
			{"nested.js", "failed", "is open", ""},
			{"outside.js", "failed", "outside Items.withItem", ""},
			{"after-done.js", "failed", "which is done", ""},
		} {
			h.Want(201, nil, "POST", a.Path("/versions"), kit.Call{"source": readSnippet(t, c.file),
				"language": strings.TrimPrefix(filepath.Ext(c.file), ".")})
			r := a.StartRun(kit.Call{"type": "test"})
			said := r.Run.Output
			if c.state == "failed" {
				said = r.Run.Message
			}
			if string(r.Run.State) != c.state || !strings.Contains(said, c.output) ||
				!strings.Contains(r.Script.Log, c.log) {
				t.Errorf("%s: %s\n%s%s\nlog: %s\nwant %s, %s, %s", c.file, r.Run.State, r.Run.Output, r.Run.Message,
					r.Script.Log, c.state, c.output, c.log)
			}
		}
		kit.Equal(t, d.String(), "map[note:1 users.messages.modify:2]", "what was done")
	})
}

// readSnippet returns a script of testdata/snippets.
func readSnippet(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata/snippets", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// A script that names a function whose tool is missing is told which tool, and what to do. A test, a plan and a run all
// say so.
func TestK29_MissingToolsExplainThemselves(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	a := &kit.Automation{Host: h, T: t, Name: "viewer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"email_search"},
		"source": readSnippet(t, "images.js")})
	noTool := func(name, does string) string {
		return "UNSUPPORTED " + name + " needs a tool that " + does + " pictures, and the workspace has none; define " +
			"one with the id " + name + ", see docs/http-tools.md, and attach it to the automation\n"
	}
	notAttached := func(prefix, tool string) string {
		return "NOT_FOUND " + prefix + "the tool " + tool + " is not attached to the automation viewer; attach it with: " +
			"reeve agents attach viewer " + tool + "\n"
	}
	want := noTool("Images.generate", "makes") + noTool("Images.transform", "changes") +
		noTool("Images.generate", "makes") + notAttached("Images.explain: ", "image_explain") +
		notAttached("PDF.explain: ", "pdf_explain") + notAttached("Audio.explain: ", "audio_explain") +
		notAttached("", "web_fetch") + "NOT_FOUND tool \"nothing\" not found\nundefined\nundefined"
	for _, kind := range []string{"production", "test", "dry"} {
		kit.Equal(t, a.StartRun(kit.Call{"type": kind}).Run.Output, want, kind)
	}
	h.Want(201, nil, "POST", "/api/agents/viewer/tools", kit.Call{"tool_id": "pdf_explain"})
	r := a.RunOnce()
	if strings.Contains(r.Run.Output, "pdf_explain is not attached") ||
		!strings.Contains(r.Run.Output, "audio_explain is not attached") {
		t.Error("after one was attached:", r.Run.Output)
	}
	// A tool with the name takes its place.
	h.Want(201, nil, "POST", "/api/tools", kit.Object{"id": "Images.generate", "kind": "script", "effect": "read",
		"description": "Makes pictures.", "parameters": json.RawMessage(kit.AnyObject),
		"spec": kit.Object{"source": "'made'", "language": "js"}})
	h.Want(201, nil, "POST", "/api/agents/viewer/tools", kit.Call{"tool_id": "Images.generate"})
	if r = a.RunOnce(); !strings.HasPrefix(r.Run.Output, "called\nUNSUPPORTED Images.transform") {
		t.Error("with a tool of that name:", r.Run.Output)
	}
	// An error that the script does not catch is the error of the run, and of the item.
	a.SaveVersion("await Items.withItem('a', 'A', async () => {\n  await Memory.createNote({ content: 'x' });\n})", false)
	r = a.RunOnce()
	if r.Run.State != reeve.RunFailed || !strings.Contains(r.Run.Message, "script.js:2:") ||
		!strings.Contains(r.Run.Message, "reeve agents attach viewer memory_save") {
		t.Errorf("%s %s", r.Run.State, r.Run.Message)
	}
	kit.Equal(t, a.ItemState("a"), "failed", "the item")
}

// Notes have titles and ids under the names that scripts use, with the tools of Reeve.
func TestK29_NotesWithTitles(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		a := &kit.Automation{Host: h, T: t, Name: "notes"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": readSnippet(t, "title.js"),
			"tools": []string{"memory_save", "memory_get", "memory_list", "memory_update", "memory_delete"}})
		kit.Equal(t, a.MustComplete().Run.Output,
			"Tea\nIt is in the blue tin.|26|Tea\nIt is gone.|same", "what the script saw")
		a.SaveVersion(readSnippet(t, "outside.js"), false)
		if r := a.RunOnce(); !strings.Contains(r.Run.Message, "outside Items.withItem") {
			t.Errorf("outside of items: %s %s", r.Run.State, r.Run.Message)
		}
	})
}

// A read whose result does not match the output schema fails. A change has happened, so it stays done and the result
// carries a warning.
func TestK29_OutputsAreChecked(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newEffectLog()
		schema := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		answer := func(_ context.Context, inv *reeve.Invocation) (any, error) {
			if strings.Contains(string(inv.Args), "good") {
				return kit.Object{"n": 1}, d.record("good")
			}
			return kit.Object{"n": "one"}, d.record("bad")
		}
		look, change := kit.Tool("count_look", reeve.Read, answer), kit.Tool("count_up", reeve.Keyed, answer)
		look.OutputSchema, change.OutputSchema = schema, schema
		h := start(look, change)
		a := &kit.Automation{Host: h, T: t, Name: "counter"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"count_look", "count_up"},
			"source": `
			const out = [];
			const call = (id, x) => Tools.call(id, { x }).then((v) => v.n, (e) => e.code);
			await Items.withItem('a', 'A', async () => {
			  for (const x of ['good', 'bad']) out.push(await call('count_look', x), await call('count_up', x));
			});
			out.join(' ')`})
		r := a.MustComplete()
		kit.Equal(t, r.Run.Output, "1 1 TOOL_FAILED one", "what the script got")
		kit.Equal(t, d.String(), "map[bad:2 good:2]", "what was done")
		kit.Equal(t, a.ItemState("a"), "done", "the item")
		if !strings.Contains(r.Script.Log, "output_invalid: the result does not match the tool's output_schema: /n") {
			t.Errorf("the log: %q", r.Script.Log)
		}
		var res reeve.Result
		h.Want(201, nil, "POST", "/api/agents", kit.Call{"name": "bot"})
		h.Want(201, nil, "POST", "/api/agents/bot/tools", kit.Call{"tool_id": "count_up"})
		h.Want(200, &res, "POST", "/api/agents/bot/calls", kit.Call{"tool": "count_up", "args": kit.Call{"x": "bad"}})
		if res.State != reeve.Committed || len(res.Warnings) != 1 || res.Warnings[0].Code != reeve.OutputInvalid {
			t.Errorf("the result of a change: %+v", res)
		}
	})
}

// A change that failed makes its item failed, even if the script caught the error, unless the script ignores it.
func TestK31_SwallowedErrors(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newEffectLog()
		d.refuse("no", true)
		h := start(d.tools()...)
		a := newAutomation(t, h, "mailer", `
			const item = (id, f) => Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) return f(ctx) });
			await item('swallowed', async () => { try { await Mail.send({ to: 'no' }) } catch {} return 'went on' });
			await item('by promise', () => Mail.send({ to: 'no' }).catch(() => 1));
			await item('invalid', async () => { try { await Mail.send({}) } catch {} });
			await item('ignored', async (ctx) => { try { await Mail.send({ to: 'no' }) } catch (e) { await ctx.ignore(e) } });
			await item('ignored late', async ({ ignore }) => { await Mail.send({ to: 'no' }).catch(ignore) });
			await item('one of two', async (ctx) => {
			  try { await Mail.send({ to: 'no' }) } catch (e) { ctx.ignore(e) }
			  try { await Mail.note({ to: 'no' }) } catch {}
			});
			await item('read', async () => { try { await Mail.list(7) } catch {} });
			await item('own error', async (ctx) => { try { null.x } catch (e) { ctx.ignore(e) } });
			await item('fine', async () => { await Mail.send({ to: 'yes' }) });`)
		r := a.RunOnce()
		kit.Equal(t, kit.JoinValues(r.Run.State, r.Script.Progress.Done, r.Script.Progress.Failed, d),
			"failed 5 4 map[yes:1]", "the run")
		for id, want := range map[string]reeve.ItemState{"swallowed": "failed", "by promise": "failed", "invalid": "failed",
			"ignored": "done", "ignored late": "done", "one of two": "failed", "read": "done", "own error": "done",
			"fine": "done"} {
			kit.Equal(t, a.ItemState(id), want, id)
		}
		v := a.GetItem("swallowed")
		kit.Equal(t, kit.JoinValues(v.Code, v.Message), "TOOL_FAILED mail_send failed, and the script continued without "+
			"ctx.ignore(error): no was refused", "why it failed")
		d.refuse("no", false)
		a.RunOnce()
		kit.Equal(t, a.ListItems("status=failed").Items[0].ID, "invalid", "the only failed item after the cause is gone")
		kit.Equal(t, a.ListItems("status=failed").Total, 1, "failed items after the cause is gone")
	})
}

// In a dry run the result of a change explains itself, and steps that use it say so. Their items are not applied.
func TestK28_ResultsThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newEffectLog()
		h := start(d.tools()...)
		a := newAutomation(t, h, "mailer", "await Items.withItem('a', 'A', async () => {\n"+
			"  const sent = await Mail.send({ to: 'ann' });\n"+
			"  Console.log(sent);\n"+
			"  await Mail.note({ to: 'log', text: `${sent.sent}!` });\n"+
			"});\n"+
			"await Items.withItem('b', 'B', async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: 'bob' }) });")
		r := a.StartRun(kit.Call{"type": "dry"})
		kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Message, r.Script.Progress.Planned), "completed  3", "the dry run")
		kit.Equal(t, r.Script.Log, "‹result of mail_send #1, not run›", "the log")
		var plan struct{ Calls []reeve.PlannedCall }
		h.Want(200, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
		kit.Equal(t, kit.JoinValues(plan.Calls[1].Args, plan.Calls[1].DependsOn, plan.Calls[0].DependsOn),
			`{"to":"log","text":"‹result of mail_send #1.sent, not run›!"} [1] []`, "the step that uses a result")
		var asked reeve.AutomationRun
		h.Want(201, &asked, "POST", "/api/plans/"+r.Run.ID+"/apply", nil)
		applied := a.ServeRun(asked)
		if applied.Run.State != reeve.RunFailed || !strings.Contains(applied.Run.Message, "uses the result of step 1") {
			t.Errorf("applied: %s, %s", applied.Run.State, applied.Run.Message)
		}
		kit.Equal(t, d.String(), "map[bob:1]", "what was applied")
		a.MustComplete()
		kit.Equal(t, d.String(), "map[ann:1 bob:1 logann!:1]", "after a run")
	})
}

// A script that computes for too long ends by itself, with its line, and the next run is fine.
func TestK30_ComputingEndsByItself(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.ScriptCompute = host.Duration(300 * time.Millisecond)
	h := reevetest.StartWith(t, cfg, newEffectLog().tools()...)
	a := newAutomation(t, h, "looper", "await Mail.list({});\n/^(a+)+$/.test('a'.repeat(60) + '!')")
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Script.Class), "failed logic", "the run")
	if !strings.Contains(r.Run.Message, "script.js:2:") || !strings.Contains(r.Run.Message, "computed for more than 300ms") {
		t.Errorf("the message: %s", r.Run.Message)
	}
	a.SaveVersion(`'fine'`, true)
	kit.Equal(t, a.MustComplete().Run.Output, "fine", "the next run")
}

// Every function that the prompts of the planner and the maintainer name exists.
func TestK29_PromptsNameRealFunctions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/automation/prompt/*.md")
	if err != nil || len(files) != 3 {
		t.Fatalf("the prompts are %v, %v", files, err)
	}
	var names []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, regexp.MustCompile(`\b[A-Z][a-z]+\.[a-z][A-Za-z]*|getDocs|ctx\.[a-z]+`).FindAllString(string(text), -1)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range []string{"Items.withItem", "Mail.emailSearch", "Users.send", "ctx.ignore", "ctx.item", "getDocs"} {
		if !slices.Contains(names, name) {
			t.Errorf("the prompts do not name %s", name)
		}
	}
	h := reevetest.StartWith(t, kit.FastConfig(t))
	a := &kit.Automation{Host: h, T: t, Name: "names"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"email_search", "users_send"},
		"source": `await Items.withItem('x', 'X', async (ctx) => ` + string(kit.MustJSON(names)) + `.filter((name) => {
			let v = name.startsWith('ctx.') ? { ctx } : globalThis;
			for (const part of name.split('.')) v = v?.[part];
			return v === undefined;
		}))`})
	kit.Equal(t, a.MustComplete().Run.Output, "[]", "names that do not exist")
}
