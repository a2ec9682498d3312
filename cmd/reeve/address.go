package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"reeve"
	"reeve/client"
)

// address is where a server is, and who asks.
type address struct {
	url       string
	token     string
	workspace string
	dir       string
}

// serverFile is what a running server leaves in its data directory for the commands on its machine.
type serverFile struct {
	URL string `json:"url"`
}

// find works out the address: flags, then the environment, then the data directory.
func (a *app) find() (address, error) {
	first := func(flag, variable string) string {
		if flag != "" {
			return flag
		}
		return a.env(variable)
	}
	at := address{url: first(a.flags.url, "REEVE_URL"), token: first(a.flags.token, "REEVE_TOKEN"),
		workspace: first(a.flags.workspace, "REEVE_WORKSPACE"), dir: first(a.flags.dir, "REEVE_DIR")}
	if at.workspace == "" {
		at.workspace = "default"
	}
	if at.dir == "" {
		home, err := a.home()
		if err != nil && at.url == "" {
			return at, reeve.Errorf(reeve.Validation, "no home directory, so no data directory: %w", err).Hintf("give --url, or --dir")
		}
		at.dir = filepath.Join(home, ".reeve")
	}
	local, err := readServerFile(at.dir)
	if at.url == "" {
		if err != nil {
			return at, err
		}
		at.url = local
	}
	if at.token == "" && (at.url == local || loopback(at.url)) {
		// The owner's token of this machine's server is for that server alone: it is never sent elsewhere.
		at.token, err = readToken(at.dir)
		return at, err
	}
	return at, nil
}

// connect makes a client for the server that was found.
func (a *app) connect() (*client.Client, error) {
	at, err := a.find()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: at.url, Token: at.token, Workspace: at.workspace})
}

// with runs f with a client.
func (a *app) with(ctx context.Context, f func(context.Context, *client.Client) error) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(ctx, c)
}

func readServerFile(dir string) (string, error) {
	name := filepath.Join(dir, "server.json")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", reeve.Errorf(reeve.Unavailable, "no Reeve server has left its address in %s", dir).Hintf("start one with: reeve serve; or give --url")
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "the server's address cannot be read: %w", err)
	}
	var f serverFile
	if err := json.Unmarshal(b, &f); err != nil || f.URL == "" {
		return "", reeve.Errorf(reeve.Unavailable, "%s holds no address", name).Hintf("start the server again, or give --url")
	}
	return strings.TrimRight(f.URL, "/"), nil
}

// readToken gives no token when there is none: the server says what that means.
func readToken(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unauthenticated, "the owner's token cannot be read: %w", err).Hintf("give --token or REEVE_TOKEN")
	}
	return strings.TrimSpace(string(b)), nil
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
