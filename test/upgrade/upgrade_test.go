// Package upgrade opens databases of earlier versions with the current Reeve.
//
// testdata holds one backup per schema version and engine, made by the Reeve that introduced that version. Each schema
// change adds a migration and, with -keep, a new pair of backups. The old pairs stay.
package upgrade

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

var keep = flag.Bool("keep", false, "write backups of a database of the current schema version to testdata")

// version is the schema version of the newest backups in testdata.
const version = "101"

// secretKey seals the secrets in the backups.
var secretKey = strings.Repeat("ab", 32)

type object = map[string]any

func TestEarlierDatabasesCanBeUpgraded(t *testing.T) {
	if *keep {
		writeBackups(t)
	}
	files, err := filepath.Glob("testdata/*.backup")
	if err != nil || len(files) < 2 {
		t.Fatalf("backups to open: %v, %v; want one for each engine", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".backup"), func(t *testing.T) {
			t.Parallel()
			checkContents(t, restoreAndStart(t, file))
		})
	}
}

// writeBackups writes a backup of each engine.
func writeBackups(t *testing.T) {
	for name, database := range map[string]string{"sqlite": "", "postgres": storetest.PostgresURL(t)} {
		cfg := config(t)
		cfg.Database = database
		h := reevetest.StartWith(t, cfg)
		fillDatabase(t, h)
		file := filepath.Join("testdata", "v"+version+"-"+name+".backup")
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := h.Backup(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		h.Stop()
	}
}

// config returns the settings under which backups are made and opened.
func config(t *testing.T) host.Config {
	return host.Config{Dir: t.TempDir(), SecretKey: secretKey}
}

// fillDatabase puts rows of every kind that a user would miss into a database, through the API.
func fillDatabase(t *testing.T, h *reevetest.Host) {
	if _, err := h.InstallSample(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/triage/runs", object{})
	h.RunUntilIdle(t.Context())

	h.Agent("clerk", "file_write", "file_read", "write_file")
	h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/LAMP", object{"value": "a lamp in the window"})
	h.Call("clerk", "file_write", object{"path": "/shared/done.txt", "content": "written before the upgrade"},
		"Idempotency-Key", "done")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/clerk",
		object{"policy": object{"tools": object{"file_write": "ask", "write_file": "propose"}}})
	h.Call("clerk", "file_write", object{"path": "/shared/asked.txt", "content": "approved after the upgrade"})
	h.Call("clerk", "write_file", object{"path": "proposed.txt", "content": "accepted after the upgrade"})

	h.Want(http.StatusCreated, nil, "POST", "/api/schedules", object{"agent": "clerk", "name": "yearly",
		"goal": "look back", "cadence_type": "cron", "cadence_value": "0 9 1 1 *"})
	h.Want(http.StatusCreated, nil, "POST", "/api/notes", object{"content": "prefers short letters"})
	var category reeve.Category
	h.Want(http.StatusCreated, &category, "POST", "/api/journal/categories", object{"name": "home"})
	h.Want(http.StatusCreated, nil, "POST", "/api/journal/tasks",
		object{"title": "mend the roof", "category_id": category.ID})
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations", object{"agent": "clerk", "title": "before"})
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/turns", object{"content": "hello"})
	h.RunUntilIdle(t.Context())
}

// restoreAndStart restores a backup as an operator does and starts a server on it.
func restoreAndStart(t *testing.T, file string) *reevetest.Host {
	t.Helper()
	cfg := config(t)
	if strings.HasSuffix(file, "-postgres.backup") {
		cfg.Database = storetest.EmptyPostgresURL(t)
		out, err := exec.CommandContext(t.Context(), "pg_restore", "--no-owner", "--exit-on-error",
			"--dbname="+cfg.Database, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	} else if _, err := host.Restore(t.Context(), cfg, file); err != nil {
		t.Fatal(err)
	}
	h := reevetest.StartWith(t, cfg)
	var held api.HoldReport
	h.Want(http.StatusOK, &held, "GET", "/api/hold", nil)
	if !held.Held {
		t.Fatal("a restored server is not held")
	}
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{})
	return h
}

// checkContents reads the rows that fillDatabase wrote, and finishes the work that it left open.
func checkContents(t *testing.T, h *reevetest.Host) {
	var report api.DoctorReport
	h.Want(http.StatusOK, &report, "GET", "/api/doctor", nil)
	for _, part := range report.Checks {
		if !part.OK && (part.Name == "database" || part.Name == "rows") {
			t.Errorf("doctor: %+v", part)
		}
	}
	var items reeve.ItemList
	h.Want(http.StatusOK, &items, "GET", "/api/automations/triage/items", nil)
	for _, item := range items.Items {
		if item.State != reeve.ItemDone {
			t.Errorf("item %s is %s: %s", item.ID, item.State, item.Message)
		}
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/triage/runs", object{})
	h.RunUntilIdle(t.Context())
	again := items
	h.Want(http.StatusOK, &again, "GET", "/api/automations/triage/items", nil)
	if items.Total == 0 || again.Total != items.Total {
		t.Errorf("%d items after another run, want %d", again.Total, items.Total)
	}

	var operations api.OperationList
	h.Want(http.StatusOK, &operations, "GET", "/api/operations?agent=clerk", nil)
	repeated := h.Call("clerk", "file_write",
		object{"path": "/shared/done.txt", "content": "written before the upgrade"}, "Idempotency-Key", "done")
	if !repeated.Replayed {
		t.Errorf("a call from before the upgrade is not replayed: %+v", repeated)
	}
	for _, o := range operations.Operations {
		var x reeve.Explanation
		h.Want(http.StatusOK, &x, "GET", "/api/calls/"+o.CallID+"/explanation", nil)
		if len(x.Steps) == 0 {
			t.Errorf("operation %s has no decision trace", o.ID)
		}
	}

	var inbox api.Inbox
	h.Want(http.StatusOK, &inbox, "GET", "/api/inbox", nil)
	if len(inbox.Approvals) != 1 || len(inbox.Proposals) != 1 {
		t.Fatalf("inbox: %d approvals, %d proposals; want one each", len(inbox.Approvals), len(inbox.Proposals))
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox.Approvals[0].ID+"/decision",
		object{"decision": "approve"})
	h.RunUntilIdle(t.Context())
	var done reeve.Operation
	h.Want(http.StatusOK, &done, "GET", "/api/operations/"+inbox.Approvals[0].OperationID, nil)
	// An approval does not cover a tool whose contract a later version changed. Such a call is denied.
	if done.State != reeve.Committed && done.State != reeve.DeniedOp {
		t.Errorf("the approved call is %s: %s", done.State, done.Message)
	}

	var schedules api.ScheduleList
	h.Want(http.StatusOK, &schedules, "GET", "/api/schedules", nil)
	if len(schedules.Schedules) != 1 || schedules.Schedules[0].NextAt == nil {
		t.Errorf("schedules: %+v", schedules.Schedules)
	}
	var notes api.NoteList
	h.Want(http.StatusOK, &notes, "GET", "/api/notes", nil)
	var tasks api.TaskList
	h.Want(http.StatusOK, &tasks, "GET", "/api/journal/tasks", nil)
	if len(notes.Notes) != 1 || len(tasks.Tasks) != 1 {
		t.Errorf("%d notes and %d tasks; want one each", len(notes.Notes), len(tasks.Tasks))
	}
	var conversations api.ConversationList
	h.Want(http.StatusOK, &conversations, "GET", "/api/conversations", nil)
	if len(conversations.Conversations) != 1 {
		t.Fatalf("conversations: %+v", conversations.Conversations)
	}
	var turn reeve.Turn
	at := "/api/conversations/" + conversations.Conversations[0].ID + "/turns"
	h.Want(http.StatusCreated, &turn, "POST", at, object{"content": "and now?"})
	h.RunUntilIdle(t.Context())
	var turns api.TurnList
	h.Want(http.StatusOK, &turns, "GET", at, nil)
	if len(turns.Turns) != 2 || turns.Turns[0].State != reeve.RunCompleted {
		t.Errorf("turns: %+v", turns.Turns)
	}
}
