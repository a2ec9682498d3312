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

// address says which server to use, and with which token and workspace.
type address struct {
	url       string
	token     string
	workspace string
	dir       string
}

// resolveAddress returns the address from the flags, then the environment, then the data directory.
func (a *app) resolveAddress() (address, error) {
	at := address{url: a.flagOrEnv(a.flags.url, "REEVE_URL"), token: a.flagOrEnv(a.flags.token, "REEVE_TOKEN"),
		workspace: a.flagOrEnv(a.flags.workspace, "REEVE_WORKSPACE")}
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
		if at.url, err = localServerURL(at, local); err != nil {
			return at, err
		}
	}
	if at.token == "" {
		at.token, err = readToken(at.dir)
		return at, err
	}
	return at, nil
}

// flagOrEnv returns the value of a flag, or of an environment variable if the flag is empty.
func (a *app) flagOrEnv(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return a.env(variable)
}

// dataDir returns the data directory of the server on this machine. The directory need not exist.
func (a *app) dataDir() (string, error) {
	if dir := a.flagOrEnv(a.flags.dir, "REEVE_DIR"); dir != "" {
		return dir, nil
	}
	home, err := a.home()
	if err != nil {
		return "", reeve.Errorf(reeve.Validation, "cannot find the data directory: %w", err).
			Hintf("set --url and --token, or --dir")
	}
	return filepath.Join(home, ".reeve"), nil
}

// localServerURL checks that at.url, for which no token is set, is the address of the data directory's own server,
// and fails otherwise: the owner's token gives full access, so it must not reach another server. It returns the URL
// with the host that the server itself wrote, because another program may listen on a different address of localhost.
func localServerURL(at address, local string) (string, error) {
	if _, err := client.New(client.Config{URL: at.url}); err != nil {
		return at.url, err // report an invalid address before a missing token
	}
	given, err := url.Parse(at.url)
	if err != nil {
		return at.url, err
	}
	theirs, err := url.Parse(local)
	switch {
	case local == "" || err != nil:
		return at.url, reeve.Errorf(reeve.Unauthenticated,
			"no token for %s: the token in %s is only for the server of that directory, whose address is unknown",
			given.Redacted(), at.dir).
			Hintf("set --token or REEVE_TOKEN")
	case given.Scheme != theirs.Scheme || port(given) != port(theirs) || !sameHost(given.Hostname(), theirs.Hostname()):
		return at.url, reeve.Errorf(reeve.Unauthenticated,
			"no token for %s: the token in %s is only for the server at %s", given.Redacted(), at.dir, local).
			Hintf("set --token or REEVE_TOKEN; to use the server at %s, unset --url and REEVE_URL", local)
	}
	given.Host = theirs.Host
	return strings.TrimRight(given.String(), "/"), nil
}

// sameHost reports whether the host given names an address on which the server listens. A server that listens on
// all addresses also listens on the loopback addresses.
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

// port returns the port of u, or the default port of its scheme.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// connect returns a client for the server at the resolved address.
func (a *app) connect() (*client.Client, error) {
	at, err := a.resolveAddress()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: at.url, Token: at.token, Workspace: at.workspace})
}

// withClient calls f with a client, and closes the client.
func (a *app) withClient(ctx context.Context, f func(context.Context, *client.Client) error) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(ctx, c)
}

// readToken returns the owner's token in a data directory. If there is no token file it returns an empty token, and
// the server refuses the request.
func readToken(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unauthenticated, "cannot read the owner's token: %w", err).
			Hintf("set --token or REEVE_TOKEN")
	}
	return strings.TrimSpace(string(b)), nil
}
