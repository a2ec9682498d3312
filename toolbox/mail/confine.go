package mail

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// The ids of the tools that read mail. A confinement in the settings of one applies to both.
const (
	searchTool = "email_search"
	getTool    = "email_get"
)

// inboxSettings are the settings that both tools have.
type inboxSettings struct {
	DefaultInbox string `json:"default_inbox"`
	ConfineInbox bool   `json:"confine_inbox"`
}

// confinement lists the inboxes to which a call is confined: those of the agent and of everyone on whose behalf it
// acts. Nil means all inboxes.
type confinement []string

// findConfinement returns the confinement of a call. It reads the settings of both tools, so that an agent whose search
// is confined cannot read other inboxes by message id.
func (p *Pack) findConfinement(ctx context.Context, inv *reeve.Invocation, other string) (c confinement, err error) {
	configs := append([]json.RawMessage{inv.Config}, inv.DelegatorConfigs...)
	agents := []string{inv.Agent}
	for _, d := range inv.OnBehalfOf(false) {
		agents = append(agents, d.AgentID)
		if d.Rights != nil {
			configs = append(configs, d.Rights.Tools[other])
		}
	}
	if err := p.DB.View(ctx, func(s *store.Snap) error {
		for _, agent := range agents {
			config, err := s.Agents().AttachedConfig(ctx, agent, other)
			if err != nil {
				return err
			}
			configs = append(configs, config)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, config := range configs {
		var v inboxSettings
		if err := reeve.DecodeSettings("mail", config, &v); err != nil {
			return nil, err
		}
		if v.ConfineInbox && !slices.Contains(c, v.DefaultInbox) {
			c = append(c, v.DefaultInbox)
		}
	}
	return c, nil
}

// choose returns the inboxes that a call reads: those that who means, or all if who is empty, as far as the confinement
// permits. It returns none if who means none, and fails if the confinement excludes what who means. The error is the
// same whether other inboxes exist or not.
func (c confinement) choose(inboxes []store.Inbox, who string) ([]store.Inbox, error) {
	if c == nil {
		if who == "" {
			return inboxes, nil
		}
		return matchInboxes(inboxes, who), nil
	}
	var own []store.Inbox
	for _, i := range inboxes {
		if i.Name == c[0] && len(c) == 1 {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return nil, reeve.Errorf(reeve.Forbidden, "the agent is confined to inboxes that it cannot read: %s",
			strings.Join(c, " and ")).
			Hintf("the inbox was removed, or the agent acts for one with another inbox; an operator can change " +
				"default_inbox in the settings of the mail tools")
	}
	if who == "" {
		return own, nil
	}
	if own = matchInboxes(own, who); len(own) == 0 {
		return nil, reeve.Errorf(reeve.Forbidden, "the agent may read only the inbox %s, not %s", c[0], who).
			Hintf("leave out inbox_id; an operator can change confine_inbox in the settings of the mail tools")
	}
	return own, nil
}
