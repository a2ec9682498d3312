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
	c := family("automations", "See, write and run automations", `An automation is an agent whose brain is a script. Its script calls the agent's tools as functions and works through items, each
once: what is done stays done, whatever crashes. NAME is the agent's name or id.`,
		automationsList(a), automationsGet(a), automationsCreate(a), automationsSave(a), automationsVersions(a),
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
	c := a.named("files NAME [PATH]", "List the files that an automation has written, or print one",
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
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "PATH SIZE UPDATED", rows(l.Files, func(f reeve.SessionFile) []string {
					return []string{f.Path, strconv.Itoa(f.Size), when(f.UpdatedAt)}
				}))
			})
		})
	c.Long = "All runs of an automation share one set of session files. They stay until a run overwrites them."
	paged(c, &page)
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

// named is a command whose first argument is an automation.
func (a *app) named(use, short, example string, args cobra.PositionalArgs, f func(ctx context.Context, c *client.Client,
	args []string) error) *cobra.Command {
	c := a.task(use, short, example, args, f)
	c.ValidArgsFunction = a.complete(automationNames)
	return c
}

func automationsList(a *app) *cobra.Command {
	var page client.Page
	c := a.task("list", "List automations", "automations list", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Automations().List(ctx, page)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "NAME VERSION STATUS AGENT UPDATED", rows(l.Automations, func(m reeve.Automation) []string {
					return []string{m.Name, m.Version, string(m.Status), m.AgentID, when(m.UpdatedAt)}
				}))
			})
		})
	paged(c, &page)
	return c
}

func (a *app) printAutomation(m reeve.Automation) error {
	return a.print(m, func(w io.Writer) {
		details(w, append([]string{"name", m.Name, "agent", m.AgentID, "owner", m.Owner, "version", m.Version, "status",
			string(m.Status), "paused", whenSet(m.PausedAt), "paused run", m.PausedRun,
			"created", when(m.CreatedAt), "updated", when(m.UpdatedAt)}, failureDetails(m)...)...)
	})
}

func automationsGet(a *app) *cobra.Command {
	return a.named("get NAME", "Show an automation", "automations get mailer", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			m, err := c.Automations().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
}

// script reads a script and tells its language by its name.
func (a *app) script(file string) (r reeve.ScriptRequest, err error) {
	b, err := a.read(file)
	r.Source, r.Language = string(b), "js"
	if ext := filepath.Ext(file); ext == ".ts" || ext == ".mts" {
		r.Language = "ts"
	}
	return r, err
}

func automationsCreate(a *app) *cobra.Command {
	var tools []string
	c := a.task("create NAME [SCRIPT|-]", "Make an automation, of a new agent or of one that is there",
		"automations create mailer triage.js --tool mail_send", cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			r := reeve.AutomationRequest{Name: args[0], Tools: tools}
			if len(args) == 2 {
				if r.ScriptRequest, err = a.script(args[1]); err != nil {
					return err
				}
			}
			m, err := c.Automations().Create(ctx, r)
			if err != nil {
				return err
			}
			return a.printAutomation(m)
		})
	c.Flags().StringArrayVar(&tools, "tool", nil, "a tool that its script can call; may be repeated")
	a.suggest(c, "tool", toolNames)
	return c
}

func automationsSave(a *app) *cobra.Command {
	var q reeve.ScriptRequest
	c := a.named("save NAME SCRIPT|-", "Save a version of a script, and make it active",
		"automations save mailer triage.js --comment \"skip drafts\"", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := a.script(args[1])
			if err != nil {
				return err
			}
			r.Fix, r.Draft, r.Comment = q.Fix, q.Draft, q.Comment
			v, err := c.Automations().SaveVersion(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				details(w, "version", v.Version(), "id", v.ID, "language", v.Language, "comment", v.Comment, "created",
					when(v.CreatedAt))
			})
		})
	c.Flags().BoolVar(&q.Fix, "fix", false, "a repair: the next minor version")
	c.Flags().BoolVar(&q.Draft, "draft", false, "to be tried: a version 0.n, which does not become active")
	c.Flags().StringVar(&q.Comment, "comment", "", "what changed, and why")
	return c
}

