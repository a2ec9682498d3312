//go:build amd64 || arm64

package confine

import (
	"context"
	"os"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine/cell"
)

// Available says how commands are held on this machine, and why not better. It finds out by trying, once.
func Available() (Mode, string) {
	if !served.Load() && carried() == "" {
		return Off, "this program does not call host.ServeWorker first in main, so it cannot start its own sandbox"
	}
	return found()
}

// levelVariable lets tests, and those who look for a fault, do with less than the machine has: landlock, or off.
const levelVariable = "REEVE_CONFINE"

var found = sync.OnceValues(func() (Mode, string) {
	level := Mode(os.Getenv(levelVariable))
	if level == Off {
		return Off, levelVariable + "=off"
	}
	if abi := cell.ABI(); abi < cell.LeastABI {
		return Off, "this kernel's Landlock is missing or too old (Linux 6.2 has what is needed); boot with " +
			"lsm=landlock,... if it is switched off"
	}
	err := error(reeve.Errorf(reeve.Unsupported, "%s=landlock", levelVariable))
	if level != Landlock {
		err = try(Namespaces)
	}
	if err == nil {
		return Namespaces, "user, mount, process and network namespaces, Landlock and seccomp"
	}
	weaker := try(Landlock)
	if weaker == nil {
		return Landlock, "Landlock and seccomp only: " + reason(err)
	}
	return Off, reason(err) + "; without namespaces: " + reason(weaker)
})

func reason(err error) string { return reeve.AsError(err).Message }

// try confines a process that does nothing: setting up is all that can fail.
func try(mode Mode) error {
	dir, err := os.MkdirTemp("", "reeve-confine-")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "there is no place for a trial: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = run(ctx, Command{Args: []string{cell.Trial}, Root: dir, Mode: mode}, Limits{}.withDefaults())
	return err
}
