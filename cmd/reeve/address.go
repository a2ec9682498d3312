package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"reeve"
	"reeve/client"
	"reeve/host"
)

// address is where a server is, and who asks.
type address struct {
	url       string
	token     string
	workspace string
	dir       string
}

// find works out the address: flags, then the environment, then the data directory.
func (a *app) find() (address, error) {
	at := address{url: a.first(a.flags.url, "REEVE_URL"), token: a.first(a.flags.token, "REEVE_TOKEN"),
		workspace: a.first(a.flags.workspace, "REEVE_WORKSPACE")}
	if at.workspace == "" {
		at.workspace = "default"
	}
	var err error
	if at.dir, err = a.dataDir(); err != nil && at.url == "" {
		return at, err
	}
	local := ""
	if at.dir != "" {
		local, err = host.Address(at.dir)
	}
	switch {
	case at.url == "" && err != nil:
		return at, err
	case at.url == "":
		at.url = local
	case at.token == "":
		if at.url, err = own(at, local); err != nil {
			return at, err
		}
	}
	if at.token == "" {
		at.token, err = readToken(at.dir)
		return at, err
	}
	return at, nil
}

func (a *app) first(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return a.env(variable)
}

// dataDir is where a server on this machine keeps its things, if there is one.
func (a *app) dataDir() (string, error) {
	if dir := a.first(a.flags.dir, "REEVE_DIR"); dir != "" {
		return dir, nil
	}
	home, err := a.home()
	if err != nil {
		return "", reeve.Errorf(reeve.Validation, "no home directory, so no data directory: %w", err).
			Hintf("give --url and --token, or --dir")
	}
	return filepath.Join(home, ".reeve"), nil
}

// own refuses an address that was given without a token, unless it is that of the data directory's own server: the
// token there is its owner's, and whoever else gets it is the owner too. The address is given back as the server itself
// wrote it, since another program may listen where localhost leads.
func own(at address, local string) (string, error) {
	if _, err := client.New(client.Config{URL: at.url}); err != nil {
		return at.url, err // it is no address, which is what to say first
	}
	given, err := url.Parse(at.url)
	if err != nil {
		return at.url, err
	}
	theirs, err := url.Parse(local)
	switch {
	case local == "" || err != nil:
		return at.url, reeve.Errorf(reeve.Unauthenticated,
			"there is no token for %s: none was given, and the data directory %s does not say that it is the address "+
				"of its server", given.Redacted(), at.dir).
			Hintf("give --token or REEVE_TOKEN")
	case given.Scheme != theirs.Scheme || port(given) != port(theirs) || !sameHost(given.Hostname(), theirs.Hostname()):
		return at.url, reeve.Errorf(reeve.Unauthenticated,
			"there is no token for %s: none was given, and the one in %s is for its own server at %s alone",
			given.Redacted(), at.dir, local).
			Hintf("give --token or REEVE_TOKEN; to speak to the server at %s, leave out --url and REEVE_URL", local)
	}
	given.Host = theirs.Host
	return strings.TrimRight(given.String(), "/"), nil
}

// sameHost tells whether a name leads to where a server listens. One that listens on every address is on this machine's
// own ones too.
func sameHost(given, listens string) bool {
	if strings.EqualFold(given, listens) {
		return true
	}
	a, b := net.ParseIP(given), net.ParseIP(listens)
	local := strings.EqualFold(given, "localhost") || a.IsLoopback()
	switch {
	case b == nil:
		return false
	case b.IsUnspecified():
		return local || a.IsUnspecified()
	case a == nil:
		return local && b.IsLoopback()
	}
	return a.Equal(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
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

// readToken gives no token when there is none: the server says what that means.
func readToken(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unauthenticated, "the owner's token cannot be read: %w", err).
			Hintf("give --token or REEVE_TOKEN")
	}
	return strings.TrimSpace(string(b)), nil
}
