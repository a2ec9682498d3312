package main

import (
	"context"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func conversationsCommand(a *app) *cobra.Command {
	list := conversationsList(a)
	c := &cobra.Command{
		Use: "conversations", Short: "Manage conversations with agents", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `A conversation stays active until a person completes it. "reeve chat AGENT" starts a conversation;
with --conversation it continues one.`,
		Example: `  reeve conversations list --state active
  reeve conversations show conv_...
  reeve conversations complete conv_...`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, conversationsShow(a), conversationsComplete(a), conversationsMedia(a),
		conversationsAttachments(a))
	return c
}

func conversationsList(a *app) *cobra.Command {
	var f client.ConversationFilter
	c := &cobra.Command{
		Use: "list", Short: "List conversations, newest first", Args: cobra.NoArgs,
		Example: "  reeve conversations list --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Conversations().List(ctx, f)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "ID STATE AGENT USER TURNS UPDATED TITLE",
						rows(l.Conversations, func(v reeve.Conversation) []string {
							return []string{v.ID, v.State, v.AgentID, v.UserID, strconv.Itoa(v.Turns),
								formatTime(v.UpdatedAt),
								truncate(v.Title, 60)}
						}))
				})
			})
		},
	}
	c.Flags().StringVar(&f.Agent, "agent", "", "only conversations with this agent")
	c.Flags().StringVar(&f.State, "state", "", "only conversations in this state: active or completed")
	c.Flags().StringVar(&f.User, "user", "", "only conversations with this user as a participant")
	addPageFlags(c, &f.Page)
	return c
}

func conversationsShow(a *app) *cobra.Command {
	var p client.Page
	c := &cobra.Command{
		Use: "show CONVERSATION", Short: "Show the messages of a conversation, oldest first", Args: cobra.ExactArgs(1),
		Example: "  reeve conversations show conv_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Conversations().Messages(ctx, args[0], p)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) {
					for _, m := range l.Messages {
						printMessage(w, m)
					}
				})
			})
		},
	}
	addPageFlags(c, &p)
	return c
}

func conversationsMedia(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "media CONVERSATION HASH", Short: "Print a file that an agent sent",
		Args:    cobra.ExactArgs(2),
		Example: "  reeve conversations media conv_... 9f86d081... > chart.png",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				b, err := c.Conversations().Media(ctx, args[0], args[1])
				if err == nil {
					_, err = a.out.Write(b)
				}
				return err
			})
		},
	}
}

func conversationsAttachments(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "attachments", Short: "List and save files that people attached",
		Example: "  reeve conversations attachments list conv_...",
	}
	c.AddCommand(attachmentsList(a), attachmentsSave(a))
	return c
}

func attachmentsList(a *app) *cobra.Command {
	after := 0
	c := &cobra.Command{
		Use: "list CONVERSATION", Short: "List the files that people attached", Args: cobra.ExactArgs(1),
		Example: "  reeve conversations attachments list conv_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Conversations().Attachments(ctx, args[0], after)
				if err != nil {
					return err
				}
				if l.Next > 0 {
					defer a.notef("there are more: --after %d", l.Next)
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "NUMBER NAME TYPE BYTES USER ATTACHED",
						rows(l.Attachments, func(f reeve.StoredAttachment) []string {
							return []string{strconv.Itoa(f.Number), f.FileName(), f.MediaType, strconv.Itoa(f.Size),
								f.UserID, formatTime(f.CreatedAt)}
						}))
				})
			})
		},
	}
	c.Flags().IntVar(&after, "after", 0, "list files after this number")
	return c
}

func attachmentsSave(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "save CONVERSATION NUMBER [FILE]", Short: "Save an attached file, or print it",
		Args:    cobra.RangeArgs(2, 3),
		Example: "  reeve conversations attachments save conv_... 1 plan.pdf",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				b, err := c.Conversations().Attachment(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				if len(args) == 2 {
					_, err = a.out.Write(b)
					return err
				}
				f, err := os.OpenFile(args[2], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return reeve.Errorf(reeve.Validation, "cannot create %s: %v", args[2], err).
						Hintf("name a file that does not exist yet")
				}
				if _, err = f.Write(b); err != nil {
					_ = f.Close()
					return reeve.Errorf(reeve.Unavailable, "cannot write %s: %v", args[2], err)
				}
				return f.Close()
			})
		},
	}
}

func conversationsComplete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "complete CONVERSATION", Short: "Complete a conversation", Args: cobra.ExactArgs(1),
		Example: "  reeve conversations complete conv_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				change := reeve.ConversationChange{State: reeve.ConversationCompleted}
				v, err := c.Conversations().Update(ctx, args[0], change)
				if err != nil {
					return err
				}
				if a.json {
					return a.print(v, nil)
				}
				return a.printDone("completed %s after %d turns", v.ID, v.Turns)
			})
		},
	}
}
