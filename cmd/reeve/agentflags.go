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

// agentFlags are the flags that describe an agent.
type agentFlags struct {
	kind       string
	lifecycle  string
	mode       string
	throttle   time.Duration
	categories []string
	policy     []string
	config     string
}

// register adds the flags to a command. lifecycles are the values that --lifecycle accepts, which depend on the
// command: an agent cannot be created as destroyed.
func (f *agentFlags) register(c *cobra.Command, lifecycles ...reeve.Lifecycle) {
	c.Flags().StringVar(&f.lifecycle, "lifecycle", "", joinOr(lifecycles))
	c.Flags().StringVar(&f.kind, "kind", "", "kind of agent, which selects its capability profile (see reeve profiles)")
	c.Flags().StringVar(&f.mode, "mode", "",
		"what may wake it: autonomous (all but chat), interactive (only a person) or hybrid (all)")
	c.Flags().DurationVar(&f.throttle, "throttle", 0,
		"minimum time between a run and the next one that a change or a timer starts, such as 30s")
	c.Flags().StringSliceVar(&f.categories, "category", nil,
		"name or id of a journal category it may access; can be repeated")
	c.Flags().StringArrayVar(&f.policy, "policy", nil,
		"TOOL=RULE or tier:TIER=RULE; RULE is allow, ask, propose or deny; can be repeated; "+
			"\"none\" removes the policy")
	c.Flags().StringVar(&f.config, "config", "", "settings of the agent, a JSON object")
	completeFlagValues(c, "lifecycle", lifecycles)
	completeFlagValues(c, "mode", []reeve.Mode{reeve.Autonomous, reeve.Interactive, reeve.Hybrid})
}

// joinOr formats two or more values as "a, b or c".
func joinOr[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = string(v)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// toRequest returns a request with only the flags that are set, so that an update leaves the other fields unchanged.
func (f *agentFlags) toRequest(c *cobra.Command) (r api.AgentRequest, err error) {
	isSet := c.Flags().Changed
	if isSet("kind") {
		r.Kind = &f.kind
	}
	if isSet("lifecycle") {
		l := reeve.Lifecycle(f.lifecycle)
		r.Lifecycle = &l
	}
	if isSet("mode") {
		m := reeve.Mode(f.mode)
		r.Mode = &m
	}
	if isSet("throttle") {
		if f.throttle < 0 || f.throttle%time.Millisecond != 0 {
			return r, usagef("--throttle must be a duration of whole milliseconds, such as 30s, and not negative")
		}
		ms := f.throttle.Milliseconds()
		r.ThrottleMS = &ms
	}
	if isSet("category") {
		if slices.Contains(f.categories, "") {
			return r, usagef("--category contains an empty name")
		}
		list := append([]string{}, f.categories...) // empty, not nil: an empty list removes all categories
		r.Categories = &list
	}
	if isSet("policy") {
		p, err := parsePolicy(f.policy)
		if err != nil {
			return r, err
		}
		r.Policy = &p
	}
	r.Config, err = parseObjectFlag("config", f.config)
	return r, err
}

// parsePolicy parses rules such as file_write=ask and tier:privileged=deny. The single rule "none" is an empty policy.
func parsePolicy(rules []string) (p reeve.Policy, err error) {
	if len(rules) == 1 && rules[0] == "none" {
		return p, nil
	}
	for _, rule := range rules {
		if rule == "" { // probably an unset shell variable
			return p, usagef("--policy is empty; to remove the policy, use --policy none")
		}
		subject, answer, ok := strings.Cut(rule, "=")
		if !ok || subject == "" || !slices.Contains([]reeve.PolicyAnswer{reeve.Allow, reeve.Ask, reeve.Propose,
			reeve.Deny}, reeve.PolicyAnswer(answer)) {
			return p, usagef("--policy must be TOOL=allow|ask|propose|deny or tier:TIER=allow|ask|propose|deny, not %q",
				rule)
		}
		tier, isTier := strings.CutPrefix(subject, "tier:")
		if isTier && !slices.Contains(reeve.Tiers(), reeve.Tier(tier)) {
			return p, usagef("--policy: unknown tier %q; use read_only, side_effecting or privileged", tier)
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

// formatPolicy formats a policy with one rule per line, in the syntax of --policy.
func formatPolicy(p reeve.Policy) string {
	var lines []string
	for _, t := range slices.Sorted(maps.Keys(p.Tools)) {
		lines = append(lines, t+"="+string(p.Tools[t]))
	}
	for _, t := range slices.Sorted(maps.Keys(p.Tiers)) {
		lines = append(lines, "tier:"+string(t)+"="+string(p.Tiers[t]))
	}
	return strings.Join(lines, "\n")
}