func automationsVersions(a *app) *cobra.Command {
	return a.named("versions NAME", "List the versions of a script, newest first", "automations versions mailer",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Automations().Versions(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "VERSION ACTIVE LANGUAGE BY CREATED COMMENT",
					rows(l.Versions, func(v reeve.ScriptVersion) []string {
						active := ""
						if v.Version() == l.Active {
							active = "yes"
						}
						return []string{v.Version(), active, v.Language, v.CreatedBy, when(v.CreatedAt),
							cut(v.Comment, 60)}
					}))
			})
		})
}

func automationsShow(a *app) *cobra.Command {
	return a.named("show NAME [VERSION]", "Show how an automation is, or print a version's script",
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
	return a.named("activate NAME VERSION", "Choose the version that runs: roll back, or forward",
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
	return a.named("pause NAME", "Pause an automation: a run under way ends at its next call",
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
	return a.named("resume NAME", "Let a paused automation carry on", "automations resume mailer", cobra.ExactArgs(1),
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
	c := a.named("run NAME", "Ask for a run", "automations run mailer --wait", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			switch {
			case dry:
				r.Type = reeve.DryRun
			case test:
				r.Type = reeve.TestRun
			}
			given, err := jsonInput(input)
			if err != nil {
				return err
			}
			r.Input = given
			asked, err := c.Automations().Start(ctx, args[0], r)
			if err != nil {
				return err
			}
			if !wait && !dry {
				return a.printWake(args[0], *asked.Wake)
			}
			return a.watch(ctx, c, args[0], asked)
		})
	c.Flags().BoolVar(&wait, "wait", false, "show how far it has come until it has ended")
	c.Flags().BoolVar(&dry, "plan", false, "change nothing: show what it would do")
	c.Flags().BoolVar(&test, "test", false, "a test: its failures are nobody's task")
	c.Flags().StringVar(&r.Version, "version", "", "another version than the active one")
	c.Flags().StringVar(&input, "input", "", "JSON that the script finds as input")
	c.MarkFlagsMutuallyExclusive("plan", "test")
	return c
}

func automationsRuns(a *app) *cobra.Command {
	var page client.Page
	c := a.named("runs NAME", "List the runs of an automation, newest first", "automations runs mailer",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Automations().Runs(ctx, args[0], page)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "RUN TYPE VERSION STATE CLASS DONE SKIPPED FAILED STARTED TOOK MESSAGE",
					rows(l.Runs, func(r reeve.AutomationRun) []string {
						p := r.Script.Progress
						return []string{r.Run.ID, string(r.Script.Type), r.Script.Version, string(r.Run.State),
							string(r.Script.Class), strconv.Itoa(p.Done), strconv.Itoa(p.Skipped),
							strconv.Itoa(p.Failed),
							when(r.Run.StartedAt), took(*r.Run), cut(r.Run.Message, 60)}
					}))
			})
		})
	paged(c, &page)
	return c
}

// progressLine says in a line how far a run has come.
func progressLine(r reeve.AutomationRun) string {
	p := r.Script.Progress
	count := strconv.Itoa(p.Done + p.Skipped)
	if p.Total > 0 {
		count += " of " + strconv.Itoa(p.Total)
	}
	parts := []string{string(r.Run.State), count + " items"}
	if p.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d of them before", p.Skipped))
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
		parts = append(parts, cut(p.Current, 40))
	}
	return strings.Join(parts, " · ")
}

// watch shows how far a run has come until it has ended, and then what it came to; of a dry run, its plan.
func (a *app) watch(ctx context.Context, c *client.Client, name string, asked reeve.AutomationRun) error {
	run, err := c.Runs().OfWake(ctx, *asked.Wake)
	if err != nil {
		return err
	}
	last, shown := "", time.Time{}
	r, err := c.Automations().WatchRun(ctx, name, run.ID, func(r reeve.AutomationRun) {
		if line := progressLine(r); !a.json && line != last {
			last, shown = line, r.Run.StartedAt
			fmt.Fprintf(a.err, "\r\x1b[K%s", plain(line))
		}
	})
	if !shown.IsZero() {
		fmt.Fprintln(a.err)
	}
	if err != nil {
		return err
	}
	if !a.json && r.Script.Log != "" {
		fmt.Fprintln(a.err, plain(r.Script.Log))
	}
	if r.Script.Type == reeve.DryRun && r.Run.State == reeve.RunCompleted {
		return a.showPlan(ctx, c, r.Run.ID)
	}
	return a.printOutcome(*r.Run)
}
