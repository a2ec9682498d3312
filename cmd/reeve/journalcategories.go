package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func (a *app) printCategory(v reeve.Category) error {
	return a.print(v, func(w io.Writer) { details(w, "name", v.Name, "id", v.ID, "created", when(v.CreatedAt)) })
}

func categoriesCommand(a *app) *cobra.Command {
	list := a.work("list", "List categories", "categories", cobra.NoArgs, func(ctx context.Context, c *client.Client,
		_ []string) error {
		l, err := c.Categories().List(ctx)
		if err != nil {
			return err
		}
		return a.print(l, func(w io.Writer) {
			a.table(w, "NAME ID CREATED",
				rows(l.Categories, func(v reeve.Category) []string {
					return []string{v.Name, v.ID,
						when(v.CreatedAt)}
				}))
		})
	})
	create := a.work("create NAME", "Make a category", "categories create Gym", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Categories().Create(ctx, reeve.CategoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			return a.printCategory(v)
		})
	rename := a.work("rename CATEGORY NAME", "Rename a category", "categories rename Gym Fitness", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := categoryID(ctx, c, args[0])
			if err != nil {
				return err
			}
			v, err := c.Categories().Update(ctx, id, reeve.CategoryRequest{Name: args[1]})
			if err != nil {
				return err
			}
			return a.printCategory(v)
		})
	remove := a.work("delete CATEGORY", "Remove a category that has no tasks", "categories delete Gym",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			id, err := categoryID(ctx, c, args[0])
			if err == nil {
				err = c.Categories().Delete(ctx, id)
			}
			if err != nil {
				return err
			}
			return a.done("deleted category %s", args[0])
		})
	rename.ValidArgsFunction, remove.ValidArgsFunction = a.complete(categoryNames), a.complete(categoryNames)
	return family("categories", "See and manage categories",
		"Everything in the journal belongs to a category, and an agent touches only those it was given by id.",
		list, create, rename, remove)
}

func (a *app) printLabel(v reeve.Label) error {
	return a.print(v, func(w io.Writer) {
		details(w, "name", v.Name, "id", v.ID, "category", v.CategoryID, "created", when(v.CreatedAt))
	})
}

func labelsCommand(a *app) *cobra.Command {
	list := a.work("list", "List labels", "labels", cobra.NoArgs, func(ctx context.Context, c *client.Client,
		_ []string) error {
		l, err := c.Labels().List(ctx)
		if err != nil {
			return err
		}
		return a.print(l, func(w io.Writer) {
			a.table(w, "NAME ID CATEGORY",
				rows(l.Labels, func(v reeve.Label) []string { return []string{v.Name, v.ID, v.CategoryID} }))
		})
	})
	var category string
	create := a.work("create NAME", "Make a label", "labels create urgent --category Gym", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := categoryID(ctx, c, category)
			if err != nil {
				return err
			}
			v, err := c.Labels().Create(ctx, reeve.LabelRequest{Name: args[0], CategoryID: id})
			if err != nil {
				return err
			}
			return a.printLabel(v)
		})
	create.Flags().StringVar(&category, "category", "", "only tasks of this category can have it")
	rename := a.work("rename LABEL NAME", "Rename a label", "labels rename label_... later", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Labels().Update(ctx, args[0], reeve.LabelChange{Name: &args[1]})
			if err != nil {
				return err
			}
			return a.printLabel(v)
		})
	return family("labels", "See and manage labels", "A label marks tasks.", list, create, rename,
		a.removal("label", "labels delete label_...", func(c *client.Client) func(context.Context,
			string) error {
			return c.Labels().Delete
		}))
}
