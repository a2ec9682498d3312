package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reeve"
	"reeve/internal/httpapi"
	"reeve/internal/sandbox/confine"
	"reeve/internal/store"
)

// checkReady fails if the database does not respond.
func (h *Host) checkReady(ctx context.Context) error {
	if err := h.db.CheckPresent(); err != nil {
		return err
	}
	return h.db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().WorkspaceIDs(ctx)
		return err
	})
}

// checkHealth checks all parts of the server. For each it returns what is wrong and what to do.
func (h *Host) checkHealth(ctx context.Context) []reeve.PartHealth {
	return []reeve.PartHealth{h.checkDir(), h.checkDatabase(ctx), h.checkHold(ctx), h.checkRows(ctx),
		h.checkSummaries(ctx), h.checkSecrets(ctx), h.checkToken(ctx), h.checkClock(ctx),
		h.checkModels(), h.checkSandbox(), h.checkPython()}
}

func newPartHealth(name string, err error, okDetail, hint string) reeve.PartHealth {
	if err != nil {
		return reeve.PartHealth{Name: name, Detail: reeve.AsError(err).Message + errorDetail(err),
			Hint: cmp.Or(reeve.AsError(err).Hint, hint)}
	}
	return reeve.PartHealth{Name: name, OK: true, Detail: okDetail}
}

func errorDetail(err error) string {
	if reeve.CodeOf(err) == reeve.Internal {
		return ": " + err.Error()
	}
	return ""
}

func (h *Host) checkDir() reeve.PartHealth {
	err := checkFreeSpace(h.cfg.Dir)
	if err == nil {
		err = checkWritable(h.cfg.Dir)
	}
	return newPartHealth("data directory", err, h.cfg.Dir+" is writable", "check its permissions and free space")
}

// checkWritable writes a file to a directory and removes it. The file has the size of a typical call, because an empty
// file fits on a full disk, and because a quota shows only when it is exceeded.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, probePrefix)
	if errors.Is(err, os.ErrNotExist) {
		return reeve.Errorf(reeve.Unavailable,
			"%s does not exist: it was moved or removed while the server was running", dir).
			Hintf("move it back, or restart the server with --dir and the new location")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, callBytes))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

const (
	callBytes = 64 << 10 // size of the writes of one call to the database and its WAL
	// the WAL of SQLite grows to 16 MB before it is copied into the database, which may grow by as much
	minFreeBytes = 32 << 20
)

// checkFreeSpace fails if the disk of a file is so full that calls fail, or soon will. A small test write does not show
// this, because it may fit into the existing WAL of SQLite.
func checkFreeSpace(file string) error {
	free, isKnown := freeBytes(file)
	if !isKnown || free >= minFreeBytes {
		return nil
	}
	state := "nearly full"
	if free < callBytes {
		state = "full"
	}
	return reeve.Errorf(reeve.Unavailable,
		"the disk of %s is %s: %d kB are free, and calls that need more are refused", file, state, free>>10).
		Hintf("free some space or enlarge the disk; the server then continues without a restart")
}

func (h *Host) checkDatabase(ctx context.Context) reeve.PartHealth {
	start := reeve.Monotonic()
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.System().Heartbeat(ctx, h.services.gate.Process(), time.Hour) // a write
		return err
	})
	if err == nil && h.cfg.Database == "" {
		err = checkFreeSpace(filepath.Join(h.cfg.Dir, databaseFile))
	}
	part := newPartHealth("database", err, fmt.Sprintf("%s responds and is writable (%s)", h.db.Engine(),
		reeve.Since(start).
			Round(10*time.Microsecond)), "see the server's log")
	if h.hasPooler {
		part.Detail += "; the connection uses a pooler"
		if h.cfg.DirectDB == "" {
			part.Detail += ", so reeve backup requires database_direct, which is not set"
		}
	}
	if _, err := exec.LookPath("pg_dump"); err != nil && h.cfg.Database != "" {
		part.Detail += "; reeve backup does not work, because pg_dump is not in the server's PATH"
	}
	return part
}

// maxCorruptShown is the number of corrupt rows that checkRows lists.
const maxCorruptShown = 100

// checkRows reads every row of every table and lists the rows that cannot be decoded.
func (h *Host) checkRows(ctx context.Context) reeve.PartHealth {
	rows, err := h.db.CorruptRows(ctx)
	if err != nil {
		return newPartHealth("rows", err, "", "see the server's log")
	}
	var details []string
	for _, row := range rows[:min(len(rows), maxCorruptShown)] {
		details = append(details, row.Error())
	}
	if more := len(rows) - len(details); more > 0 {
		details = append(details, fmt.Sprintf("and %d more", more))
	}
	if len(details) == 0 {
		return reeve.PartHealth{Name: "rows", OK: true, Detail: "all rows of all tables are readable"}
	}
	return reeve.PartHealth{Name: "rows", Detail: strings.Join(details, "; "),
		Hint: "nothing was changed. Stop the server, copy the database, then correct or delete each row with sqlite3 " +
			"or psql, or restore a " +
			"backup with reeve restore; resume corrected schedules with reeve schedules resume. Everything that does " +
			"not need these rows still works"}
}

