package reeve

import (
	"slices"
	"time"
)

// ChangeAction is what a change did to an entity.
type ChangeAction string

// The change actions.
const (
	EntityCreated ChangeAction = "created"
	EntityChanged ChangeAction = "changed"
	EntityDeleted ChangeAction = "deleted"
)

// EntityChange is what one change did to one entity. Several changes of one entity can be merged into one; see Merge.
type EntityChange struct {
	Kind     string               `json:"kind,omitempty" doc:"task, checklist_item, agent, schedule and so on"`
	ID       string               `json:"id"`
	Title    string               `json:"title,omitempty"`
	Action   ChangeAction         `json:"action" enum:"created,changed,deleted"`
	Category string               `json:"category_id,omitempty"`
	Owner    string               `json:"owner,omitempty" doc:"User to whom a private entity belongs"`
	Fields   map[string][2]string `json:"fields,omitempty" doc:"Value before and after by field; empty for none"`
}

// Categories returns the categories that the entity was in before and after the change.
func (c EntityChange) Categories() []string {
	list := []string{c.Category}
	if moved, ok := c.Fields["category_id"]; ok {
		list = append(list, moved[:]...)
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(id string) bool { return id == "" })
}

// Merge adds a later change of the same entity. The fields then lead from the first value to the last. A field that has
// its first value again is left out.
func (c *EntityChange) Merge(later EntityChange) {
	fields := map[string][2]string{}
	for name, v := range c.Fields {
		fields[name] = v
	}
	for name, v := range later.Fields {
		if first, ok := fields[name]; ok {
			v[0] = first[0]
		}
		if fields[name] = v; v[0] == v[1] {
			delete(fields, name)
		}
	}
	c.Fields = fields
	if later.Title != "" {
		c.Title = later.Title
	}
	c.Category = later.Category
	if c.Action != EntityCreated || later.Action == EntityDeleted {
		c.Action = later.Action
	}
}

// ChangeRecord is the account of one change: who made it, why, and what it did to each entity.
type ChangeRecord struct {
	ID        string         `json:"id" doc:"Id of the operation that made the change; if there was none, an id of its own"`
	AgentID   string         `json:"agent_id,omitempty" doc:"Agent that made the change"`
	UserID    string         `json:"user_id,omitempty" doc:"Person who made it, or for whom the agent acted"`
	RunID     string         `json:"run_id,omitempty" doc:"Run in which the change was made"`
	Tool      string         `json:"tool,omitempty" doc:"Tool that made the change"`
	Reason    string         `json:"reason,omitempty" doc:"Reason that the caller gave"`
	Entities  []EntityChange `json:"entities"`
	CreatedAt time.Time      `json:"created_at"`

	PrivateTo string `json:"-"` // as in the operation
}

// PredicateTrial is the result of a predicate for one past change.
type PredicateTrial struct {
	Change ChangeRecord `json:"change"`
	Holds  bool         `json:"holds" doc:"The change would have woken the agent"`
	Why    string       `json:"why,omitempty" doc:"Why it would not have"`
}

// ChangeViewer is who looks at a change.
type ChangeViewer struct {
	User          string
	Categories    []string // for an agent: the categories that it may access
	AllCategories bool     // set for a person
	AllUsers      bool     // may see runs and schedules of all users; set for an owner
}

// privateKinds are the kinds of journal entries that only their user may see.
var privateKinds = []string{"time_entry", "day_plan", "plan_block", "rating"}

// VisibleTo returns the change with only the entities that a viewer may see, and the number of the others. Of a change
// that is private to another user it returns only the id and the time.
func (c ChangeRecord) VisibleTo(v ChangeViewer) (_ ChangeRecord, hidden int) {
	all := len(c.Entities)
	if c.PrivateTo != "" && c.PrivateTo != v.User && !v.AllUsers {
		return ChangeRecord{ID: c.ID, Entities: []EntityChange{}, CreatedAt: c.CreatedAt}, max(1, all)
	}
	c.Entities = slices.DeleteFunc(slices.Clone(c.Entities), func(e EntityChange) bool { return !v.canSee(e) })
	return c, all - len(c.Entities)
}

func (v ChangeViewer) canSee(e EntityChange) bool {
	if e.Owner != "" && e.Owner != v.User && (!v.AllUsers || slices.Contains(privateKinds, e.Kind)) {
		return false
	}
	if v.AllCategories {
		return true
	}
	if e.Kind == "" && IsID(e.ID) { // of an unknown category
		return false
	}
	return !slices.ContainsFunc(e.Categories(), func(id string) bool { return !slices.Contains(v.Categories, id) })
}
