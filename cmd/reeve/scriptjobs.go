package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func automationsPlan(a *app) *cobra.Command {
	var name string
	var tools []string
	var noWait bool
	c := a.serverCommand("plan REQUEST", "Have the planner write a script for a request",
		`automations plan "every morning at 7, tell me the weather in Graz" --tool utils_weather --tool users_send`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return reeve.Errorf(reeve.Validation, "the request is empty").
					Hintf("describe the work, such as: reeve automations plan \"every morning, ...\"")
			}
			if name == "" {
				name = nameFromRequest(args[0])
			}
			if err := ensureAutomation(ctx, c, name, tools); err != nil {
				return err
			}
			k, err := c.ScriptJobs().Plan(ctx, name, args[0])
			if err != nil {
				return err
			}
			a.notef("automation %s, script job %s", name, k.ID)
			if noWait {
				return a.printScriptJob(k)
			}
			return a.watchScriptJob(ctx, c, k)
		})
	c.Long = `Has the planner, a model, write the script of an automation. If the automation does not exist, it is
created with the given tools. The planner can use only the tools of the automation, and tests its
script without changing anything. When it has written a version, the command prints the script and the
calls it would make. Nothing runs until you activate the version.`
	c.Flags().StringVar(&name, "name", "", "name of the automation (default: the first words of the request)")
	c.Flags().StringArrayVar(&tools, "tool", nil, "tool that the script can call; can be repeated")
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the planner")
	a.completeFlag(c, "tool", toolNames)
	return c
}

// nameFromRequest returns the default name of the automation for a request.
func nameFromRequest(request string) string {
	words := strings.Fields(strings.ToLower(invalidNameChars.ReplaceAllString(request, " ")))
	if name := strings.Trim(strings.Join(words[:min(4, len(words))], "-"), "-_"); name != "" {
		return name[:min(len(name), 60)]
	}
	return "automation"
}

// ensureAutomation creates an automation if it does not exist, and attaches the tools that it does not have.
func ensureAutomation(ctx context.Context, c *client.Client, name string, tools []string) error {
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

// watchScriptJob waits for a script job. It prints the planner's question, or the script that the planner wrote and
// the plan of a dry run of it.
func (a *app) watchScriptJob(ctx context.Context, c *client.Client, k reeve.ScriptJob) error {
	k, err := c.ScriptJobs().Wait(ctx, k.ID)
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
		a.notef("answer: reeve automations answer %s \"...\"", k.ID)
		return nil
	case k.State != reeve.ScriptJobDone:
		return reeve.Errorf(reeve.ToolFailed, "the planner wrote no script: %s", k.Message).
			Hintf("describe the work in more detail, or add tools; the planner needs a model (see docs/models.md)")
	}
	v, err := c.Automations().Version(ctx, k.Automation, k.Result)
	if err != nil {
		return err
	}
	if err := a.print(v, func(w io.Writer) { printContent(w, v.Source) }); err != nil {
		return err
	}
	a.notef("\n%s\n\nVersion %s would make these calls:", sanitize(k.Message), k.Result)
	dryRun := reeve.AutomationRunRequest{Type: reeve.DryRun, Version: k.Result}
	started, err := c.Automations().Start(ctx, k.Automation, dryRun)
	if err != nil {
		return err
	}
	if err := a.watchRun(ctx, c, k.Automation, started); err != nil {
		return err
	}
	a.notef("To activate it: reeve automations activate %s %s", k.Automation, k.Result)
	return nil
}

func (a *app) printScriptJob(k reeve.ScriptJob) error {
	return a.print(k, func(w io.Writer) {
		printDetails(w, "script job", k.ID, "kind", string(k.Kind), "automation", k.Automation,
			"state", string(k.State), "request", k.Request, "question", k.Question, "version", k.Version,
			"failed run", k.RunID, "result", k.Result, "schedule", k.TimerID, "message", k.Message,
			"created", formatTime(k.CreatedAt), "closed", formatTimePtr(k.ClosedAt))
	})
}

func automationsAnswer(a *app) *cobra.Command {
	return a.serverCommand("answer JOB ANSWER", "Answer a question of the planner",
		`automations answer job_... "only on weekdays"`, cobra.ExactArgs(2), func(ctx context.Context, c *client.Client,
			args []string) error {
			k, err := c.ScriptJobs().Answer(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.watchScriptJob(ctx, c, k)
		})
}

func automationsScriptJobs(a *app) *cobra.Command {
	return a.automationCommand("jobs NAME", "List the script jobs of an automation",
		"automations jobs mailer", cobra.ExactArgs(1), func(ctx context.Context, c *client.Client,
			args []string) error {
			l, err := c.ScriptJobs().List(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "JOB KIND STATE VERSION RESULT CREATED MESSAGE",
					rows(l.ScriptJobs, func(k reeve.ScriptJob) []string {
						message := k.Message
						if k.Question != "" {
							message = k.Question
						}
						return []string{k.ID, string(k.Kind), string(k.State), k.Version, k.Result,
							formatTime(k.CreatedAt),
							truncate(message, 80)}
					}))
			})
		})
}

// failureDetails returns the failure state of an automation as names and values for printDetails.
func failureDetails(m reeve.Automation) []string {
	t := m.Failure
	if t == nil {
		return nil
	}
	return []string{"failure", string(t.Class) + " (" + string(t.Code) + ")", "failed run", t.RunID,
		"why", t.Message, "network failures", formatCount(t.NetworkFailures), "next retry", formatTimePtr(t.RetryAt),
		"repairs", formatCount(t.Repairs), "repair", t.ScriptJobID, "stopped", formatTimePtr(t.StoppedAt)}
}
