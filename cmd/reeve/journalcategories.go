package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func (a *app) printCategory(v reeve.Category) error {
	return a.print(v, func(w io.Writer) {
		printDetails(w, "name", v.Name, "id", v.ID, "created", formatTime(v.CreatedAt))
	})
}

func categoriesCommand(a *app) *cobra.Command {
	list := a.journalSubcommand("list", "List categories", "categories", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Categories().List(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "NAME ID CREATED",
					rows(l.Categories, func(v reeve.Category) []string {
						return []string{v.Name, v.ID, formatTime(v.CreatedAt)}
					}))
			})
		})
	create := a.journalSubcommand("create NAME", "Create a category", "categories create Gym", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Categories().Create(ctx, reeve.CategoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			return a.printCategory(v)
		})
	rename := a.journalSubcommand("rename CATEGORY NAME", "Rename a category", "categories rename Gym Fitness",
		cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := resolveCategory(ctx, c, args[0])
			if err != nil {
				return err
			}
			v, err := c.Categories().Update(ctx, id, reeve.CategoryRequest{Name: args[1]})
			if err != nil {
				return err
			}
			return a.printCategory(v)
		})
	remove := a.journalSubcommand("delete CATEGORY", "Delete a category that has no tasks", "categories delete Gym",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			id, err := resolveCategory(ctx, c, args[0])
			if err == nil {
				err = c.Categories().Delete(ctx, id)
			}
			if err != nil {
				return err
			}
			return a.printDone("deleted category %s", args[0])
		})
	rename.ValidArgsFunction, remove.ValidArgsFunction = a.complete(categoryNames), a.complete(categoryNames)
	return groupCommand("categories", "Manage categories",
		"Everything in the journal belongs to a category. An agent can access only its own categories.",
		list, create, rename, remove)
}

func (a *app) printLabel(v reeve.Label) error {
	return a.print(v, func(w io.Writer) {
		printDetails(w, "name", v.Name, "id", v.ID, "category", v.CategoryID, "created", formatTime(v.CreatedAt))
	})
}

func labelsCommand(a *app) *cobra.Command {
	list := a.journalSubcommand("list", "List labels", "labels", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Labels().List(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "NAME ID CATEGORY",
					rows(l.Labels, func(v reeve.Label) []string { return []string{v.Name, v.ID, v.CategoryID} }))
			})
		})
	var category string
	create := a.journalSubcommand("create NAME", "Create a label", "labels create urgent --category Gym",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := resolveCategory(ctx, c, category)
			if err != nil {
				return err
			}
			v, err := c.Labels().Create(ctx, reeve.LabelRequest{Name: args[0], CategoryID: id})
			if err != nil {
				return err
			}
			return a.printLabel(v)
		})
	create.Flags().StringVar(&category, "category", "", "category whose tasks can have the label (default: all)")
	rename := a.journalSubcommand("rename LABEL NAME", "Rename a label", "labels rename label_... later",
		cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Labels().Update(ctx, args[0], reeve.LabelChange{Name: &args[1]})
			if err != nil {
				return err
			}
			return a.printLabel(v)
		})
	return groupCommand("labels", "Manage labels", "A label marks tasks. LABEL is an id.", list, create, rename,
		a.deleteCommand("label", "labels delete label_...",
			func(ctx context.Context, c *client.Client, id string) error { return c.Labels().Delete(ctx, id) }))
}
