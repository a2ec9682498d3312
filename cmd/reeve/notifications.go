package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func notificationsCommand(a *app) *cobra.Command {
	var f client.NotificationFilter
	list := a.serverCommand("list", "List your notifications, newest first", "notifications list --unread",
		cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Notifications().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				for _, n := range l.Notifications {
					printNotification(w, n)
				}
				if len(l.Notifications) == 0 {
					fmt.Fprintln(w, "No notifications.")
				}
			})
		})
	list.Flags().BoolVar(&f.Unread, "unread", false, "only unread notifications")
	addPageFlags(list, &f.Page)
	one := a.serverCommand("show NOTIFICATION", "Show a notification", "notifications show ntf_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			n, err := c.Notifications().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNotification(w, n) })
		})
	read := a.serverCommand("read NOTIFICATION", "Mark a notification as read", "notifications read ntf_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Notifications().MarkRead(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("marked notification %s as read", args[0])
		})
	read.ValidArgsFunction = a.complete(unreadNotifications)
	c := groupCommand("notifications", "List your notifications",
		"Schedules notify you of the results of their runs, as their --notify policy says. Automations notify you of\n"+
			"new versions and failures.", list, one, read)
	c.Example = "  reeve notifications --unread\n  reeve notifications read ntf_..."
	return c
}

// printNotification prints a notification with its full text.
func printNotification(w io.Writer, n reeve.Notification) {
	state := "unread"
	if n.ReadAt != nil {
		state = "read"
	}
	fmt.Fprintf(w, "%s  %s  %s  %s  %s\n", formatTime(n.CreatedAt), n.ID, state, oneLine(n.RunID), oneLine(n.Title))
	if n.Body != "" {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(strings.TrimRight(sanitize(n.Body), "\n"), "\n", "\n  "))
	}
}

// formatUnread returns a line with the number of unread notifications, or "" if there are none or --json is set.
func (a *app) formatUnread(ctx context.Context, c *client.Client) (string, error) {
	if a.json {
		return "", nil
	}
	const limit = 100
	l, err := c.Notifications().List(ctx, client.NotificationFilter{Unread: true, Page: client.Page{Limit: limit}})
	if err != nil || len(l.Notifications) == 0 {
		return "", err
	}
	count := fmt.Sprint(len(l.Notifications))
	if len(l.Notifications) == limit {
		count += " or more"
	}
	return "Unread notifications: " + count + " (reeve notifications --unread)\n", nil
}

func unreadNotifications(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Notifications().List(ctx, client.NotificationFilter{Unread: true})
	var ids []string
	for _, n := range list.Notifications {
		ids = append(ids, n.ID+"\t"+n.Title)
	}
	return ids, err
}
