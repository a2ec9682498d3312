package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// keyedPost is a POST with an Idempotency-Key.
type keyedPost struct {
	name string // the key; later posts refer to the id in the response as {name}
	path string // {name} stands for the id of an earlier one
	body object // likewise
}

// keyedPosts returns POSTs of many kinds, each of which creates something named after the series.
func (r *rig) keyedPosts(series string) []keyedPost {
	agent := "/api/agents/" + series
	toolID := strings.ReplaceAll(series, "-", "_")
	farTool := r.newWitnessTool(toolID, "keyed", "side_effecting")
	return []keyedPost{
		{"agent", "/api/agents", object{"name": series, "policy": object{"tools": object{"write_file": "ask"}}}},
		{"tool", "/api/tools", farTool},
		{"attached", agent + "/tools", object{"tool_id": toolID}},
		{"attached too", agent + "/tools", object{"tool_id": "write_file"}},
		{"subscription", agent + "/subscriptions", object{"class": "key", "name": "TASK"}},
		{"schedule", "/api/schedules", object{"agent": series, "name": series, "cadence_type": "interval",
			"cadence_value": "200h"}},
		{"note", "/api/notes", object{"content": series}},
		{"token", "/api/tokens", object{"name": series, "user": series, "role": "viewer"}},
		{"workspace", "/api/workspaces", object{"id": series}},
		{"conversation", "/api/conversations", object{"agent": series, "title": series}},
		{"participant", "/api/conversations/{conversation}/participants", object{"kind": "user", "id": series}},
		{"category", "/api/journal/categories", object{"name": series}},
		{"label", "/api/journal/labels", object{"name": series}},
		{"task", "/api/journal/tasks", object{"category_id": "{category}", "title": series}},
		{"labelled", "/api/journal/tasks/{task}/labels", object{"add_label_ids": []string{"{label}"}}},
		{"checklist", "/api/journal/checklists", object{"task_id": "{task}", "title": series}},
		{"items", "/api/journal/checklists/{checklist}/items", object{"items": []object{{"title": series}}}},
		{"automation", "/api/automations", object{"name": series + "-auto", "source": "1"}},
		{"version", "/api/automations/" + series + "-auto/versions", object{"source": "2"}},
		{"paused", "/api/automations/" + series + "-auto/pause", nil},
		{"resumed", "/api/automations/" + series + "-auto/resume", nil},
		{"import", "/api/mail/imports", object{"source": series}},
		{"imported", "/api/mail/imports/{import}/finish", nil},
		{"call", agent + "/calls", object{"tool": "write_file", "session": series,
			"args": object{"path": effectFile, "content": series}}},
		{"approved", "/api/approvals/{call}/decision", object{"decision": "approve"}},
		{"stopped", "/api/stop", object{"agent": series}},
		{"started", "/api/resume", object{"agent": series}},
	}
}

// keyedRows counts what the POSTs of one series create. There must be one of each.
var keyedRows = map[string]string{
	"agents":        `SELECT count(*) FROM agents WHERE name LIKE 'keyed-%' AND name NOT LIKE '%-auto'`,
	"tools":         `SELECT count(*) FROM tools WHERE id LIKE 'keyed_%' AND workspace_id = 'default'`,
	"attachments":   `SELECT count(*) FROM agent_tools WHERE tool_id LIKE 'keyed_%'`,
	"subscriptions": `SELECT count(*) FROM subscriptions WHERE agent_id IN (SELECT id FROM agents WHERE name LIKE 'keyed-%')`,
	"schedules":     `SELECT count(*) FROM timers WHERE name LIKE 'keyed-%'`,
	"notes":         `SELECT count(*) FROM notes WHERE content LIKE 'keyed-%'`,
	"tokens":        `SELECT count(*) FROM access_tokens WHERE name LIKE 'keyed-%'`,
	"workspaces":    `SELECT count(*) FROM workspaces WHERE id LIKE 'keyed-%'`,
	"conversations": `SELECT count(*) FROM conversations WHERE title LIKE 'keyed-%'`,
	"participants":  `SELECT count(*) FROM participants WHERE id LIKE 'keyed-%'`,
	"categories":    `SELECT count(*) FROM categories WHERE name LIKE 'keyed-%'`,
	"labels":        `SELECT count(*) FROM labels WHERE name LIKE 'keyed-%'`,
	"tasks":         `SELECT count(*) FROM tasks WHERE title LIKE 'keyed-%'`,
	"checklists":    `SELECT count(*) FROM checklists WHERE title LIKE 'keyed-%'`,
	"items":         `SELECT count(*) FROM checklist_items WHERE title LIKE 'keyed-%'`,
	"automations":   `SELECT count(*) FROM automations`,
	"versions":      `SELECT count(*) FROM scripts WHERE major = 2`,
	"imports":       `SELECT count(*) FROM mail_imports WHERE source LIKE 'keyed-%'`,
	"approvals":     `SELECT count(*) FROM approvals WHERE state = 'approved'`,
	"answers":       `SELECT count(*) / 26 FROM requests WHERE status <> 0`, // all but the call, which the ledger keeps
}

