package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func automationsPlan(a *app) *cobra.Command {
	var name string
	var tools []string
	var later bool
	c := a.task("plan REQUEST", "Say what is to be done: the planner writes the script",
		`automations plan "every morning at 7, tell me the weather in Graz" --name weather --tool utils_weather --tool users_send`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return reeve.Errorf(reeve.Validation, "there is nothing to plan").
					Hintf("say what is to be done: reeve automations plan \"every morning, ...\"")
			}
			if name == "" {
				name = nameFor(args[0])
			}
			if err := equip(ctx, c, name, tools); err != nil {
				return err
			}
			k, err := c.ScriptJobs().Plan(ctx, name, args[0])
			if err != nil {
				return err
			}
			a.note("automation %s, script job %s", name, k.ID)
			if later {
				return a.printScriptJob(k)
			}
			return a.followScriptJob(ctx, c, k)
		})
	c.Long = `Makes the automation if it is not there, with the tools that you give it, and has the planner write its script. The planner can use these tools only, and tries
things out without changing anything. When it has written a version, you are shown the script and what it would do; nothing runs before you activate it.`
	c.Flags().StringVar(&name, "name", "", "the automation (default: the first words)")
	c.Flags().StringArrayVar(&tools, "tool", nil, "a tool that the script can call; may be repeated")
	c.Flags().BoolVar(&later, "no-wait", false, "do not wait for the planner")
	a.suggest(c, "tool", toolNames)
	return c
}

// nameFor is what an automation is called after what was asked for.
func nameFor(request string) string {
	words := strings.Fields(strings.ToLower(notInName.ReplaceAllString(request, " ")))
	if name := strings.Trim(strings.Join(words[:min(4, len(words))], "-"), "-_"); name != "" {
		return name[:min(len(name), 60)]
	}
	return "automation"
}

// equip makes an automation if it is not there, and gives it tools that it does not have.
func equip(ctx context.Context, c *client.Client, name string, tools []string) error {
	m, err := c.Automations().Get(ctx, name)
	if reeve.CodeOf(err) == reeve.NotFound {
		_, err = c.Automations().Create(ctx, reeve.AutomationRequest{Name: name, Tools: tools})
		return err
	}
	if err != nil {
		return err
	}
	for _, id := range tools {
		if _, err := c.Agents().Attach(ctx, m.AgentID, api.AttachRequest{ToolID: id}); err != nil &&
			reeve.CodeOf(err) != reeve.AlreadyExists {
			return err
		}
	}
	return nil
}

// followScriptJob waits for the planner, and shows what it wrote and what that would do.
func (a *app) followScriptJob(ctx context.Context, c *client.Client, k reeve.ScriptJob) error {
	k, err := c.ScriptJobs().Watch(ctx, k.ID)
	if err != nil {
		return err
	}
	switch {
	case a.json:
		return a.printScriptJob(k)
	case k.State == reeve.ScriptJobAsking:
		if err := a.printScriptJob(k); err != nil {
			return err
		}
		a.note("answer: reeve automations answer %s \"...\"", k.ID)
		return nil
	case k.State != reeve.ScriptJobDone:
		return reeve.Errorf(reeve.ToolFailed, "the planner wrote no script: %s", k.Message).
			Hintf("say more, or give it other tools; without a model's key the rehearsal model answers, which writes " +
				"nothing by itself: see docs/models.md")
	}
	v, err := c.Automations().Version(ctx, k.Automation, k.Result)
	if err != nil {
		return err
	}
	if err := a.print(v, func(w io.Writer) { printContent(w, v.Source) }); err != nil {
		return err
	}
	a.note("\n%s\n\nVersion %s. What it would do:", plain(k.Message), k.Result)
	asked, err := c.Automations().
		Start(ctx, k.Automation, reeve.AutomationRunRequest{Type: reeve.DryRun, Version: k.Result})
	if err != nil {
		return err
	}
	if err := a.watch(ctx, c, k.Automation, asked); err != nil {
		return err
	}
	a.note("Activate it: reeve automations activate %s %s", k.Automation, k.Result)
	return nil
}

func (a *app) printScriptJob(k reeve.ScriptJob) error {
	return a.print(k, func(w io.Writer) {
		details(w, "script job", k.ID, "kind", string(k.Kind), "automation", k.Automation, "state", string(k.State),
			"request", k.Request, "question", k.Question, "version", k.Version, "failed run", k.RunID,
			"result", k.Result, "schedule", k.TimerID, "message", k.Message, "created", when(k.CreatedAt), "closed",
			whenSet(k.ClosedAt))
	})
}

func automationsAnswer(a *app) *cobra.Command {
	return a.task("answer JOB ANSWER", "Answer a question of the planner's",
		`automations answer ern_... "only on weekdays"`, cobra.ExactArgs(2), func(ctx context.Context, c *client.Client,
			args []string) error {
			k, err := c.ScriptJobs().Answer(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.followScriptJob(ctx, c, k)
		})
}

func automationsScriptJobs(a *app) *cobra.Command {
	return a.named("jobs NAME", "List what the planner and the maintainer do for an automation",
		"automations jobs mailer", cobra.ExactArgs(1), func(ctx context.Context, c *client.Client,
			args []string) error {
			l, err := c.ScriptJobs().List(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "JOB KIND STATE ABOUT RESULT CREATED WHAT",
					rows(l.ScriptJobs, func(k reeve.ScriptJob) []string {
						what := k.Message
						if k.Question != "" {
							what = k.Question
						}
						return []string{k.ID, string(k.Kind), string(k.State), k.Version, k.Result, when(k.CreatedAt),
							cut(what, 80)}
					}))
			})
		})
}

// troubleOf is what an automation's failures have led to, for people.
func failureDetails(m reeve.Automation) []string {
	t := m.Failure
	if t == nil {
		return nil
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return []string{"failure", string(t.Class) + " (" + string(t.Code) + ")", "failed run", t.RunID, "why", t.Message,
		"tries", count(t.NetworkFailures), "tried again at", whenSet(t.RetryAt), "repairs", count(t.Repairs),
		"repair", t.ScriptJobID, "stopped", whenSet(t.StoppedAt)}
}
