package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
)

const (
	maxChangedEntities = 50                                   // entities that are recorded for one change
	maxChangedFields   = 40                                   // fields that are recorded for one entity
	MaxChangedValue    = 400                                  // bytes of a value that are shown
	maxStoredValue     = MaxChangedValue + reeve.RedactWindow // so that a secret at the end is recognised
)

const changeColumns = `change_id, entity_id, workspace_id, kind, title, category_id, owner, action, fields, agent_id,
	user_id, run_id, counter, created_at`

// changeRow is one row of the table changes: one entity of a change.
type changeRow struct {
	change  reeve.ChangeRecord // the record without its entities
	entity  reeve.EntityChange
	counter int64 // counter in the stamp of the change; 0 for a signal
}

func scanChange(r scanner) (v changeRow, err error) {
	defer wrapCorrupt("changes", &v.change.ID, &err)
	var workspace, fields string
	var created int64
	c, e := &v.change, &v.entity
	if err = r.Scan(&c.ID, &e.ID, &workspace, &e.Kind, &e.Title, &e.Category, &e.Owner, &e.Action, &fields, &c.AgentID,
		&c.UserID, &c.RunID, &v.counter, &created); err != nil {
		return v, err
	}
	c.CreatedAt = reeve.FromMillis(created)
	return v, decodeJSON("fields", fields, &e.Fields)
}

// ChangeAuthor identifies a change and who made it.
type ChangeAuthor struct {
	Workspace string
	Change    string // the operation or the derived id
	Agent     string
	User      string
	Run       string
}

// InsertEntityChanges records what a change did to entities, up to a maximum number. It belongs to the transaction of
// the change.
func (t QueueTx) InsertEntityChanges(ctx context.Context, by ChangeAuthor, list []reeve.EntityChange) error {
	if len(list) == 0 {
		return nil
	}
	stamp, err := t.tx.Stamp(ctx)
	if err != nil {
		return err
	}
	rows := make([][]any, min(len(list), maxChangedEntities))
	for i := range rows {
		rows[i] = changeValues(by, list[i], stamp.Counter, t.now)
	}
	return t.tx.insertRows(`INSERT INTO changes (`+changeColumns+`) VALUES (?)
		ON CONFLICT (change_id, entity_id) DO NOTHING`, rows, t.tx.execFunc(ctx))
}

func changeValues(by ChangeAuthor, e reeve.EntityChange, counter int64, now time.Time) []any {
	fields := ""
	if len(e.Fields) > 0 {
		fields = encodeJSONUnescaped(e.Fields)
	}
	return []any{by.Change, e.ID, by.Workspace, e.Kind, cutText(e.Title, maxStoredValue), e.Category, e.Owner,
		string(e.Action), fields, by.Agent, by.User, by.Run, counter,
		reeve.Millis(now)}
}

// PersonChangeID returns the id of the change that a person makes in this transaction. It is derived from this node's
// stamp, so it is the same on every node.
func (t QueueTx) PersonChangeID(ctx context.Context) (string, error) {
	stamp, err := t.tx.Stamp(ctx)
	return reeve.DeriveID("chg", stamp.Node, strconv.FormatInt(stamp.Counter, 10)), err
}

// InsertPersonChanges records what a person changes in this transaction.
func (t QueueTx) InsertPersonChanges(ctx context.Context, workspace, user string, list ...reeve.EntityChange) error {
	id, err := t.PersonChangeID(ctx)
	if err != nil {
		return err
	}
	return t.InsertEntityChanges(ctx, ChangeAuthor{Workspace: workspace, Change: id, User: user}, list)
}

// DiffEntity describes a change of an entity by its values before and after, which are structs or maps in the form of
// their JSON. A nil value means that the entity did not exist or no longer exists.
func DiffEntity(kind, id, title string, before, after any) (reeve.EntityChange, error) {
	e := reeve.EntityChange{Kind: kind, ID: id, Title: title, Action: reeve.EntityChanged}
	was, err := flattenFields(before)
	if err != nil {
		return e, err
	}
	is, err := flattenFields(after)
	if err != nil {
		return e, err
	}
	switch {
	case was == nil:
		e.Action = reeve.EntityCreated
	case is == nil:
		e.Action, was = reeve.EntityDeleted, nil // the title says what was deleted
	}
	e.Fields = diffFields(was, is)
	return e, nil
}

