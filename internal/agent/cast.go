package agent

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// cast is the agents that speak in a conversation, by name.
type cast struct {
	self  string
	names map[string]string // by id
}

func newCast(self reeve.Agent) *cast {
	return &cast{self: self.ID, names: map[string]string{self.ID: self.Name}}
}

// name gives an agent's name. One that is gone goes by its id.
func (c *cast) name(ctx context.Context, s *store.Snap, id string) (string, error) {
	if name, ok := c.names[id]; ok {
		return name, nil
	}
	found, err := s.Agents().AgentsByID(ctx, []string{id})
	c.names[id] = id
	for _, a := range found {
		c.names[id] = a.Name
	}
	return c.names[id], err
}

// others lists the names of the others.
func (c *cast) others() (list []string) {
	for id, name := range c.names {
		if id != c.self {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// guest tells whether the agent speaks in a conversation that another leads.
func (v *turn) guest() bool {
	c := v.conversation()
	return c != "" && v.run.ThreadID != reeve.SessionThread(v.run.AgentID, c)
}

// marked puts before what is said who says it.
func marked(m model.Message, who string) model.Message {
	mark := "[" + who + "] "
	for i, p := range m.Parts {
		if p.Type == model.Text {
			m.Parts = slices.Clone(m.Parts)
			m.Parts[i].Text = mark + p.Text
			return m
		}
	}
	m.Parts = append([]model.Part{{Type: model.Text, Text: strings.TrimSpace(mark)}}, m.Parts...)
	return m
}

// overhears tells whether a turn is shown to this one's agent by its words only: another agent answered it, or asked
// for it.
func (v *turn) overhears(t TurnSnapshot, said reeve.MessageInfo) bool {
	return t.AgentID != v.run.AgentID || said.Agent != ""
}

// overheard is a turn that another agent answered, or asked for, as this one is told it: each side's words, and nothing
// of what was done for them. What the others say is spoken by the user's side, under their names; only what the agent
// itself said is its own. A turn that this one's agent asked for has nothing to show: its answer is the result of a
// call.
func (v *turn) overheard(ctx context.Context, s *store.Snap, people *cast, t TurnSnapshot, said model.Message,
	l *log) (TurnSnapshot, bool, error) {
	if l.info.Agent == v.run.AgentID {
		return t, false, nil
	}
	who, err := people.name(ctx, s, t.AgentID)
	if err != nil {
		return t, false, err
	}
	if l.info.Agent != "" {
		asker, err := people.name(ctx, s, l.info.Agent)
		if err != nil {
			return t, false, err
		}
		whom := who
		if t.AgentID == v.run.AgentID {
			whom = "you"
		}
		said = marked(said, asker+" asks "+whom)
	}
	t.Messages = []model.Message{said}
	for _, m := range l.moves {
		if text := m.answer.Text(); text != "" {
			t.Messages = append(t.Messages, t.spoken(v.run.AgentID, who, text))
		}
	}
	if len(t.Messages) == 1 && !t.open() {
		t.Messages = append(t.Messages, t.spoken(v.run.AgentID, who, "["+ending(t.State)+"]"))
	}
	return t, true, nil
}

// spoken is what a turn's agent said, as another, or itself, is told it.
func (t TurnSnapshot) spoken(to, name, text string) model.Message {
	if t.AgentID == to {
		return model.NewTextMessage(model.Assistant, text)
	}
	return marked(model.NewTextMessage(model.User, text), name)
}

// open tells whether a turn is still under way.
func (t TurnSnapshot) open() bool { return t.State != "" && !t.State.Final() }

// nest puts turns that a call of another began to where they were heard: before what that turn said last.
func nest(list []TurnSnapshot) []TurnSnapshot {
	var out []TurnSnapshot
	for _, t := range list {
		i := slices.IndexFunc(out, func(p TurnSnapshot) bool { return p.ID == t.ParentID })
		if i < 0 || t.ParentID == "" {
			out = append(out, t)
			continue
		}
		at := len(out[i].Messages)
		if !out[i].open() && at > 1 {
			at--
		}
		out[i].Messages = slices.Insert(slices.Clone(out[i].Messages), at, t.Messages...)
	}
	if out == nil {
		out = []TurnSnapshot{}
	}
	return out
}
