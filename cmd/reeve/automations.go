package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func automationsCommand(a *app) *cobra.Command {
	c := groupCommand("automations", "Write and run automations",
		`An automation is an agent whose brain is a script. The script calls the agent's tools as functions and
processes items. Each item is processed once, even if the server crashes during a run. NAME is the
name or id of the agent.`,
		automationsList(a), automationsCreate(a), automationsSave(a), automationsVersions(a),
		automationsShow(a), automationsActivate(a), automationsRun(a), automationsRuns(a),
		automationsPause(a), automationsResume(a), automationsPlan(a), automationsAnswer(a), automationsScriptJobs(a),
		automationsFiles(a))
	c.Example = `  reeve automations create mailer triage.js --tool mail_list --tool mail_send
  reeve automations run mailer --wait
  reeve automations save mailer triage.js --fix
  reeve automations activate mailer 1.0`
	return c
}

func automationsFiles(a *app) *cobra.Command {
	var page client.Page
	c := a.automationCommand("files NAME [PATH]", "List the files of an automation, or print one",
		"automations files tidy /summary.md", cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 2 {
				f, err := c.Automations().File(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return a.print(f, func(w io.Writer) { fmt.Fprint(w, f.Content) })
			}
			l, err := c.Automations().Files(ctx, args[0], page)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "PATH SIZE UPDATED", rows(l.Files, func(f reeve.SessionFile) []string {
					return []string{f.Path, strconv.Itoa(f.Size), formatTime(f.UpdatedAt)}
				}))
			})
		})
	c.Long = "Lists the session files that the automation has written, or prints the file at PATH. All runs of an\n" +
		"automation share the same files; a file stays until a run overwrites it."
	addPageFlags(c, &page)
	return c
}

func automationNames(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Automations().List(ctx, client.Page{Limit: 200})
	var names []string
	for _, m := range list.Automations {
		names = append(names, m.Name)
	}
	return names, err
}

// automationCommand returns a command whose first argument is an automation.
func (a *app) automationCommand(use, short, example string, args cobra.PositionalArgs, f clientFunc) *cobra.Command {
	c := a.serverCommand(use, short, example, args, f)
	c.ValidArgsFunction = a.complete(automationNames)
	return c
}

func automationsList(a *app) *cobra.Command {
	var page client.Page
	c := a.serverCommand("list", "List automations", "automations list", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Automations().List(ctx, page)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "NAME VERSION STATUS AGENT UPDATED",
					rows(l.Automations, func(m reeve.Automation) []string {
						return []string{m.Name, m.Version, string(m.Status), m.AgentID, formatTime(m.UpdatedAt)}
					}))
			})
		})
	addPageFlags(c, &page)
	return c
}

func (a *app) printAutomation(m reeve.Automation) error {
	return a.print(m, func(w io.Writer) {
		pairs := []string{"name", m.Name, "agent", m.AgentID, "owner", m.Owner, "version", m.Version,
			"status", string(m.Status), "paused", formatTimePtr(m.PausedAt), "paused run", m.PausedRun,
			"created", formatTime(m.CreatedAt), "updated", formatTime(m.UpdatedAt)}
		printDetails(w, append(pairs, failureDetails(m)...)...)
	})
}

// readScript reads a script. The extension of the file determines its language.
func (a *app) readScript(file string) (r reeve.ScriptRequest, err error) {
	b, err := a.readInput(file)
	r.Source, r.Language = string(b), "js"
	if ext := filepath.Ext(file); ext == ".ts" || ext == ".mts" {
		r.Language = "ts"
	}
	return r, err
}

func automationsCreate(a *app) *cobra.Command {
	var tools []string
	c := a.serverCommand("create NAME [SCRIPT|-]", "Create an automation",
		"automations create mailer triage.js --tool mail_send", cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			r := reeve.AutomationRequest{Name: args[0], Tools: tools}
			if len(args) == 2 {
				if r.ScriptRequest, err = a.readScript(args[1]); err != nil {
					return err
				}
			}
			m, err := c.Automations().Create(ctx, r)
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
	c.Long = "Turns the agent NAME into an automation, and creates the agent if it does not exist. SCRIPT becomes " +
		"version 1.0."
	c.Flags().StringArrayVar(&tools, "tool", nil, "tool that the script can call; can be repeated")
	a.completeFlag(c, "tool", toolNames)
	return c
}

func automationsSave(a *app) *cobra.Command {
	var q reeve.ScriptRequest
	c := a.automationCommand("save NAME SCRIPT|-", "Save a new version of a script and activate it",
		"automations save mailer triage.js --comment \"skip drafts\"", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := a.readScript(args[1])
			if err != nil {
				return err
			}
			r.Fix, r.Draft, r.Comment = q.Fix, q.Draft, q.Comment
			v, err := c.Automations().SaveVersion(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				printDetails(w, "version", v.Version(), "id", v.ID, "language", v.Language, "comment", v.Comment,
					"created", formatTime(v.CreatedAt))
			})
		})
	c.Flags().BoolVar(&q.Fix, "fix", false, "save as the next minor version, such as 1.1 after 1.0")
	c.Flags().BoolVar(&q.Draft, "draft", false, "save as a draft version 0.N and do not activate it")
	c.Flags().StringVar(&q.Comment, "comment", "", "description of the change")
	return c
}

