package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func runCommand(a *app) *cobra.Command {
	var name, input string
	var tools []string
	var save, plan bool
	c := a.task("run SCRIPT|-", "Run a script: try it, plan with it, or make it an automation", `run triage.js --tool mail_list --tool mail_send --plan
  reeve run triage.js
  reeve run triage.js --save`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
		if name == "" {
			name = nameOf(args[0])
		}
		given, err := jsonInput(input)
		if err != nil {
			return err
		}
		r, err := a.script(args[0])
		if err != nil {
			return err
		}
		r.Draft = !save
		v, err := saveScript(ctx, c, name, tools, r)
		if err != nil {
			return err
		}
		q := reeve.AutomationRunRequest{Type: reeve.TestRun, Version: v.Version()}
		switch {
		case plan:
			q.Type = reeve.DryRun
		case save:
			q.Type = reeve.ProductionRun
		}
		q.Input = given
		asked, err := c.Automations().Start(ctx, name, q)
		if err != nil {
			return err
		}
		a.note("automation %s, version %s", name, v.Version())
		return a.watch(ctx, c, name, asked)
	})
	c.Long = `Runs a script as the automation of its name, which is made if it is not there, and shows how far it has come. Without --save the script
is kept as a draft and run as a test; the items it works on are the automation's own. With --plan it changes nothing, and shows what it would do, item by item;
"reeve apply" then does exactly that.`
	c.Flags().StringVar(&name, "name", "", "the automation (default: the file's name)")
	c.Flags().StringArrayVar(&tools, "tool", nil,
		"a tool that the script can call, if the automation is new; may be repeated")
	c.Flags().BoolVar(&save, "save", false, "save it as the automation's next version, and run that")
	c.Flags().BoolVar(&plan, "plan", false, "change nothing: show what it would do")
	c.Flags().StringVar(&input, "input", "", "JSON that the script finds as input")
	a.suggest(c, "tool", toolNames)
	return c
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// nameOf is what an automation is called after its script's file.
func nameOf(file string) string {
	base := filepath.Base(file)
	if name := strings.Trim(notInName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"),
		"-_"); name != "" {
		return name
	}
	return "script"
}

// saveScript saves a version; if there is no such automation, it is made with that.
func saveScript(ctx context.Context, c *client.Client, name string, tools []string,
	r reeve.ScriptRequest) (reeve.ScriptVersion, error) {
	v, err := c.Automations().SaveVersion(ctx, name, r)
	if reeve.CodeOf(err) != reeve.NotFound {
		return v, err
	}
	if _, err := c.Automations().
		Create(ctx, reeve.AutomationRequest{Name: name, Tools: tools, ScriptRequest: r}); err != nil {
		return v, err
	}
	l, err := c.Automations().Versions(ctx, name)
	if err == nil && len(l.Versions) > 0 {
		v = l.Versions[0]
	}
	return v, err
}

// jsonInput is what a script finds as its input.
func jsonInput(text string) (json.RawMessage, error) {
	if text != "" && !json.Valid([]byte(text)) {
		return nil, reeve.Errorf(reeve.Validation, "--input is not JSON").
			Hintf("write a text in quotes: --input '\"text\"'")
	}
	return json.RawMessage(text), nil
}

func applyCommand(a *app) *cobra.Command {
	c := a.task("apply PLAN", "Do what a plan says, and nothing else", "apply run_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			asked, err := c.Automations().ApplyRunPlan(ctx, args[0])
			if err != nil {
				return err
			}
			if asked.Again {
				a.note("The plan was applied before, %s by %s. Nothing is done now; this is what came of it then.",
					asked.Wake.CreatedAt.Format(time.RFC3339), plain(cmp.Or(asked.Wake.UserID, "an owner")))
			}
			return a.watch(ctx, c, asked.Script.AgentID, asked)
		})
	c.Long = `Performs the calls that a dry run planned: exactly those, each once. A call whose base has changed since is refused, and its item fails; plan again for it.
A plan is applied once. Whoever asks again is told when and by whom that was, and what came of it, which also decides the exit code.`
	return c
}

// showPlan shows what a dry run would have done.
func (a *app) showPlan(ctx context.Context, c *client.Client, run string) error {
	p, err := c.Automations().RunPlan(ctx, run)
	if err != nil {
		return err
	}
	return a.print(p, func(w io.Writer) {
		item, changes := "", 0
		for i, call := range p.Calls {
			if i == 0 || call.ItemID != item {
				item = call.ItemID
				fmt.Fprintf(w, "%s (%s)\n", plain(call.Title), plain(call.ItemID))
			}
			if call.Tool == "" {
				fmt.Fprintln(w, "  nothing to change")
				continue
			}
			changes++
			fmt.Fprintf(w, "  %s %s\n", call.Tool, plain(cut(call.Args, 200)))
			for line := range strings.Lines(call.Preview) {
				fmt.Fprintf(w, "    %s\n", plain(strings.TrimRight(line, "\n")))
			}
		}
		if changes == 0 {
			fmt.Fprintln(w, "It would change nothing.")
		}
		if len(p.Calls) > 0 {
			a.note("%d calls. Do exactly this: reeve apply %s", changes, run)
		}
	})
}
