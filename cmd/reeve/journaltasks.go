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
	return family("tasks", "See and manage tasks",
		"A task is something to do. It belongs to a category and may have checklists, labels and time.",
		tasksList(a), tasksGet(a), tasksCreate(a), tasksUpdate(a), tasksFind(a), tasksLabel(a), tasksFollowUp(a),
		tasksConclude(a),
		a.removal("task", "tasks delete task_...", func(c *client.Client) func(context.Context,
			string) error {
			return c.Tasks().Delete
		}))
}

func tasksList(a *app) *cobra.Command {
	var f client.TaskFilter
	var status []string
	list := a.work("list", "List tasks, newest first", "tasks list --category Gym --open --due-before 2026-03-01",
		cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (err error) {
			f.Status = nil
			for _, s := range status {
				f.Status = append(f.Status, reeve.TaskStatus(s))
			}
			if f.Category, err = categoryID(ctx, c, f.Category); err != nil {
				return err
			}
			l, err := c.Tasks().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID STATUS PRIORITY DUE TITLE", rows(l.Tasks, func(t reeve.Task) []string {
					return []string{t.ID, string(t.Status), string(t.Priority), t.DueDate, cut(t.Title, 60)}
				}))
			})
		})
	g := list.Flags()
	g.StringVar(&f.Category, "category", "", "of one category only")
	g.StringSliceVar(&status, "status", nil, "in one status only; repeat for more")
	g.BoolVar(&f.Open, "open", false, "leave out what is done or rejected")
	g.StringVar(&f.DueAfter, "due-after", "", "due on this day or later")
	g.StringVar(&f.DueBefore, "due-before", "", "due on this day or earlier")
	g.StringVar(&f.Label, "label", "", "with this label only")
	g.StringVar(&f.Text, "text", "", "with this in the title")
	fixed(list, "status", reeve.TaskStatuses())
	paged(list, &f.Page)
	return list
}

func (a *app) printTask(t reeve.Task) error {
	return a.print(t, func(w io.Writer) { taskDetails(w, t) })
}

func taskDetails(w io.Writer, t reeve.Task) {
	estimate := ""
	if t.EstimateMinutes > 0 {
		estimate = strconv.FormatInt(t.EstimateMinutes, 10) + " min"
	}
	details(w, "title", t.Title, "id", t.ID, "category", t.CategoryID, "status", string(t.Status), "priority",
		string(t.Priority), "due", t.DueDate,
		"estimate", estimate, "language", t.Language, "labels", strings.Join(t.LabelIDs, ", "), "description",
		t.Description, "made by", t.CreatedBy,
		"created", when(t.CreatedAt), "updated", when(t.UpdatedAt), "closed", whenSet(t.ClosedAt))
}

func tasksGet(a *app) *cobra.Command {
	return a.work("get TASK", "Show a task with its checklists and links", "tasks get task_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Tasks().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				taskDetails(w, v.Task)
				for _, l := range v.Checklists {
					checklistLines(w, l)
				}
				for _, l := range v.Links {
					details(w, string(l.Relation), l.FromID+" → "+l.ToID)
				}
			})
		})
}

// taskFlags describe a task on the command line.
type taskFlags struct {
	category, title, description, status, priority, due, language string
	estimate                                                      int64
}

func (f *taskFlags) add(c *cobra.Command) {
	g := c.Flags()
	g.StringVar(&f.category, "category", "", "the category it belongs to")
	g.StringVar(&f.description, "description", "", "more about it")
	g.StringVar(&f.status, "status", "", "open, groomed, in_progress, blocked, on_hold, done or rejected")
	g.StringVar(&f.priority, "priority", "", "urgent, high, medium or low")
	g.StringVar(&f.due, "due", "", "the day it is due, YYYY-MM-DD")
	g.StringVar(&f.language, "language", "", "a language tag")
	g.Int64Var(&f.estimate, "estimate", 0, "how many minutes it may take")
	fixed(c, "status", reeve.TaskStatuses())
	fixed(c, "priority", reeve.Priorities())
}

