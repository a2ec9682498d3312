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

// serverAddress is what a running server leaves in its data directory for the commands on its machine. It keeps the
// file locked while it serves: one that nobody locks was left by a server that was killed, and whoever listens there
// now is somebody else.
type serverAddress struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// publishAddress leaves the address where the CLI looks for it, until the function it gives is called. That is called while
// the address is still ours: the CLI would send the owner's token to whoever has it next.
func publishAddress(dir, url string) (withdraw func() error, err error) {
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
	// nobody looks for it by this name
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

// Address is where the server of a data directory is to be found, while it runs.
func Address(dir string) (url string, err error) {
	name := filepath.Join(dir, addressFile)
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", reeve.Errorf(reeve.Unavailable, "no Reeve server has left its address in %s", dir).
			Hintf("start one with: reeve serve; or give --url")
	}
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "the server's address cannot be read: %w", err)
	}
	defer f.Close()
	var at serverAddress
	if err := json.NewDecoder(f).Decode(&at); err != nil || at.URL == "" {
		return "", reeve.Errorf(reeve.Unavailable, "%s holds no address", name).
			Hintf("start the server again, or give --url")
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return "", reeve.Errorf(reeve.Unavailable, "the server that left its address (%s) in %s does not run any more",
			at.URL, dir).
			Hintf("start it again with: reeve serve; or give --url and --token")
	}
	return strings.TrimRight(at.URL, "/"), nil
}
