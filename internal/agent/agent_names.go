package agent

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// agentNames caches the names of the agents that speak in a conversation.
type agentNames struct {
	self  string
	names map[string]string // names by agent id
}

func newAgentNames(self reeve.Agent) *agentNames {
	return &agentNames{self: self.ID, names: map[string]string{self.ID: self.Name}}
}

// get returns an agent's name, or its id if the agent was deleted.
func (c *agentNames) get(ctx context.Context, s *store.Snap, id string) (string, error) {
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

// listOthers lists the names of the other agents, sorted.
func (c *agentNames) listOthers() (list []string) {
	for id, name := range c.names {
		if id != c.self {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// isGuest reports whether the agent speaks in a conversation that another agent leads.
func (v *runInfo) isGuest() bool {
	c := v.conversation()
	return c != "" && v.run.ThreadID != reeve.SessionThread(v.run.AgentID, c)
}

// addSpeaker puts the name of the speaker before a message's text.
func addSpeaker(m model.Message, who string) model.Message {
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

// showsWordsOnly reports whether the agent sees only the text of a turn, because another agent answered it or asked for
// it.
func (v *assembly) showsWordsOnly(t TurnSnapshot, said reeve.MessageInfo) bool {
	return t.AgentID != v.run.AgentID || said.Agent != ""
}

// wordsOnly returns a turn that another agent answered or asked for, with its text but without its calls. The text of
// other agents becomes user messages that begin with the agent's name. If this agent asked for the turn, wordsOnly
// returns false, because the answer of the turn is already the result of a call.
func (v *assembly) wordsOnly(ctx context.Context, s *store.Snap, people *agentNames, t TurnSnapshot, said model.Message,
	l *runLog) (TurnSnapshot, bool, error) {
	if l.info.Agent == v.run.AgentID {
		return t, false, nil
	}
	who, err := people.get(ctx, s, t.AgentID)
	if err != nil {
		return t, false, err
	}
	if l.info.Agent != "" {
		asker, err := people.get(ctx, s, l.info.Agent)
		if err != nil {
			return t, false, err
		}
		whom := who
		if t.AgentID == v.run.AgentID {
			whom = "you"
		}
		said = addSpeaker(said, asker+" asks "+whom)
	}
	t.Messages = []model.Message{said}
	for _, m := range l.answers {
		if text := m.answer.Text(); text != "" {
			t.Messages = append(t.Messages, t.agentMessage(v.run.AgentID, who, text))
		}
	}
	if len(t.Messages) == 1 && !t.isOpen() {
		t.Messages = append(t.Messages, t.agentMessage(v.run.AgentID, who, "["+describeEnd(t.State)+"]"))
	}
	return t, true, nil
}

// agentMessage returns a text of the turn's agent as a message of the request for the agent with id to.
func (t TurnSnapshot) agentMessage(to, name, text string) model.Message {
	if t.AgentID == to {
		return model.NewTextMessage(model.Assistant, text)
	}
	return addSpeaker(model.NewTextMessage(model.User, text), name)
}

// isOpen reports whether a turn is still in progress.
func (t TurnSnapshot) isOpen() bool { return t.State != "" && !t.State.IsFinal() }

// insertNestedTurns moves turns that a call of another turn began into that turn, before its last message.
func insertNestedTurns(list []TurnSnapshot) []TurnSnapshot {
	var out []TurnSnapshot
	for _, t := range list {
		i := slices.IndexFunc(out, func(p TurnSnapshot) bool { return p.ID == t.ParentID })
		if i < 0 || t.ParentID == "" {
			out = append(out, t)
			continue
		}
		at := len(out[i].Messages)
		if !out[i].isOpen() && at > 1 {
			at--
		}
		out[i].Messages = slices.Insert(slices.Clone(out[i].Messages), at, t.Messages...)
	}
	if out == nil {
		out = []TurnSnapshot{}
	}
	return out
}
