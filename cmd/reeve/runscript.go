package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func runCommand(a *app) *cobra.Command {
	var name, input string
	var tools []string
	var save, plan bool
	c := a.serverCommand("run SCRIPT|-", "Run a script as an automation",
		`run triage.js --tool mail_list --tool mail_send --plan
  reeve run triage.js
  reeve run triage.js --save`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if name == "" {
				name = nameFromFile(args[0])
			}
			value, err := parseJSONInput(input)
			if err != nil {
				return err
			}
			r, err := a.readScript(args[0])
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
			q.Input = value
			started, err := c.Automations().Start(ctx, name, q)
			if err != nil {
				return err
			}
			a.notef("automation %s, version %s", name, v.Version())
			return a.watchRun(ctx, c, name, started)
		})
	c.Long = `Runs a script as an automation and shows its progress. If the automation does not exist, it is
created. Without --save, the script is saved as a draft and run as a test; a test uses the same items
as other runs of the automation. With --plan, the script changes nothing, and the command lists the
calls it would make for each item; "reeve apply" then makes exactly these calls.`
	c.Flags().StringVar(&name, "name", "", "name of the automation (default: the name of the file)")
	c.Flags().StringArrayVar(&tools, "tool", nil,
		"tool that the script can call: attached to a new automation, required of another; can be repeated")
	c.Flags().BoolVar(&save, "save", false, "save the script as the next version, activate it and run it")
	c.Flags().BoolVar(&plan, "plan", false, "dry run: change nothing and show the planned calls")
	c.Flags().StringVar(&input, "input", "", "JSON value that the script receives as input")
	a.completeFlag(c, "tool", toolNames)
	return c
}

var invalidNameChars = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// nameFromFile returns the default name of the automation for a script file.
func nameFromFile(file string) string {
	base := filepath.Base(file)
	if name := strings.Trim(invalidNameChars.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"),
		"-_"); name != "" {
		return name
	}
	return "script"
}

// checkTools returns an error if an existing automation lacks one of the tools.
func checkTools(ctx context.Context, c *client.Client, name string, tools []string) error {
	if len(tools) == 0 {
		return nil
	}
	if _, err := c.Automations().Get(ctx, name); err != nil {
		if reeve.CodeOf(err) == reeve.NotFound { // it is created with the tools
			return nil
		}
		return err
	}
	attached, err := c.Agents().Tools(ctx, name)
	if err != nil {
		return err
	}
	all, err := c.Tools().List(ctx, "")
	if err != nil {
		return err
	}
	for _, id := range tools {
		is := func(t api.ToolView) bool { return t.ID == id }
		switch {
		case slices.ContainsFunc(attached.Tools, is):
		case slices.ContainsFunc(all.Tools, is):
			return reeve.Errorf(reeve.NotFound, "the tool %s is not attached to the automation %s, which exists", id,
				name).Hintf("attach it with: reeve agents attach %s %s", name, id)
		default:
			return reeve.Errorf(reeve.NotFound, "tool %q not found", id).Hintf("list the tools with: reeve tools list")
		}
	}
	return nil
}

// saveScript saves a version of the script, and creates the automation if it does not exist.
func saveScript(ctx context.Context, c *client.Client, name string, tools []string,
	r reeve.ScriptRequest) (reeve.ScriptVersion, error) {
	if err := checkTools(ctx, c, name, tools); err != nil {
		return reeve.ScriptVersion{}, err
	}
	v, err := c.Automations().SaveVersion(ctx, name, r)
	if reeve.CodeOf(err) != reeve.NotFound {
		return v, err
	}
	create := reeve.AutomationRequest{Name: name, Tools: tools, ScriptRequest: r}
	if _, err := c.Automations().Create(ctx, create); err != nil {
		return v, err
	}
	l, err := c.Automations().Versions(ctx, name)
	if err == nil && len(l.Versions) > 0 {
		v = l.Versions[0]
	}
	return v, err
}

// parseJSONInput checks that the value of --input is JSON or empty.
func parseJSONInput(text string) (json.RawMessage, error) {
	if text != "" && !json.Valid([]byte(text)) {
		return nil, reeve.Errorf(reeve.Validation, "--input is not valid JSON").
			Hintf("put text in double quotes: --input '\"text\"'")
	}
	return json.RawMessage(text), nil
}

func applyCommand(a *app) *cobra.Command {
	c := a.serverCommand("apply PLAN", "Apply the plan of a dry run", "apply run_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			started, err := c.Automations().ApplyRunPlan(ctx, args[0])
			if err != nil {
				return err
			}
			if started.AlreadyApplied {
				a.notef("The plan was already applied at %s by %s. Nothing is done now; "+
					"this is the result of that run.",
					started.Wake.CreatedAt.Format(time.RFC3339), sanitize(cmp.Or(started.Wake.UserID, "an owner")))
			}
			return a.watchRun(ctx, c, started.Script.AgentID, started)
		})
	c.Long = `Makes exactly the calls that a dry run planned, each once. PLAN is the id of the dry run. If the
target of a call has changed since the dry run, the call is refused and its item fails; make a new
plan for it.

A plan is applied once. If it was applied before, the command makes no calls and prints the result of
the earlier run, which also determines the exit code.`
	return c
}

// printRunPlan prints the calls that a dry run planned.
func (a *app) printRunPlan(ctx context.Context, c *client.Client, run string) error {
	p, err := c.Automations().RunPlan(ctx, run)
	if err != nil {
		return err
	}
	return a.print(p, func(w io.Writer) {
		item, changes := "", 0
		for i, call := range p.Calls {
			if i == 0 || call.ItemID != item {
				item = call.ItemID
				fmt.Fprintf(w, "%s (%s)\n", sanitize(call.Title), sanitize(call.ItemID))
			}
			if call.Tool == "" {
				fmt.Fprintln(w, "  nothing to change")
				continue
			}
			changes++
			fmt.Fprintf(w, "  %d. %s %s\n", call.Ordinal, call.Tool, sanitize(truncate(call.Args, 200)))
			for _, n := range call.DependsOn {
				fmt.Fprintf(w, "    uses the result of call %d, which is known only when the script runs\n", n)
			}
			for line := range strings.Lines(call.Preview) {
				fmt.Fprintf(w, "    %s\n", sanitize(strings.TrimRight(line, "\n")))
			}
		}
		if changes == 0 {
			fmt.Fprintln(w, "The plan changes nothing.")
		}
		if len(p.Calls) > 0 {
			a.notef("%d calls. To make exactly these calls: reeve apply %s", changes, run)
		}
	})
}
