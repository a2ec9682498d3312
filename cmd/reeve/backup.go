package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
	"reeve/host"
)

func backupCommand(a *app) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "backup FILE", Short: "Back up the database of a running server", Args: cobra.ExactArgs(1),
		Long: `Copies the database while the server runs. FILE appears only when the copy is complete, and only its
owner can read it. The command never replaces the files of a data directory; to put a backup in place,
use "reeve restore".`,
		Example: "  reeve backup reeve-monday.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			var dirs []string
			if dir, err := a.dataDir(); err == nil {
				dirs = append(dirs, dir)
			}
			if err := host.CheckTarget(args[0], dirs...); err != nil {
				return err
			}
			if _, err := os.Lstat(args[0]); err == nil && !force {
				return reeve.Errorf(reeve.AlreadyExists, "%s exists", args[0]).
					Hintf("choose another name, or replace the file with --force")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				size, err := backupTo(ctx, c, args[0])
				if err != nil {
					return err
				}
				return a.printDone("copied %d bytes to %s", size, args[0])
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	return c
}

// backupTo writes a backup to a temporary file and renames it at the end, so that an incomplete backup never has the
// name of a complete one.
func backupTo(ctx context.Context, c *client.Client, name string) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".reeve-backup-*") // 0600
	if err != nil {
		return 0, reeve.Errorf(reeve.Unavailable, "cannot write the backup: %w", err)
	}
	defer func() {
		if e := os.Remove(f.Name()); e != nil && !errors.Is(e, fs.ErrNotExist) && err == nil {
			err = e
		}
	}()
	size, err = c.Server().Backup(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return size, err
}
