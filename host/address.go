package host

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"reeve"
)

// serverAddress is the content of the file in the data directory that tells CLI commands the address of the running
// server. The server keeps the file locked. An unlocked file was left behind by a server that was killed, and another
// program may use the address now.
type serverAddress struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// publishAddress writes the address file and locks it. The returned function removes it. It must be called while the
// server still listens, because the CLI sends the owner's token to that address.
func publishAddress(dir, url string) (remove func() error, err error) {
	b, err := json.Marshal(serverAddress{URL: url, PID: os.Getpid()})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, addressFile)
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(b)
	// The lock is free, because no other process opens the temporary name.
	if err := errors.Join(err, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(part, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		err := os.Remove(name)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, f.Close())
	}, nil
}

// Address returns the URL of the running server of a data directory. It fails with Unavailable if no server is running.
func Address(dir string) (url string, err error) {
	name := filepath.Join(dir, addressFile)
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", reeve.Errorf(reeve.Unavailable, "no Reeve server is running in %s", dir).
			Hintf("start one with: reeve serve; or set --url")
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "cannot read the address of the server: %w", err)
	}
	defer f.Close()
	var address serverAddress
	if err := json.NewDecoder(f).Decode(&address); err != nil || address.URL == "" {
		return "", reeve.Errorf(reeve.Unavailable, "%s does not contain an address", name).
			Hintf("restart the server, or set --url")
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return "", reeve.Errorf(reeve.Unavailable, "the server at %s with data directory %s is no longer running",
			address.URL, dir).
			Hintf("start it with: reeve serve; or set --url and --token")
	}
	return strings.TrimRight(address.URL, "/"), nil
}
