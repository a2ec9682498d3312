package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func toolsCommand(a *app) *cobra.Command {
	list := toolsList(a)
	c := &cobra.Command{
		Use: "tools", Short: "List and define tools", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `Lists the tool catalogue, and defines HTTP tools: a definition file turns an HTTP endpoint into a
tool.`,
		Example: `  reeve tools
  reeve tools show file_read
  reeve tools create -f weather.yaml`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, toolsGet(a), toolsExport(a), toolsCreate(a), toolsUpdate(a), toolsDelete(a))
	return c
}

func toolsList(a *app) *cobra.Command {
	var category string
	c := &cobra.Command{
		Use: "list", Short: "List the tool catalogue", Args: cobra.NoArgs,
		Example: "  reeve tools list --category filesystem",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Tools().List(ctx, category)
				if err == nil && len(l.Tools) == 0 && category != "" {
					err = unknownCategoryError(ctx, c, category)
				}
				if err != nil {
					return err
				}
				return a.printTools(l)
			})
		},
	}
	c.Flags().StringVar(&category, "category", "", "only tools of this category")
	return c
}

// unknownCategoryError returns an error that lists the categories of the catalogue.
func unknownCategoryError(ctx context.Context, c *client.Client, category string) error {
	all, err := c.Tools().List(ctx, "")
	if err != nil {
		return err
	}
	var names []string
	for _, t := range all.Tools {
		if t.Category != "" && !slices.Contains(names, t.Category) {
			names = append(names, t.Category)
		}
	}
	return reeve.Errorf(reeve.NotFound, "no tool has the category %q", category).
		Hintf("use one of: %s", strings.Join(names, ", "))
}

func (a *app) printTools(l api.ToolList) error {
	return a.print(l, func(w io.Writer) {
		a.printTable(w, "ID CATEGORY TIER EFFECT KIND DESCRIPTION", rows(l.Tools, func(t api.ToolView) []string {
			about := t.Description
			if t.Broken != "" {
				about = "BROKEN: " + t.Broken
			}
			return []string{t.ID, t.Category, string(t.Tier), string(t.Effect), string(t.Kind), truncate(about, 60)}
		}))
	})
}

func (a *app) printTool(t api.ToolView) error {
	return a.print(t, func(w io.Writer) {
		previews := ""
		if t.Previews {
			previews = "yes"
		}
		printDetails(w, "id", t.ID, "name", t.Name, "kind", string(t.Kind), "category", t.Category, "pack", t.Pack,
			"tier", string(t.Tier), "effect", string(t.Effect), "risk", string(t.Risk), "capability", t.Capability,
			"timeout", t.Timeout().String(), "attempts", strconv.Itoa(t.Retry.Attempts), "previews", previews,
			"identity", strings.Join(t.Identity, ", "), "cost", formatAmount(t.Cost),
			"version", strconv.Itoa(t.Version), "broken", t.Broken, "description", t.Description,
			"parameters", indentJSON(t.Parameters), "output", indentJSON(t.OutputSchema),
			"settings", indentJSON(t.ConfigSchema),
			"agent's config", indentJSON(t.Config), "spec", indentJSON(t.Spec))
	})
}

func toolsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show TOOL", Short: "Show a tool and its parameters", Args: cobra.ExactArgs(1),
		Example:           "  reeve tools show file_read",
		ValidArgsFunction: a.complete(toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Tools().Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printTool(t)
			})
		},
	}
}

// exportFormats are the values of --format.
var exportFormats = []string{"openai", "openai-responses", "anthropic", "gemini", "mcp", "langchain"}

func toolsExport(a *app) *cobra.Command {
	var format, agent string
	c := &cobra.Command{
		Use: "export", Short: "Export tools in the format of another program", Args: cobra.NoArgs,
		Long: `Prints tools in the format that a model provider, an MCP client or LangChain takes: the list of tools alone, or
with --json also the names that had to change and what the format cannot express.`,
		Example: `  reeve tools export --format openai
  reeve tools export --agent coach --format anthropic --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				x, err := c.Tools().Export(ctx, format, agent)
				if err != nil {
					return err
				}
				for _, name := range slices.Sorted(maps.Keys(x.Names)) {
					a.notef("%s is exported as %s", x.Names[name], name)
				}
				for _, n := range x.Notes {
					a.notef("%s %s: %s", n.Tool, n.Path, n.Text)
				}
				return a.print(x, func(w io.Writer) {
					enc := json.NewEncoder(w)
					enc.SetEscapeHTML(false)
					enc.SetIndent("", "  ")
					_ = enc.Encode(x.Tools)
				})
			})
		},
	}
	c.Flags().StringVar(&format, "format", "", "one of "+strings.Join(exportFormats, ", ")+" (required)")
	c.Flags().StringVar(&agent, "agent", "", "only the tools of this agent")
	if err := c.MarkFlagRequired("format"); err != nil {
		panic(err) // the flag does not exist
	}
	return c
}

func toolsCreate(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "create -f FILE", Short: "Define a tool", Args: cobra.NoArgs,
		Long: `Defines a tool from a JSON or YAML file. docs/http-tools.md describes the fields.`,
		Example: `  reeve tools create -f weather.yaml
  cat weather.json | reeve tools create -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var t api.ToolRequest
			if err := a.readDocument(file, &t); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				v, err := c.Tools().Create(ctx, t)
				if err != nil {
					return err
				}
				return a.printTool(v)
			})
		},
	}
	addFileFlag(c, &file)
	return c
}

func toolsUpdate(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "update TOOL -f FILE", Short: "Replace the definition of a tool", Args: cobra.ExactArgs(1),
		Example:           "  reeve tools update weather -f weather.yaml",
		ValidArgsFunction: a.complete(toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := api.ToolRequest{ID: args[0]}
			if err := a.readDocument(file, &t); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				v, err := c.Tools().Update(ctx, args[0], t)
				if err != nil {
					return err
				}
				return a.printTool(v)
			})
		},
	}
	addFileFlag(c, &file)
	return c
}

func toolsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete TOOL", Short: "Delete a defined tool and detach it from all agents", Args: cobra.ExactArgs(1),
		Example:           "  reeve tools delete weather",
		ValidArgsFunction: a.complete(toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Tools().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.printDone("deleted tool %s", args[0])
			})
		},
	}
}

// addFileFlag adds the required flag --file.
func addFileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "file", "f", "", "JSON or YAML file; - for standard input (required)")
	if err := c.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag does not exist
	}
}
