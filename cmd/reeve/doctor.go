package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func doctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the installation and suggest fixes", Args: cobra.NoArgs,
		Long: `Checks the address and token on this machine and the connection, then runs the checks of the server.
The exit code is 1 if a check fails.`,
		Example: "  reeve doctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := a.runChecks(cmd.Context())
			err := a.print(report, func(w io.Writer) { printChecks(w, report) })
			if err != nil {
				return err
			}
			for _, p := range report.Checks {
				if !p.OK {
					return exitError{exitFailed}
				}
			}
			return nil
		},
	}
}

// runChecks runs the checks of this machine, then those of the server. It stops at the first check without which the
// following ones cannot run.
func (a *app) runChecks(ctx context.Context) (report api.DoctorReport) {
	add := func(name, detail string, err error) bool {
		p := reeve.PartHealth{Name: name, OK: err == nil, Detail: detail}
		if err != nil {
			e := reeve.AsError(err)
			p.Detail, p.Hint = e.Message, e.Hint
		}
		report.Checks = append(report.Checks, p)
		return err == nil
	}
	at, err := a.resolveAddress()
	var c *client.Client
	if err == nil {
		c, err = client.New(client.Config{URL: at.url, Token: at.token, Workspace: at.workspace})
	}
	if !add("address", at.url+", workspace "+at.workspace, err) {
		return report
	}
	defer c.Close()
	if name := filepath.Join(at.dir, "owner.token"); fileExists(name) {
		add("owner's token", name+" is readable only by its owner", checkPrivate(name))
	}
	if !add("server", "ready", c.Server().CheckReady(ctx)) {
		return report
	}
	server, err := c.Server().Doctor(ctx)
	if owner, _ := readToken(at.dir); reeve.CodeOf(err) == reeve.Unauthenticated && owner != "" && owner == at.token {
		err = reeve.Errorf(reeve.Unauthenticated, "the token in %s is not valid on this server",
			filepath.Join(at.dir, "owner.token")).Hintf("restart the server, which creates a new token")
	}
	if add("access", "the server accepts your token", err) {
		report.Checks = append(report.Checks, server.Checks...)
	}
	return report
}

// checkPrivate fails if other users of this machine can access a file.
func checkPrivate(name string) error {
	s, err := os.Stat(name)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "%w", err)
	}
	if s.Mode()&(fs.ModePerm&0o077) != 0 {
		return reeve.Errorf(reeve.Forbidden, "%s is readable by other users (%v)", name, s.Mode().Perm()).
			Hintf("run chmod 600 %s, then create a new token", name)
	}
	return nil
}

func printChecks(w io.Writer, report api.DoctorReport) {
	for _, p := range report.Checks {
		mark := "ok  "
		if !p.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, sanitize(p.Name), oneLine(p.Detail))
		if p.Hint != "" {
			fmt.Fprintf(w, "      hint: %s\n", sanitize(p.Hint))
		}
	}
}
