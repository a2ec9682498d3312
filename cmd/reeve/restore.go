package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/host"
)

// restoreCommand replaces the database of a stopped server with a backup.
func restoreCommand(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup while the server is stopped",
		Args: cobra.ExactArgs(1),
		Long: `Checks the backup, then replaces the SQLite database in the data directory with it. The server must
not be running. The old database is kept in the same directory as reeve.db.before-restore-TIME.

To restore a backup of PostgreSQL, use pg_restore --no-owner --dbname=URL FILE with an empty database,
then start reeve serve --database URL.

A server starts held on a restored database: it runs and changes nothing until you run "reeve resume".
First check with "reeve held" what it would resume.`,
		Example: "  reeve restore reeve-monday.db --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return reeve.Errorf(reeve.Validation, "a restore discards all changes since the backup").
					Hintf("confirm with --yes; the old database is kept")
			}
			cfg, err := serverConfig("", cmd, host.Config{})
			if err != nil {
				return err
			}
			kept, err := host.Restore(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			a.notef("the server will start held; list the work it would resume with reeve held, then run reeve resume")
			if kept == "" {
				return a.printDone("restored %s; there was no previous database", args[0])
			}
			return a.printDone("restored %s; the previous database is kept as %s", args[0], filepath.Base(kept))
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "confirm that the database is replaced")
	return c
}

// initCommand creates a data directory without starting a server.
func initCommand(a *app) *cobra.Command {
	var sample bool
	c := &cobra.Command{
		Use: "init", Short: "Create a data directory",
		Args: cobra.NoArgs,
		Long: `Creates the data directory with a database, a workspace and the owner's token, as the first start of
the server does. It also writes a reeve.yaml with every setting commented out.`,
		Example: "  reeve init --dir ./data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serverConfig("", cmd, host.Config{})
			if err != nil {
				return err
			}
			dir, installed, err := host.Init(cmd.Context(), cfg, sample)
			switch {
			case err != nil:
				return err
			case sample && !installed:
				a.notef("the sample was not installed, because there are agents already")
			}
			return a.printDone("created %s; edit reeve.yaml there, then run reeve serve", dir)
		},
	}
	c.Flags().BoolVar(&sample, "sample", false,
		"install a sample mailbox and an automation that sorts it, unless an agent was ever created")
	return c
}

func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