func automationsVersions(a *app) *cobra.Command {
	return a.automationCommand("versions NAME", "List the versions of a script, newest first",
		"automations versions mailer",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Automations().Versions(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "VERSION ACTIVE LANGUAGE BY CREATED COMMENT",
					rows(l.Versions, func(v reeve.ScriptVersion) []string {
						active := ""
						if v.Version() == l.Active {
							active = "yes"
						}
						return []string{v.Version(), active, v.Language, v.CreatedBy, formatTime(v.CreatedAt),
							truncate(v.Comment, 60)}
					}))
			})
		})
}

func automationsShow(a *app) *cobra.Command {
	return a.automationCommand("show NAME [VERSION]", "Show an automation, or print the script of a version",
		"automations show mailer 1.0", cobra.RangeArgs(1, 2), func(ctx context.Context, c *client.Client,
			args []string) error {
			if len(args) == 1 {
				m, err := c.Automations().Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printAutomation(m)
			}
			v, err := c.Automations().Version(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { printContent(w, v.Source) })
		})
}

func automationsActivate(a *app) *cobra.Command {
	return a.automationCommand("activate NAME VERSION", "Activate a version of the script, older or newer",
		"automations activate mailer 1.0", cobra.ExactArgs(2), func(ctx context.Context, c *client.Client,
			args []string) error {
			m, err := c.Automations().Activate(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
}

func automationsPause(a *app) *cobra.Command {
	return a.automationCommand("pause NAME", "Pause an automation; a current run ends at its next call",
		"automations pause mailer", cobra.ExactArgs(1), func(ctx context.Context, c *client.Client,
			args []string) error {
			m, err := c.Automations().Pause(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
}

func automationsResume(a *app) *cobra.Command {
	return a.automationCommand("resume NAME", "Resume a paused or stopped automation", "automations resume mailer",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			m, err := c.Automations().Resume(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
}

func automationsRun(a *app) *cobra.Command {
	var r reeve.AutomationRunRequest
	var input string
	var wait, dry, test bool
	c := a.automationCommand("run NAME", "Start a run of an automation", "automations run mailer --wait",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			switch {
			case dry:
				r.Type = reeve.DryRun
			case test:
				r.Type = reeve.TestRun
			}
			if r.Input, err = parseJSONInput(input); err != nil {
				return err
			}
			started, err := c.Automations().Start(ctx, args[0], r)
			if err != nil {
				return err
			}
			if !wait && !dry {
				return a.printWake(args[0], *started.Wake)
			}
			return a.watchRun(ctx, c, args[0], started)
		})
	c.Flags().BoolVar(&wait, "wait", false, "wait for the run and show its progress")
	c.Flags().BoolVar(&dry, "plan", false, "dry run: change nothing and show the planned calls")
	c.Flags().BoolVar(&test, "test", false, "test run: a failure does not start a repair")
	c.Flags().StringVar(&r.Version, "version", "", "version to run (default: the active version)")
	c.Flags().StringVar(&input, "input", "", "JSON value that the script receives as input")
	c.MarkFlagsMutuallyExclusive("plan", "test")
	return c
}

func automationsRuns(a *app) *cobra.Command {
	var page client.Page
	c := a.automationCommand("runs NAME", "List the runs of an automation, newest first", "automations runs mailer",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Automations().Runs(ctx, args[0], page)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "RUN TYPE VERSION STATE CLASS DONE SKIPPED FAILED STARTED TOOK MESSAGE",
					rows(l.Runs, func(r reeve.AutomationRun) []string {
						p := r.Script.Progress
						return []string{r.Run.ID, string(r.Script.Type), r.Script.Version, string(r.Run.State),
							string(r.Script.Class), strconv.Itoa(p.Done), strconv.Itoa(p.Skipped),
							strconv.Itoa(p.Failed),
							formatTime(r.Run.StartedAt), formatRunTime(*r.Run), truncate(r.Run.Message, 60)}
					}))
			})
		})
	addPageFlags(c, &page)
	return c
}

// formatProgress returns the progress of a run as one line.
func formatProgress(r reeve.AutomationRun) string {
	p := r.Script.Progress
	count := strconv.Itoa(p.Done + p.Skipped)
	if p.Total > 0 {
		count += " of " + strconv.Itoa(p.Total)
	}
	parts := []string{string(r.Run.State), count + " items"}
	if p.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d already done", p.Skipped))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%.1f/s", p.Rate))
	}
	if p.Spent.Micros > 0 {
		parts = append(parts, fmt.Sprintf("cost %.4f", float64(p.Spent.Micros)/1e6))
	}
	if p.Current != "" {
		parts = append(parts, truncate(p.Current, 40))
	}
	return strings.Join(parts, " · ")
}

// watchRun waits for a run and shows its progress, then prints its result, or the plan of a dry run.
func (a *app) watchRun(ctx context.Context, c *client.Client, name string, started reeve.AutomationRun) error {
	run, err := c.Runs().WaitForWake(ctx, *started.Wake)
	if err != nil {
		return err
	}
	last, shown := "", time.Time{}
	r, err := c.Automations().WaitForRun(ctx, name, run.ID, func(r reeve.AutomationRun) {
		if line := formatProgress(r); !a.json && line != last {
			last, shown = line, r.Run.StartedAt
			fmt.Fprintf(a.err, "\r\x1b[K%s", sanitize(line))
		}
	})
	if !shown.IsZero() {
		fmt.Fprintln(a.err)
	}
	if err != nil {
		return err
	}
	if !a.json && r.Script.Log != "" {
		fmt.Fprintln(a.err, sanitize(r.Script.Log))
	}
	if r.Script.Type == reeve.DryRun && r.Run.State == reeve.RunCompleted {
		return a.printRunPlan(ctx, c, r.Run.ID)
	}
	return a.printOutcome(*r.Run)
}
