package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func tasksCommand(a *app) *cobra.Command {
	return groupCommand("tasks", "Manage tasks",
		"A task belongs to a category and can have checklists, labels and time entries. TASK is an id.",
		tasksList(a), tasksGet(a), tasksCreate(a), tasksUpdate(a), tasksFind(a), tasksLabel(a), tasksFollowUp(a),
		tasksConclude(a),
		a.deleteCommand("task", "tasks delete task_...",
			func(ctx context.Context, c *client.Client, id string) error { return c.Tasks().Delete(ctx, id) }))
}

func tasksList(a *app) *cobra.Command {
	var f client.TaskFilter
	var status []string
	list := a.journalSubcommand("list", "List tasks, newest first",
		"tasks list --category Gym --open --due-before 2026-03-01",
		cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (err error) {
			f.Status = nil
			for _, s := range status {
				f.Status = append(f.Status, reeve.TaskStatus(s))
			}
			if f.Category, err = resolveCategory(ctx, c, f.Category); err != nil {
				return err
			}
			l, err := c.Tasks().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID STATUS PRIORITY DUE TITLE", rows(l.Tasks, func(t reeve.Task) []string {
					return []string{t.ID, string(t.Status), string(t.Priority), t.DueDate, truncate(t.Title, 60)}
				}))
			})
		})
	g := list.Flags()
	g.StringVar(&f.Category, "category", "", "only tasks of this category")
	g.StringSliceVar(&status, "status", nil, "only tasks with this status; can be repeated")
	g.BoolVar(&f.Open, "open", false, "only tasks that are not done or rejected")
	g.StringVar(&f.DueAfter, "due-after", "", "only tasks due on this day or later, YYYY-MM-DD")
	g.StringVar(&f.DueBefore, "due-before", "", "only tasks due on this day or earlier, YYYY-MM-DD")
	g.StringVar(&f.Label, "label", "", "only tasks with this label, an id")
	g.StringVar(&f.Text, "text", "", "only tasks whose title contains this text")
	completeFlagValues(list, "status", reeve.TaskStatuses())
	addPageFlags(list, &f.Page)
	return list
}

func (a *app) printTask(t reeve.Task) error {
	return a.print(t, func(w io.Writer) { writeTask(w, t) })
}

func writeTask(w io.Writer, t reeve.Task) {
	estimate := ""
	if t.EstimateMinutes > 0 {
		estimate = strconv.FormatInt(t.EstimateMinutes, 10) + " min"
	}
	printDetails(w, "title", t.Title, "id", t.ID, "category", t.CategoryID, "status", string(t.Status),
		"priority", string(t.Priority), "due", t.DueDate, "estimate", estimate, "language", t.Language,
		"labels", strings.Join(t.LabelIDs, ", "), "description", t.Description, "created by", t.CreatedBy,
		"created", formatTime(t.CreatedAt), "updated", formatTime(t.UpdatedAt), "closed", formatTimePtr(t.ClosedAt))
}

func tasksGet(a *app) *cobra.Command {
	return a.journalSubcommand("show TASK", "Show a task with its checklists and links", "tasks show task_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Tasks().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				writeTask(w, v.Task)
				for _, l := range v.Checklists {
					writeChecklist(w, l)
				}
				for _, l := range v.Links {
					printDetails(w, string(l.Relation), l.FromID+" → "+l.ToID)
				}
			})
		})
}

// taskFlags are the flags that describe a task.
type taskFlags struct {
	category, title, description, status, priority, due, language string
	estimate                                                      int64
}

func (f *taskFlags) register(c *cobra.Command) {
	g := c.Flags()
	g.StringVar(&f.category, "category", "", "category, a name or id (required to create a task)")
	g.StringVar(&f.description, "description", "", "description")
	g.StringVar(&f.status, "status", "", "open, groomed, in_progress, blocked, on_hold, done or rejected")
	g.StringVar(&f.priority, "priority", "", "urgent, high, medium or low")
	g.StringVar(&f.due, "due", "", "due date, YYYY-MM-DD")
	g.StringVar(&f.language, "language", "", "language tag, such as en or de-AT")
	g.Int64Var(&f.estimate, "estimate", 0, "estimated time in minutes")
	completeFlagValues(c, "status", reeve.TaskStatuses())
	completeFlagValues(c, "priority", reeve.Priorities())
}

func tasksCreate(a *app) *cobra.Command {
	var f taskFlags
	var labels []string
	c := a.journalSubcommand("create TITLE", "Create a task",
		`tasks create "Squat twice a week" --category Gym --due 2026-03-01`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			id, err := resolveCategory(ctx, c, f.category)
			if err != nil {
				return err
			}
			if id == "" {
				return usagef("a task needs a category; set --category")
			}
			t, err := c.Tasks().Create(ctx, reeve.TaskDraft{CategoryID: id, Title: args[0], Description: f.description,
				Status:   reeve.TaskStatus(f.status),
				Priority: reeve.Priority(f.priority), EstimateMinutes: f.estimate, DueDate: f.due, Language: f.language,
				LabelIDs: labels})
			if err != nil {
				return err
			}
			return a.printTask(t)
		})
	f.register(c)
	c.Flags().StringSliceVar(&labels, "label", nil, "id of a label; can be repeated")
	return c
}