// TestG30_KeysSurviveKills kills the real server at random moments while clients make POSTs of many kinds with
// Idempotency-Keys. An interrupted request is repeated with its key at the next server. Every request succeeds and
// creates one row.
func TestG30_KeysSurviveKills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		t.Run(e.name, func(t *testing.T) {
			w, err := e.newEmptyWorld()
			if err != nil {
				t.Fatal(err)
			}
			kills, patience := 12, 4*time.Minute
			if *crashFull {
				kills, patience = 400, 30*time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			series, cut, err := r.killDuringKeyedPosts(ctx, w, kills)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d series of POSTs, %d of them repeated", series, cut)
			if err := w.checkKeyedRows(ctx, series); err != nil {
				t.Error(err)
			}
		})
	}
}

// killDuringKeyedPosts kills servers while clients make series of POSTs. It returns the number of series and of
// repeated requests.
func (r *rig) killDuringKeyedPosts(ctx context.Context, w world, kills int) (series, cut int, err error) {
	last, err := r.serve(w)
	if err != nil {
		return 0, 0, err
	}
	defer func() { last.kill() }()
	var on currentServer
	on.set(last)
	var over atomic.Bool
	var made, repeated atomic.Int64
	var group sync.WaitGroup
	wrong := make([]error, clients)
	for i := range clients {
		group.Go(func() {
			for n := 0; wrong[i] == nil && (n == 0 || !over.Load()); n++ {
				made.Add(1)
				wrong[i] = r.postSeries(ctx, w, &on, fmt.Sprintf("keyed-%d-%d", i, n), &repeated)
			}
		})
	}
	for n := 0; n < kills && err == nil; n++ {
		if rand.N(4) > 0 {
			_ = last.waitUntilReady(ctx) // some die while they start, most while they serve
		}
		select {
		case <-time.After(rand.N(longest)):
		case <-ctx.Done():
		}
		last.kill()
		if err = w.forgetDeadServers(ctx); err == nil {
			last, err = r.serve(w)
		}
		if err == nil {
			on.set(last)
		}
	}
	over.Store(true)
	group.Wait()
	if err = errors.Join(err, errors.Join(wrong...)); err != nil {
		return 0, 0, fmt.Errorf("%w\nserver's log: %s", err, &last.log)
	}
	return int(made.Load()), int(repeated.Load()), last.stop()
}

// postSeries makes the POSTs of one series, each through as many servers as it takes.
func (r *rig) postSeries(ctx context.Context, w world, on *currentServer, series string, repeated *atomic.Int64) error {
	ids := map[string]string{}
	for _, post := range r.keyedPosts(series) {
		path, body := post.path, post.body
		for name, id := range ids {
			path = strings.ReplaceAll(path, "{"+name+"}", id)
		}
		body = replaceNames(body, ids)
		for {
			p, next := on.get()
			err := p.waitUntilReady(ctx)
			var made struct {
				ID         string `json:"id"`
				ApprovalID string `json:"approval_id"`
			}
			into := any(&made)
			if post.name == "stopped" || post.name == "started" {
				into = nil // they say nothing
			}
			if err == nil {
				var c caller
				if c, err = w.owner(p, unlimited); err == nil {
					err = c.do(ctx, "POST", path, body, into, "Idempotency-Key", series+" "+post.name)
				}
			}
			if post.name == "token" && hasStatus(err, http.StatusConflict) &&
				strings.Contains(err.Error(), "shown only once") {
				err = nil // it was made, and is there; which is counted in the end
			}
			if err == nil {
				ids[post.name] = made.ID + made.ApprovalID
				break
			}
			if !errors.Is(err, errGone) {
				return fmt.Errorf("%s, %s: %w", series, post.name, err)
			}
			repeated.Add(1)
			select {
			case <-next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// replaceNames replaces names by ids.
func replaceNames(body object, ids map[string]string) object {
	put := func(s string) string {
		for name, id := range ids {
			s = strings.ReplaceAll(s, "{"+name+"}", id)
		}
		return s
	}
	out := object{}
	for k, v := range body {
		switch v := v.(type) {
		case string:
			out[k] = put(v)
		case []string:
			list := []string{}
			for _, s := range v {
				list = append(list, put(s))
			}
			out[k] = list
		default:
			out[k] = v
		}
	}
	return out
}

// checkKeyedRows checks that each POST of each series has created one row.
func (w world) checkKeyedRows(ctx context.Context, series int) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	for what, query := range keyedRows {
		var n int
		if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil || n != series {
			wrong = append(wrong, fmt.Errorf("%d %s instead of %d (%v)", n, what, series, err))
		}
	}
	return errors.Join(wrong...)
}
