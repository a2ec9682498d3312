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

// Available returns the strongest mode that this machine supports, and a description or the reason why a stronger mode
// is not supported. The first call tries the modes; later calls return the same answer.
func Available() (Mode, string) {
	if !servesSandbox.Load() && smallWorkerPath() == "" {
		return Off, "this program does not call host.ServeWorker at the start of main, so it cannot start a sandbox"
	}
	return detectMode()
}

// levelVariable is an environment variable that selects a weaker mode, landlock or off, for tests and diagnosis.
const levelVariable = "REEVE_CONFINE"

var detectMode = sync.OnceValues(func() (Mode, string) {
	level := Mode(os.Getenv(levelVariable))
	if level == Off {
		return Off, levelVariable + "=off"
	}
	if abi := cell.ABI(); abi < cell.LeastABI {
		return Off, "Landlock is disabled or too old; use Linux 6.2 or later, and boot with lsm=landlock,... " +
			"if it is disabled"
	}
	err := error(reeve.Errorf(reeve.Unsupported, "%s=landlock", levelVariable))
	if level != Landlock {
		err = tryMode(Namespaces)
	}
	if err == nil {
		return Namespaces, "user, mount, process and network namespaces, Landlock and seccomp"
	}
	weaker := tryMode(Landlock)
	if weaker == nil {
		return Landlock, "Landlock and seccomp only: " + errorMessage(err)
	}
	return Off, errorMessage(err) + "; without namespaces: " + errorMessage(weaker)
})

func errorMessage(err error) string { return reeve.AsError(err).Message }

// tryMode runs a command that does nothing, and returns the error if the sandbox cannot be set up.
func tryMode(mode Mode) error {
	dir, err := os.MkdirTemp("", "reeve-confine-")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot create a folder to test confinement: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = run(ctx, Command{Args: []string{cell.Trial}, Root: dir, Mode: mode}, Limits{}.withDefaults())
	return err
}
