package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

// writeChecklist writes a checklist with a check box for each item.
func writeChecklist(w io.Writer, l reeve.Checklist) {
	fmt.Fprintf(w, "%s (%s)\n", oneLine(l.Title), l.ID)
	for _, i := range l.Items {
		mark := "[ ]"
		if i.Checked {
			mark = "[x]"
		}
		fmt.Fprintf(w, "  %s %s (%s)\n", mark, oneLine(i.Title), i.ID)
	}
}

func (a *app) printChecklist(l reeve.Checklist) error {
	return a.print(l, func(w io.Writer) { writeChecklist(w, l) })
}

func checklistsCommand(a *app) *cobra.Command {
	list := a.journalSubcommand("list TASK", "List the checklists of a task", "checklists list task_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Checklists().List(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				for _, v := range l.Checklists {
					writeChecklist(w, v)
				}
			})
		})
	create := a.journalSubcommand("create TASK TITLE [ITEM...]", "Create a checklist",
		"checklists create task_... Boxes Kitchen Attic", cobra.MinimumNArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Checklists().Create(ctx, reeve.ChecklistDraft{TaskID: args[0], Title: args[1], Items: args[2:]})
			if err != nil {
				return err
			}
			return a.printChecklist(l)
		})
	add := a.journalSubcommand("add CHECKLIST ITEM...", "Add items to a checklist", "checklists add list_... Cellar",
		cobra.MinimumNArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			var in reeve.ChecklistItemsDraft
			for _, title := range args[1:] {
				in.Items = append(in.Items, reeve.ChecklistItemDraft{Title: title})
			}
			l, err := c.Checklists().AddItems(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printChecklist(l)
		})
	rename := a.journalSubcommand("rename CHECKLIST TITLE", "Rename a checklist", "checklists rename list_... Crates",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Checklists().Update(ctx, args[0], reeve.ChecklistChange{Title: &args[1]})
			if err != nil {
				return err
			}
			return a.printChecklist(l)
		})
	remove := a.journalSubcommand("remove CHECKLIST ITEM", "Remove an item from a checklist",
		"checklists remove list_... item_...",
		cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Checklists().DeleteItem(ctx, args[0], args[1]); err != nil {
				return err
			}
			return a.printDone("deleted item %s", args[1])
		})
	return groupCommand("checklists", "Manage checklists",
		"A checklist belongs to a task. CHECKLIST, ITEM and TASK are ids.", list, create, add, rename,
		checklistsMark(a, "check", "Check items", true), checklistsMark(a, "uncheck", "Uncheck items", false),
		remove, checklistsMove(a), checklistsSplit(a),
		a.deleteCommand("checklist", "checklists delete list_...",
			func(ctx context.Context, c *client.Client, id string) error { return c.Checklists().Delete(ctx, id) }))
}

func checklistsMark(a *app, name, short string, checked bool) *cobra.Command {
	return a.journalSubcommand(name+" CHECKLIST ITEM...", short, "checklists "+name+" list_... item_...",
		cobra.MinimumNArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			var in reeve.ChecklistItemsChange
			for _, id := range args[1:] {
				in.Items = append(in.Items, reeve.ChecklistItemChange{ID: id, Checked: &checked})
			}
			l, err := c.Checklists().UpdateItems(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printChecklist(l)
		})
}

func checklistsMove(a *app) *cobra.Command {
	return a.journalSubcommand("move FROM TO ITEM...", "Move items to the end of another checklist",
		"checklists move list_... list_... item_...", cobra.MinimumNArgs(3), func(ctx context.Context, c *client.Client,
			args []string) error {
			l, err := c.Checklists().MoveItems(ctx, reeve.ChecklistItemMove{FromID: args[0], ToID: args[1],
				ItemIDs: args[2:]})
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				for _, v := range l.Checklists {
					writeChecklist(w, v)
				}
			})
		})
}

func checklistsSplit(a *app) *cobra.Command {
	var category string
	c := a.journalSubcommand("split CHECKLIST TITLE ITEM...", "Move items to a new task",
		`checklists split list_... "Paint the attic" item_...`, cobra.MinimumNArgs(3),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := resolveCategory(ctx, c, category)
			if err != nil {
				return err
			}
			split := reeve.ChecklistItemSplit{FromID: args[0], Title: args[1], ItemIDs: args[2:], CategoryID: id}
			v, err := c.Checklists().SplitItems(ctx, split)
			if err != nil {
				return err
			}
			return a.printTasks(v)
		})
	c.Flags().StringVar(&category, "category", "", "category of the new task (default: the old task's category)")
	return c
}