func tasksUpdate(a *app) *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use: "update TASK", Short: "Change a task", Args: cobra.ExactArgs(1),
		Long: "Changes the fields whose flags are set. An empty value removes a field.",
		Example: `  reeve journal tasks update task_... --status done
  reeve journal tasks update task_... --due ''`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				r := reeve.TaskChange{Title: changedFlag[string](cmd, "title", f.title),
					Description: changedFlag[string](cmd, "description", f.description),
					Status:      changedFlag[reeve.TaskStatus](cmd, "status", f.status),
					Priority:    changedFlag[reeve.Priority](cmd, "priority", f.priority),
					DueDate:     changedFlag[string](cmd, "due", f.due), Language: changedFlag[string](cmd, "language",
						f.language)}
				if cmd.Flags().Changed("estimate") {
					r.EstimateMinutes = &f.estimate
				}
				if cmd.Flags().Changed("category") {
					id, err := resolveCategory(ctx, c, f.category)
					if err != nil {
						return err
					}
					r.CategoryID = &id
				}
				t, err := c.Tasks().Update(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.printTask(t)
			})
		},
	}
	f.register(c)
	c.Flags().StringVar(&f.title, "title", "", "new title")
	return c
}

func tasksFind(a *app) *cobra.Command {
	var closed bool
	var limit int
	c := a.journalSubcommand("find WORDS...", "Find tasks that match words, best match first", "tasks find tax return",
		cobra.MinimumNArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Tasks().Resolve(ctx, strings.Join(args, " "), closed, limit)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "SCORE ID STATUS TITLE WHY", rows(l.Candidates, func(t reeve.TaskCandidate) []string {
					return []string{strconv.Itoa(t.Score), t.TaskID, string(t.Status), truncate(t.Title, 60), t.Why}
				}))
			})
		})
	c.Flags().BoolVar(&closed, "closed", false, "include tasks that are done or rejected")
	c.Flags().IntVar(&limit, "limit", 0, "maximum number of results")
	return c
}

func tasksLabel(a *app) *cobra.Command {
	var in reeve.LabelAssignment
	c := a.journalSubcommand("label TASK", "Add and remove labels of a task", "tasks label task_... --add label_...",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Tasks().AssignLabels(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printTask(t)
		})
	c.Flags().StringSliceVar(&in.Add, "add", nil, "id of a label to add; can be repeated")
	c.Flags().StringSliceVar(&in.Remove, "remove", nil, "id of a label to remove; can be repeated")
	return c
}

// printTasks prints the result of a change that affects up to two tasks.
func (a *app) printTasks(v reeve.TasksChanged) error {
	return a.print(v, func(w io.Writer) {
		other := ""
		if v.Other != nil {
			other = v.Other.Title + " (" + v.Other.ID + ")"
		}
		printDetails(w, "task", v.Task.Title+" ("+v.Task.ID+")", "status", string(v.Task.Status),
			"other task", other, "moved items", strconv.Itoa(v.Moved))
	})
}

func tasksFollowUp(a *app) *cobra.Command {
	var as, category string
	var leave bool
	c := a.journalSubcommand("follow-up TASK TITLE", "Create a task that continues another one",
		`tasks follow-up task_... "Next release" --close done`, cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			in := reeve.FollowUp{SourceTaskID: args[0], Title: args[1], CloseAs: reeve.TaskStatus(as)}
			if leave {
				carry := false
				in.CarryOver = &carry
			}
			if category != "" {
				id, err := resolveCategory(ctx, c, category)
				if err != nil {
					return err
				}
				preserve := false
				in.CategoryID, in.Preserve = id, &preserve
			}
			v, err := c.Tasks().FollowUp(ctx, in)
			if err != nil {
				return err
			}
			return a.printTasks(v)
		})
	c.Flags().StringVar(&as, "close", "", "close the old task as done or rejected")
	c.Flags().StringVar(&category, "category", "",
		"category of the new task, which then gets no labels (default: the old task's category)")
	c.Flags().BoolVar(&leave, "leave-items", false, "do not move open checklist items to the new task")
	return c
}

func tasksConclude(a *app) *cobra.Command {
	var in reeve.Rollover
	var as string
	c := a.journalSubcommand("conclude TASK", "Close a task and move its open checklist items to another",
		`tasks conclude task_... --title "Week 8"`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			in.TaskID, in.CloseAs = args[0], reeve.TaskStatus(as)
			v, err := c.Tasks().Conclude(ctx, in)
			if err != nil {
				return err
			}
			return a.printTasks(v)
		})
	c.Flags().StringVar(&as, "as", "", "final status, done or rejected (default done)")
	c.Flags().StringVar(&in.TargetTaskID, "to", "", "id of the task that gets the open items (default: a new task)")
	c.Flags().StringVar(&in.Title, "title", "", "title of the new task (default: the title of the old one)")
	return c
}
