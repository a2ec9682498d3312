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

// ready tells whether the store answers.
func (h *Host) ready(ctx context.Context) error {
	if err := h.db.CheckPresent(); err != nil {
		return err
	}
	return h.db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().WorkspaceIDs(ctx)
		return err
	})
}

// doctor looks at each part and says what is wrong with it, and what to do.
func (h *Host) doctor(ctx context.Context) []reeve.PartHealth {
	return []reeve.PartHealth{h.checkDir(), h.checkDatabase(ctx), h.checkHold(ctx), h.checkRows(ctx),
		h.checkSecrets(ctx), h.checkToken(ctx), h.checkClock(ctx), h.checkModels(), h.checkSandbox(), h.checkPython()}
}

func health(name string, err error, good, hint string) reeve.PartHealth {
	if err != nil {
		return reeve.PartHealth{Name: name, Detail: reeve.AsError(err).Message + errorDetail(err),
			Hint: cmp.Or(reeve.AsError(err).Hint, hint)}
	}
	return reeve.PartHealth{Name: name, OK: true, Detail: good}
}

func errorDetail(err error) string {
	if reeve.CodeOf(err) == reeve.Internal {
		return ": " + err.Error()
	}
	return ""
}

func (h *Host) checkDir() reeve.PartHealth {
	err := scarce(h.cfg.Dir)
	if err == nil {
		err = probe(h.cfg.Dir)
	}
	return health("data directory", err, h.cfg.Dir+" can be written", "check its permissions and free space")
}

// probe writes a file to a directory, about as much as a call does, and removes it: a full disk takes an empty one, and
// a quota shows nowhere else.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, probeFile)
	if errors.Is(err, os.ErrNotExist) {
		return reeve.Errorf(reeve.Unavailable, "%s is not there: it was moved or removed while the server runs", dir).
			Hintf("put it back, or stop the server and start it with --dir and the place where it is now")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, oneCall))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

const (
	oneCall    = 64 << 10 // what a call may write to the database and its log
	enoughRoom = 32 << 20 // SQLite's log takes 16 MB before it is copied into the database, which may grow by as much
)

// scarce refuses a disk on which so little is left that calls are refused for it, or soon will be. A small write tells
// nothing of it: there may be room for that inside of SQLite's log.
func scarce(file string) error {
	left, known := room(file)
	if !known || left >= enoughRoom {
		return nil
	}
	how := "nearly full"
	if left < oneCall {
		how = "full"
	}
	return reeve.Errorf(reeve.Unavailable,
		"the disk that holds %s is %s: %d kB are left, and calls that need more are refused", file, how, left>>10).
		Hintf("free some space on it, or make it larger; the server goes on by itself")
}

func (h *Host) checkDatabase(ctx context.Context) reeve.PartHealth {
	start := reeve.Monotonic()
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.System().Heartbeat(ctx, h.parts.gate.Process(), time.Hour) // a real write
		return err
	})
	if err == nil && h.cfg.Database == "" {
		err = scarce(filepath.Join(h.cfg.Dir, databaseFile))
	}
	part := health("database", err, fmt.Sprintf("%s answers and can be written (%s)", h.db.Engine(), reeve.Since(start).
		Round(10*time.Microsecond)), "see the server's log")
	if h.pooler {
		part.Detail += "; it is reached through a connection pooler"
		if h.cfg.DirectDB == "" {
			part.Detail += ", so reeve backup needs database_direct, which is not set"
		}
	}
	if _, err := exec.LookPath("pg_dump"); err != nil && h.cfg.Database != "" {
		part.Detail += "; there is no pg_dump in the server's PATH, so it cannot be backed up with reeve backup"
	}
	return part
}

// corruptShown is how many rows the doctor names.
const corruptShown = 100

