package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/host"
	"reeve/internal/store"
)

// serveCommand returns the command that starts a server.
func serveCommand() *cobra.Command {
	var file string
	var flags host.Config
	var sample bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the server",
		Long: `Starts the server. Flags override REEVE_* environment variables, which override reeve.yaml.

The first SIGINT or SIGTERM stops the server, which waits a limited time for running calls. A second
signal ends it at once.`,
		Example: "  reeve serve\n  reeve serve --listen 127.0.0.1:8080 --dir ./data\n  " +
			"REEVE_DATABASE=postgres://reeve@db/reeve reeve serve",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serverConfig(file, cmd, flags)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, sample, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "config file (default: reeve.yaml in the data directory, if it exists)")
	f.StringVar(&flags.Listen, "listen", "", "address to listen on (default 127.0.0.1:7410)")
	f.StringVar(&flags.Database, "database", "", "postgres:// URL (default: SQLite in the data directory)")
	f.BoolVar(&sample, "sample", false,
		"install a sample mailbox and an automation that sorts it, unless an agent was ever created")
	f.BoolVar(&flags.Held, "held", false, "start held, as after a restore: run and change nothing until reeve resume")
	f.StringSliceVar(&flags.HTTPAllow, "http-allow", nil,
		"private host, host:port or CIDR that HTTP tools may access; can be repeated")
	return cmd
}

// serverConfig merges the config file, the environment and the flags, in this order.
func serverConfig(file string, cmd *cobra.Command, flags host.Config) (cfg host.Config, err error) {
	dir, _ := cmd.Flags().GetString("dir")
	if file == "" {
		base := dir
		if base == "" {
			base = os.Getenv("REEVE_DIR")
		}
		if base == "" {
			base = host.DefaultDir()
		}
		if candidate := filepath.Join(base, "reeve.yaml"); fileExists(candidate) {
			file = candidate
		}
	}
	if file != "" {
		if cfg, err = host.LoadConfig(file); err != nil {
			return cfg, err
		}
	}
	if err := cfg.FromEnv(os.LookupEnv); err != nil {
		return cfg, err
	}
	if dir != "" {
		cfg.Dir = dir
	}
	if flags.Listen != "" {
		cfg.Listen = flags.Listen
	}
	if flags.Database != "" {
		cfg.Database = flags.Database
	}
	if flags.HTTPAllow != nil {
		cfg.HTTPAllow = flags.HTTPAllow
	}
	cfg.Held = cfg.Held || flags.Held
	cfg.OnFault, err = parseFault(os.Getenv("REEVE_FAULT"))
	return cfg, err
}

// serve runs a server until ctx is done. It prints the server's address to out when the server is ready.
func serve(ctx context.Context, cfg host.Config, sample bool, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		host.TuneGarbageCollector()
	}
	h, err := host.New(ctx, cfg)
	if err != nil {
		return err
	}
	next := "reeve tools, reeve agents create NAME, reeve call NAME TOOL"
	if sample {
		installed, err := h.InstallSample(ctx)
		if err != nil {
			return errors.Join(err, h.Close())
		}
		if installed {
			next = "reeve automations run " + host.SampleName + " --plan"
		}
	}
	return h.Run(ctx, func(url string) {
		note := ""
		if h.TokenRenewed() {
			note = " (new: the previous token is not valid in this database)"
		}
		if hold, err := h.Hold(ctx); err == nil && hold != nil {
			next = "HELD: " + hold.Reason + "; list the work with reeve held, then run reeve resume"
		}
		fmt.Fprintf(out, "Reeve %s is ready at %s\n", host.Version, url)
		switch path, err := h.NewConsoleLink(ctx); {
		case err != nil:
			fmt.Fprintf(out, "  console  %s (get a sign-in link with reeve console link)\n", url)
		case path != "":
			fmt.Fprintf(out, "  console  %s%s (works once, for 15 minutes)\n", url, path)
		}
		fmt.Fprintf(out, "  docs     %s/docs\n  token    %s%s\n  next     %s\n", url,
			filepath.Join(h.Dir(), "owner.token"), note, next)
		releaseStartupMemory()
	})
}

// parseFault parses REEVE_FAULT, with which crash tests kill the process: commit:N:before or commit:N:after kills it
// before or after its N-th commit.
func parseFault(spec string) (hook store.CommitHook, err error) {
	if spec == "" {
		return hook, nil
	}
	parts := strings.Split(spec, ":")
	n := 0
	if len(parts) == 3 {
		n, err = strconv.Atoi(parts[1])
	}
	if len(parts) != 3 || parts[0] != "commit" || err != nil || n < 1 || (parts[2] != "before" && parts[2] != "after") {
		return hook, reeve.Errorf(reeve.Validation, "REEVE_FAULT %q is invalid", spec).
			Hintf("use commit:N:before or commit:N:after")
	}
	var count atomic.Int64 // connections to PostgreSQL commit in parallel
	kill := func() {
		if count.Add(1) == int64(n) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	}
	if parts[2] == "before" {
		hook.OnBefore = kill
	} else {
		hook.OnAfter = kill
	}
	return hook, nil
}