func tasksCreate(a *app) *cobra.Command {
	var f taskFlags
	var labels []string
	c := a.work("create TITLE", "Make a task", `tasks create "Squat twice a week" --category Gym --due 2026-03-01`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			id, err := categoryID(ctx, c, f.category)
			if err != nil {
				return err
			}
			if id == "" {
				return usagef("a task belongs to a category: give --category")
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
	f.add(c)
	c.Flags().StringSliceVar(&labels, "label", nil, "a label's id; repeat for more")
	return c
}

func tasksUpdate(a *app) *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use: "update TASK", Short: "Change a task", Args: cobra.ExactArgs(1),
		Long: "Changes what the flags name and leaves the rest. An empty value takes it away.",
		Example: `  reeve journal tasks update task_... --status done
  reeve journal tasks update task_... --due ''`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				r := reeve.TaskChange{Title: text[string](cmd, "title", f.title),
					Description: text[string](cmd, "description", f.description),
					Status:      text[reeve.TaskStatus](cmd, "status", f.status),
					Priority:    text[reeve.Priority](cmd, "priority", f.priority),
					DueDate:     text[string](cmd, "due", f.due), Language: text[string](cmd, "language", f.language)}
				if cmd.Flags().Changed("estimate") {
					r.EstimateMinutes = &f.estimate
				}
				if cmd.Flags().Changed("category") {
					id, err := categoryID(ctx, c, f.category)
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
	f.add(c)
	c.Flags().StringVar(&f.title, "title", "", "a new title")
	return c
}

func tasksFind(a *app) *cobra.Command {
	var closed bool
	var limit int
	c := a.work("find WORDS...", "Find the tasks that words may mean, the likeliest first", "tasks find tax return",
		cobra.MinimumNArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Tasks().Resolve(ctx, strings.Join(args, " "), closed, limit)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "SCORE ID STATUS TITLE WHY", rows(l.Candidates, func(t reeve.TaskCandidate) []string {
					return []string{strconv.Itoa(t.Score), t.TaskID, string(t.Status), cut(t.Title, 60), t.Why}
				}))
			})
		})
	c.Flags().BoolVar(&closed, "closed", false, "look at tasks that are done or rejected, too")
	c.Flags().IntVar(&limit, "limit", 0, "how many at most")
	return c
}

func tasksLabel(a *app) *cobra.Command {
	var in reeve.LabelAssignment
	c := a.work("label TASK", "Put labels on a task and take others off", "tasks label task_... --add label_...",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Tasks().AssignLabels(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printTask(t)
		})
	c.Flags().StringSliceVar(&in.Add, "add", nil, "a label's id; repeat for more")
	c.Flags().StringSliceVar(&in.Remove, "remove", nil, "a label's id; repeat for more")
	return c
}

// printTasks shows what a change of two tasks came to.
func (a *app) printTasks(v reeve.TasksChanged) error {
	return a.print(v, func(w io.Writer) {
		other := ""
		if v.Other != nil {
			other = v.Other.Title + " (" + v.Other.ID + ")"
		}
		details(w, "task", v.Task.Title+" ("+v.Task.ID+")", "status", string(v.Task.Status), "other task", other,
			"moved items", strconv.Itoa(v.Moved))
	})
}

func tasksFollowUp(a *app) *cobra.Command {
	var as, category string
	var leave bool
	c := a.work("follow-up TASK TITLE", "Make a task that goes on where another ends",
		`tasks follow-up task_... "Next release" --close done`, cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			in := reeve.FollowUp{SourceTaskID: args[0], Title: args[1], CloseAs: reeve.TaskStatus(as)}
			if leave {
				carry := false
				in.CarryOver = &carry
			}
			if category != "" {
				id, err := categoryID(ctx, c, category)
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
	c.Flags().StringVar(&as, "close", "", "close the task as done or rejected")
	c.Flags().StringVar(&category, "category", "", "another category, without the labels")
	c.Flags().BoolVar(&leave, "leave-items", false, "leave open items where they are")
	return c
}

func tasksConclude(a *app) *cobra.Command {
	var in reeve.Rollover
	var as string
	c := a.work("conclude TASK", "Close a task and move its open items on", `tasks conclude task_... --title "Week 8"`,
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			in.TaskID, in.CloseAs = args[0], reeve.TaskStatus(as)
			v, err := c.Tasks().Conclude(ctx, in)
			if err != nil {
				return err
			}
			return a.printTasks(v)
		})
	c.Flags().StringVar(&as, "as", "", "done or rejected (default: done)")
	c.Flags().StringVar(&in.TargetTaskID, "to", "", "the task that gets the open items (default: a new one)")
	c.Flags().StringVar(&in.Title, "title", "", "of the new task (default: the old one's)")
	return c
}
