package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
)

// agentFlags describe an agent on the command line.
type agentFlags struct {
	kind       string
	lifecycle  string
	mode       string
	throttle   time.Duration
	categories []string
	policy     []string
	config     string
}

// add gives a command the flags. Which lives an agent can be given is the command's own: it is not made as one that is
// over.
func (f *agentFlags) add(c *cobra.Command, lives ...reeve.Lifecycle) {
	c.Flags().StringVar(&f.lifecycle, "lifecycle", "", alternatives(lives))
	c.Flags().StringVar(&f.kind, "kind", "", "chooses the capability profile")
	c.Flags().StringVar(&f.mode, "mode", "",
		"who may wake it: autonomous (itself), interactive (a person) or hybrid (both)")
	c.Flags().DurationVar(&f.throttle, "throttle", 0,
		"how long after a run changes and timers wait before they wake it again, such as 30s")
	c.Flags().StringSliceVar(&f.categories, "category", nil, "a category it may touch, by name or id; repeat for more")
	c.Flags().StringArrayVar(&f.policy, "policy", nil,
		"TOOL=allow|ask|propose|deny or tier:TIER=allow|ask|propose|deny; repeat for more; none alone removes the "+
			"policy")
	c.Flags().StringVar(&f.config, "config", "", "settings, a JSON object")
	fixed(c, "lifecycle", lives)
	fixed(c, "mode", []reeve.Mode{reeve.Autonomous, reeve.Interactive, reeve.Hybrid})
}

// alternatives writes a choice as a person would: a, b or c.
func alternatives[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = string(v)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// request holds only what was given, so that an update leaves the rest.
func (f *agentFlags) request(c *cobra.Command) (r api.AgentRequest, err error) {
	given := c.Flags().Changed
	if given("kind") {
		r.Kind = &f.kind
	}
	if given("lifecycle") {
		l := reeve.Lifecycle(f.lifecycle)
		r.Lifecycle = &l
	}
	if given("mode") {
		m := reeve.Mode(f.mode)
		r.Mode = &m
	}
	if given("throttle") {
		if f.throttle < 0 || f.throttle%time.Millisecond != 0 {
			return r, usagef("--throttle takes whole milliseconds, never negative, such as 30s")
		}
		ms := f.throttle.Milliseconds()
		r.ThrottleMS = &ms
	}
	if given("category") {
		if slices.Contains(f.categories, "") {
			return r, usagef("--category has an empty name in its list")
		}
		list := append([]string{}, f.categories...) // an empty list, and not none
		r.Categories = &list
	}
	if given("policy") {
		p, err := parsePolicy(f.policy)
		if err != nil {
			return r, err
		}
		r.Policy = &p
	}
	r.Config, err = object("config", f.config)
	return r, err
}

// parsePolicy reads rules such as file_write=ask and tier:privileged=deny, or none.
func parsePolicy(rules []string) (p reeve.Policy, err error) {
	if len(rules) == 1 && rules[0] == "none" {
		return p, nil
	}
	for _, rule := range rules {
		if rule == "" { // as from a variable that is not set
			return p, usagef("--policy is empty; nothing was changed: to remove the whole policy, say --policy none")
		}
		subject, answer, ok := strings.Cut(rule, "=")
		if !ok || subject == "" || !slices.Contains([]reeve.PolicyAnswer{reeve.Allow, reeve.Ask, reeve.Propose,
			reeve.Deny}, reeve.PolicyAnswer(answer)) {
			return p, usagef("--policy takes TOOL=allow|ask|propose|deny or tier:TIER=allow|ask|propose|deny, not %q",
				rule)
		}
		tier, isTier := strings.CutPrefix(subject, "tier:")
		if isTier && !slices.Contains(reeve.Tiers(), reeve.Tier(tier)) {
			return p, usagef("--policy: %q is not a tier; there are read_only, side_effecting and privileged", tier)
		}
		if isTier {
			if p.Tiers == nil {
				p.Tiers = map[reeve.Tier]reeve.PolicyAnswer{}
			}
			p.Tiers[reeve.Tier(tier)] = reeve.PolicyAnswer(answer)
			continue
		}
		if p.Tools == nil {
			p.Tools = map[string]reeve.PolicyAnswer{}
		}
		p.Tools[subject] = reeve.PolicyAnswer(answer)
	}
	return p, nil
}

// policyLines writes a policy as its flags are written.
func policyLines(p reeve.Policy) string {
	var lines []string
	for _, t := range slices.Sorted(maps.Keys(p.Tools)) {
		lines = append(lines, t+"="+string(p.Tools[t]))
	}
	for _, t := range slices.Sorted(maps.Keys(p.Tiers)) {
		lines = append(lines, "tier:"+string(t)+"="+string(p.Tiers[t]))
	}
	return strings.Join(lines, "\n")
}