// checkRows reads every row of every table, and names those that cannot be decoded.
func (h *Host) checkRows(ctx context.Context) reeve.PartHealth {
	rows, err := h.db.CorruptRows(ctx)
	if err != nil {
		return health("rows", err, "", "see the server's log")
	}
	var said []string
	for _, row := range rows[:min(len(rows), corruptShown)] {
		said = append(said, row.Error())
	}
	if more := len(rows) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	if len(said) == 0 {
		return reeve.PartHealth{Name: "rows", OK: true, Detail: "every row of every table can be read"}
	}
	return reeve.PartHealth{Name: "rows", Detail: strings.Join(said, "; "),
		Hint: "nothing was changed. Stop the server, copy the database, then correct or delete each row with sqlite3 " +
			"or psql, or restore a " +
			"backup with reeve restore; resume corrected schedules with reeve schedules resume. What does not need " +
			"these rows goes on"}
}

// checkSecrets tells whether this server's key opens what is stored: a lost key was made anew, and servers that share a
// database may each have made one.
func (h *Host) checkSecrets(ctx context.Context) reeve.PartHealth {
	if err := h.private(keyFile); err != nil && h.cfg.SecretKey == "" {
		return health("secrets", err, "",
			"chmod 600 the key file; if others may have read it and the database, or a backup, replace what the "+
				"secrets open")
	}
	total, shut := 0, 0
	err := h.db.View(ctx, func(s *store.Snap) (err error) {
		total, shut, err = s.Agents().CountSecrets(ctx)
		return err
	})
	if err == nil && shut > 0 {
		err = reeve.Errorf(reeve.Unavailable, "%d of %d secrets cannot be opened with this server's key", shut, total)
	}
	return health("secrets", err, fmt.Sprintf("this server's key opens all %d", total),
		"start it with the secret.key they were stored with, which servers that share a database must have in "+
			"common, or store them again")
}

// private refuses a file of the data directory that others can read. One that is not there is fine.
func (h *Host) private(name string) error {
	info, err := os.Stat(filepath.Join(h.cfg.Dir, name))
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return reeve.Errorf(reeve.Forbidden, "others can read %s", name)
	}
	return nil
}

func (h *Host) checkToken(ctx context.Context) reeve.PartHealth {
	if err := h.private(tokenFile); err != nil {
		return health("tokens", err, "", "chmod 600 the token file; make a new token if others may have read it")
	}
	_, err := os.Stat(filepath.Join(h.cfg.Dir, tokenFile))
	text := ""
	if err == nil {
		text, _, err = ownerToken(h.cfg)
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
	return health("tokens", err, "the owner's token is private, and valid",
		"start the server again: it makes a new token in place of one that is lost or not valid")
}

func (h *Host) checkClock(context.Context) reeve.PartHealth {
	now := reeve.Now()
	if now.Year() < 2025 || reeve.Now().Before(now) {
		return reeve.PartHealth{Name: "clock", Detail: "the clock says " + now.Format(time.RFC3339),
			Hint: "set the clock; timers and leases depend on it"}
	}
	return reeve.PartHealth{Name: "clock", OK: true, Detail: now.Format(time.RFC3339)}
}

// checkSandbox says how this machine confines commands.
func (h *Host) checkSandbox() reeve.PartHealth {
	mode, reason := confine.Available()
	if mode == confine.Off {
		return reeve.PartHealth{Name: "sandbox", Detail: "shell_exec is off: " + reason,
			Hint: "docs/shell.md says what confinement needs; everything else works without"}
	}
	part := reeve.PartHealth{Name: "sandbox", OK: true, Detail: "commands are confined by " + reason}
	if mode == confine.Landlock {
		part.Hint = "it holds, but user namespaces would hide the machine's paths and processes too; docs/shell.md " +
			"says what they need"
	}
	if !confine.HasSmallWorker() {
		part.Detail += "; they start slowly, because this binary was not built with make build"
	}
	if _, err := exec.LookPath("git"); err != nil {
		part.Detail += "; there is no git, so agents cannot work on projects"
	}
	return part
}

func (h *Host) checkModels() reeve.PartHealth {
	if h.runs.models == nil {
		return health("models", nil, "the program brings its own", "")
	}
	detail := "agents are driven by " + h.runs.models.Default() + " unless they say otherwise"
	if h.runs.models.Default() == "rehearsal" {
		detail = "no key is set, so agents are driven by the rehearsal model, which needs none; set " +
			"ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY for a real one"
	}
	return health("models", nil, detail, "")
}