// diffFields returns the fields that differ, with their shortened values.
func diffFields(was, is map[string]string) map[string][2]string {
	fields := map[string][2]string{}
	names := slices.Sorted(maps.Keys(is))
	for name := range was {
		if _, ok := is[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if was[name] != is[name] && len(fields) < maxChangedFields {
			fields[name] = [2]string{cutText(was[name], maxStoredValue), cutText(is[name], maxStoredValue)}
		}
	}
	return fields
}

// bookkeepingFields are fields that say nothing about a change.
var bookkeepingFields = []string{"id", "kind", "workspace_id", "created_at", "updated_at", "next_run_at", "last_run_at"}

// flattenFields returns the fields of a value as texts. It divides the field config into its own fields.
func flattenFields(v any) (map[string]string, error) {
	if v == nil {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(encodeJSONUnescaped(v)), &fields); err != nil || fields == nil {
		return nil, err
	}
	out := map[string]string{}
	for name, raw := range fields {
		var config map[string]json.RawMessage
		switch {
		case slices.Contains(bookkeepingFields, name):
		case name == "config" && json.Unmarshal(raw, &config) == nil:
			for key, raw := range config {
				out[name+"."+key] = textOf(raw)
			}
		default:
			out[name] = textOf(raw)
		}
	}
	return out, nil
}

// textOf returns a JSON string without its quotes, and other values as they are.
func textOf(raw json.RawMessage) string {
	var s string
	if string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// cutText returns at most n bytes of a text, without an incomplete character at the end.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// ChangeFilter selects changes. Empty fields do not restrict the list.
type ChangeFilter struct {
	Entity string
	Before string // a change: only earlier ones
	Limit  int
}

// ListChanges returns a page of the recorded changes of a workspace, newest first.
func (s Queue) ListChanges(ctx context.Context, workspace string, f ChangeFilter) ([]reeve.ChangeRecord, error) {
	where, args := `workspace_id = $1`+indexCondition(f.Entity, `entity_id = `, `$2`), []any{workspace, f.Entity,
		f.Limit}
	if f.Before != "" {
		before, ok, err := queryOne(ctx, s.Snap, scanChange, `SELECT `+changeColumns+` FROM changes
			WHERE change_id = $1 AND workspace_id || '' = $2 LIMIT 1`, f.Before, workspace)
		if err != nil || !ok {
			return nil, orNotFound(err, "change", f.Before)
		}
		where += ` AND (created_at, counter, change_id) < (CAST($4 AS BIGINT), CAST($5 AS BIGINT), $6)`
		args = append(args, reeve.Millis(before.change.CreatedAt), before.counter, f.Before)
	}
	ids, err := queryAll(ctx, s.Snap, scanValue[string], `SELECT change_id FROM (SELECT DISTINCT created_at, counter,
		change_id FROM changes WHERE `+where+`) AS found ORDER BY created_at DESC, counter DESC, change_id DESC LIMIT $3`, args...)
	if err != nil {
		return nil, err
	}
	list, err := s.GetChanges(ctx, workspace, ids)
	order := map[string]int{}
	for i, id := range ids {
		order[id] = i
	}
	slices.SortFunc(list, func(a, b reeve.ChangeRecord) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	return list, err
}

// GetChanges returns the changes with the given ids, oldest first. It leaves out those that are unknown or belong to
// another workspace.
func (s Queue) GetChanges(ctx context.Context, workspace string, ids []string) ([]reeve.ChangeRecord, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	byID := map[string]*reeve.ChangeRecord{}
	find := func(id string) *reeve.ChangeRecord {
		if byID[id] == nil {
			byID[id] = &reeve.ChangeRecord{ID: id, Entities: []reeve.EntityChange{}}
		}
		return byID[id]
	}
	calls, err := queryIn(ctx, s.Snap, skipCorrupt(s.Snap, scanChangeCall, nil), `SELECT operation_id, agent_id, run_id,
		tool, request, created_at, private_to FROM calls WHERE operation_id IN (?) AND workspace_id || '' = $1`, ids,
		workspace)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		*find(c.ID) = c
	}
	hasDetails := map[string]bool{}
	rows, err := queryIn(ctx, s.Snap, skipCorrupt(s.Snap, scanChange, nil), `SELECT `+changeColumns+` FROM changes
		WHERE change_id IN (?) AND workspace_id || '' = $1`, ids, workspace)
	if err != nil {
		return nil, err
	}
	counters := map[string]int64{}
	for _, r := range rows {
		c := find(r.change.ID)
		counters[c.ID] = r.counter
		if c.CreatedAt.IsZero() {
			r.change.Entities = c.Entities
			*c = r.change
		}
		c.Entities, hasDetails[c.ID] = append(c.Entities, r.entity), true
	}
	// Entities without details, such as files, are known from the events. Some changes name no entity.
	events, err := queryIn(ctx, s.Snap, scanEvent, `SELECT operation_id, CASE WHEN class = 'id' THEN name ELSE '' END,
		agent_id, created_at FROM events WHERE operation_id IN (?) AND workspace_id || '' = $1`, ids, workspace)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		c := find(e.ID)
		if c.CreatedAt.IsZero() {
			c.AgentID, c.CreatedAt = e.AgentID, e.CreatedAt
		}
		if hasDetails[c.ID] || len(e.Entities) == 0 {
			continue // the others are only named, such as the category of a task
		}
		named := e.Entities[0]
		if isOwnSession(named.ID) {
			named.Kind, named.Owner = "session_file", c.UserID
		}
		if !slices.ContainsFunc(c.Entities, func(have reeve.EntityChange) bool { return have.ID == named.ID }) {
			c.Entities = append(c.Entities, named)
		}
	}
	list := make([]reeve.ChangeRecord, 0, len(byID))
	for _, c := range byID {
		slices.SortFunc(c.Entities, func(a, b reeve.EntityChange) int {
			return cmp.Or(
				cmp.Compare(len(b.Kind), 0)-cmp.Compare(len(a.Kind), 0), strings.Compare(a.ID, b.ID))
		})
		list = append(list, *c)
	}
	sortChanges(list, counters)
	return list, nil
}

// isOwnSession reports whether an entity is a file of a session that members do not share. It belongs to the user for
// whom it was written.
func isOwnSession(entity string) bool {
	_, session, ok := strings.Cut(entity, reeve.SessionThread("", ""))
	return ok && !strings.HasPrefix(session, reeve.SharedSessionPrefix) && !strings.HasPrefix(session,
		reeve.AutomationSession+"/")
}

// sortChanges sorts changes by age. Changes with a counter are in the order of their counters, because one transaction
// can begin before another and change an entity after it. The counters are by change.
func sortChanges(list []reeve.ChangeRecord, counters map[string]int64) {
	slices.SortFunc(list, func(a, b reeve.ChangeRecord) int { return cmp.Compare(counters[a.ID], counters[b.ID]) })
	at := map[string]time.Time{}
	var latest time.Time
	for _, c := range list {
		at[c.ID] = c.CreatedAt
		if counters[c.ID] > 0 && c.CreatedAt.Before(latest) {
			at[c.ID] = latest
		} else if counters[c.ID] > 0 {
			latest = c.CreatedAt
		}
	}
	slices.SortFunc(list, func(a, b reeve.ChangeRecord) int {
		return cmp.Or(at[a.ID].Compare(at[b.ID]), cmp.Compare(counters[a.ID], counters[b.ID]),
			strings.Compare(a.ID, b.ID))
	})
}

// scanChangeCall scans the operation that made a change.
func scanChangeCall(r scanner) (c reeve.ChangeRecord, err error) {
	defer wrapCorrupt("calls", &c.ID, &err)
	var request string
	var created int64
	if err = r.Scan(&c.ID, &c.AgentID, &c.RunID, &c.Tool, &request, &created, &c.PrivateTo); err != nil {
		return c, err
	}
	var info reeve.ActionInfo
	err = decodeJSON("request", request, &info)
	c.UserID, c.Reason, c.CreatedAt, c.Entities = info.User, info.Reason, reeve.FromMillis(created),
		[]reeve.EntityChange{}
	return c, err
}

// scanEvent scans an event of a change. The change has an entity if the event names one.
func scanEvent(r scanner) (c reeve.ChangeRecord, err error) {
	defer wrapCorrupt("events", &c.ID, &err)
	e := reeve.EntityChange{Action: reeve.EntityChanged}
	var created int64
	err = r.Scan(&c.ID, &e.ID, &c.AgentID, &created)
	c.CreatedAt = reeve.FromMillis(created)
	if e.ID != "" {
		c.Entities = []reeve.EntityChange{e}
	}
	return c, err
}

// DeleteExpiredChanges deletes up to n recorded entities of changes from before a time and returns their number.
func (t QueueTx) DeleteExpiredChanges(ctx context.Context, before time.Time, n int) (int64, error) {
	return t.tx.execCount(ctx, `DELETE FROM changes WHERE created_at < $1 AND (change_id, entity_id) IN (
		SELECT change_id, entity_id FROM changes WHERE created_at < $1 ORDER BY created_at LIMIT $2)`,
		reeve.Millis(before), n)
}

// HasExpiredChanges reports whether there is a row for DeleteExpiredChanges to delete.
func (s Queue) HasExpiredChanges(ctx context.Context, before time.Time) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string],
		`SELECT change_id FROM changes WHERE created_at < $1 ORDER BY created_at LIMIT 1`, reeve.Millis(before))
	return ok, err
}

// RedactChange returns a change without secrets and with shortened values.
func RedactChange(inv *reeve.Invocation, c reeve.ChangeRecord) reeve.ChangeRecord {
	show := func(text string) string {
		if len(text) > MaxChangedValue {
			return inv.RedactedHead(text, MaxChangedValue) + "…"
		}
		return inv.Redactor.Text(text)
	}
	list := slices.Clone(c.Entities)
	for i, e := range list {
		fields := map[string][2]string{}
		for name, v := range e.Fields {
			fields[show(name)] = [2]string{show(v[0]), show(v[1])}
		}
		list[i].Title, list[i].Fields = show(e.Title), fields
	}
	c.Entities, c.Reason = list, show(c.Reason)
	return c
}
