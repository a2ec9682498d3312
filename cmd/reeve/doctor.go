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
		Use: "doctor", Short: "Check that everything is well, and say what to do when it is not", Args: cobra.NoArgs,
		Long: "Checks what this machine can see, then has the server check its own parts. Exits with 1 when a " +
			"check fails.",
		Example: "  reeve doctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			up := a.checkUp(cmd.Context())
			err := a.print(up, func(w io.Writer) { printCheckUp(w, up) })
			if err != nil {
				return err
			}
			for _, p := range up.Checks {
				if !p.OK {
					return silent{exitFailed}
				}
			}
			return nil
		},
	}
}

// checkUp goes from here to the server's parts, and ends where it gets no further.
func (a *app) checkUp(ctx context.Context) (up api.DoctorReport) {
	add := func(name, detail string, err error) bool {
		p := reeve.PartHealth{Name: name, OK: err == nil, Detail: detail}
		if err != nil {
			e := reeve.AsError(err)
			p.Detail, p.Hint = e.Message, e.Hint
		}
		up.Checks = append(up.Checks, p)
		return err == nil
	}
	at, err := a.find()
	var c *client.Client
	if err == nil {
		c, err = client.New(client.Config{URL: at.url, Token: at.token, Workspace: at.workspace})
	}
	if !add("address", at.url+", workspace "+at.workspace, err) {
		return up
	}
	defer c.Close()
	if name := filepath.Join(at.dir, "owner.token"); exists(name) {
		add("owner's token", name+" is for its owner's eyes only", private(name))
	}
	if !add("server", "ready", c.Server().Ready(ctx)) {
		return up
	}
	theirs, err := c.Server().Doctor(ctx)
	if mine, _ := readToken(at.dir); reeve.CodeOf(err) == reeve.Unauthenticated && mine != "" && mine == at.token {
		err = reeve.Errorf(reeve.Unauthenticated, "the token in %s is not valid at this server",
			filepath.Join(at.dir, "owner.token")).Hintf("start the server again: it makes a new one")
	}
	if add("access", "the server knows your token", err) {
		up.Checks = append(up.Checks, theirs.Checks...)
	}
	return up
}

// private checks that nobody else on this machine can read a file.
func private(name string) error {
	s, err := os.Stat(name)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "%w", err)
	}
	if s.Mode()&(fs.ModePerm&0o077) != 0 {
		return reeve.Errorf(reeve.Forbidden, "%s can be read by others (%v)", name, s.Mode().Perm()).
			Hintf("chmod 600 %s, then make a new token", name)
	}
	return nil
}

func printCheckUp(w io.Writer, up api.DoctorReport) {
	for _, p := range up.Checks {
		mark := "ok  "
		if !p.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, plain(p.Name), oneLine(p.Detail))
		if p.Hint != "" {
			fmt.Fprintf(w, "      hint: %s\n", plain(p.Hint))
		}
	}
}