// checkSummaries reports summaries that failed for good.
func (h *Host) checkSummaries(ctx context.Context) reeve.PartHealth {
	failed := 0
	err := h.db.View(ctx, func(s *store.Snap) (err error) {
		failed, err = s.Chat().CountFailedSummaries(ctx)
		return err
	})
	if err == nil && failed > 0 {
		err = reeve.Errorf(reeve.Unavailable, "%d summaries of turns or runs failed", failed)
	}
	return newPartHealth("summaries", err, "none failed",
		"list them with reeve summaries list AGENT and try them again with reeve summaries retry AGENT SUMMARY")
}

// checkSecrets checks that the server's key decrypts all stored secrets. It does not if a lost key was generated again,
// or if servers with a common database have different keys.
func (h *Host) checkSecrets(ctx context.Context) reeve.PartHealth {
	if err := h.checkPrivate(keyFile); err != nil && h.cfg.SecretKey == "" {
		return newPartHealth("secrets", err, "",
			"run chmod 600 on the key file; if others may have read it together with the database or a backup, "+
				"replace all stored secrets")
	}
	total, undecryptable := 0, 0
	err := h.db.View(ctx, func(s *store.Snap) (err error) {
		total, undecryptable, err = s.Agents().CountSecrets(ctx)
		return err
	})
	if err == nil && undecryptable > 0 {
		err = reeve.Errorf(reeve.Unavailable, "%d of %d secrets cannot be decrypted with this server's key",
			undecryptable, total)
	}
	return newPartHealth("secrets", err, fmt.Sprintf("this server's key decrypts all %d", total),
		"start the server with the secret.key that encrypted them (servers with a common database need the same key), "+
			"or store the secrets again")
}

// checkPrivate fails if other users can read a file of the data directory. A missing file is fine.
func (h *Host) checkPrivate(name string) error {
	info, err := os.Stat(filepath.Join(h.cfg.Dir, name))
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return reeve.Errorf(reeve.Forbidden, "other users can read %s", name)
	}
	return nil
}

func (h *Host) checkToken(ctx context.Context) reeve.PartHealth {
	if err := h.checkPrivate(tokenFile); err != nil {
		return newPartHealth("tokens", err, "",
			"run chmod 600 on the token file; create a new token if others may have read it")
	}
	_, err := os.Stat(filepath.Join(h.cfg.Dir, tokenFile))
	text := ""
	if err == nil {
		text, _, err = readOwnerToken(h.cfg)
	}
	if err == nil {
		err = h.db.View(ctx, func(s *store.Snap) error {
			_, err := httpapi.VerifyToken(ctx, s, text)
			return err
		})
	}
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		err = reeve.Errorf(reeve.Unauthenticated, "the token in %s is not valid in this database", tokenFile)
	}
	return newPartHealth("tokens", err, "the owner's token is private and valid",
		"restart the server, which replaces a lost or invalid token")
}

func (h *Host) checkClock(context.Context) reeve.PartHealth {
	now := reeve.Now()
	if now.Year() < 2025 || reeve.Now().Before(now) {
		return reeve.PartHealth{Name: "clock", Detail: "the clock is wrong: it shows " + now.Format(time.RFC3339),
			Hint: "set the clock of the machine; timers and leases depend on it"}
	}
	return reeve.PartHealth{Name: "clock", OK: true, Detail: now.Format(time.RFC3339)}
}

// checkSandbox reports how this machine confines commands.
func (h *Host) checkSandbox() reeve.PartHealth {
	mode, reason := confine.Available()
	if mode == confine.Off {
		return reeve.PartHealth{Name: "sandbox", Detail: "shell_exec is off: " + reason,
			Hint: "see docs/shell.md for the requirements of confinement; everything else works without it"}
	}
	part := reeve.PartHealth{Name: "sandbox", OK: true, Detail: "commands are confined by " + reason}
	if mode == confine.Landlock {
		part.Hint = "this is sufficient; user namespaces would also hide the paths and processes of the machine, see " +
			"docs/shell.md"
	}
	if !confine.HasSmallWorker() {
		part.Detail += "; commands start slowly, because this binary was not built with make build"
	}
	if _, err := exec.LookPath("git"); err != nil {
		part.Detail += "; git is not installed, so agents cannot work on projects"
	}
	return part
}

func (h *Host) checkModels() reeve.PartHealth {
	if h.runs.models == nil {
		return newPartHealth("models", nil, "the program provides its own model", "")
	}
	detail := "the default model is " + h.runs.models.Default()
	if h.runs.models.Default() == "rehearsal" {
		detail = "no API key is set, so agents use the rehearsal model; set ANTHROPIC_API_KEY, OPENAI_API_KEY or " +
			"GEMINI_API_KEY to use a real model"
	}
	return newPartHealth("models", nil, detail, "")
}
