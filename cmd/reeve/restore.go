package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/host"
)

// restoreCommand puts a backup in the place of a stopped server's database.
func restoreCommand(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in place of the database of a stopped server",
		Args: cobra.ExactArgs(1),
		Long: "Checks the backup, then puts it in place of the SQLite database in the data directory. The server " +
			"must not run. The replaced\n" +
			"database is kept beside it, as reeve.db.before-restore and the time. A backup of PostgreSQL is restored " +
			"into an\n" +
			"empty database, with pg_restore --no-owner --dbname=URL FILE; then start reeve serve --database URL.\n" +
			"A server on a restored database starts held: it does nothing until you have looked at reeve held and " +
			"say reeve resume.",
		Example: "  reeve restore reeve-monday.db --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return reeve.Errorf(reeve.Validation, "restoring replaces what has happened since the backup").
					Hintf("say --yes if you mean it; the replaced database is kept")
			}
			cfg, err := serverConfig("", cmd, host.Config{})
			if err != nil {
				return err
			}
			kept, err := host.Restore(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			a.note("the server will start held: reeve held lists what it would go on with, and reeve resume lets it")
			if kept == "" {
				return a.done("restored %s; there was no database before", args[0])
			}
			return a.done("restored %s; what it replaced is kept as %s", args[0], filepath.Base(kept))
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "replace the database")
	return c
}

// initCommand prepares a data directory without starting a server.
func initCommand(a *app) *cobra.Command {
	var sample bool
	c := &cobra.Command{
		Use: "init", Short: "Prepare a data directory: database, workspace, owner's token, and a config to edit",
		Args: cobra.NoArgs,
		Long: "Prepares the data directory as the first start of the server would, and writes a reeve.yaml with " +
			"every setting in it, commented out.",
		Example: "  reeve init --dir ./data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serverConfig("", cmd, host.Config{})
			if err != nil {
				return err
			}
			dir, put, err := host.Init(cmd.Context(), cfg, sample)
			switch {
			case err != nil:
				return err
			case sample && !put:
				a.note("there are agents already: the sample was left out")
			}
			return a.done("prepared %s; edit reeve.yaml there, then run reeve serve", dir)
		},
	}
	c.Flags().BoolVar(&sample, "sample", false,
		"put a sample mailbox and an automation that sorts it there, unless an agent was ever made")
	return c
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
