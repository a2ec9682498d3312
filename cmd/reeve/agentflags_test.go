package main

import (
	"testing"

	"reeve"
)

// TestPolicyNone checks that only the single rule "none" removes a policy, not an empty value.
func TestPolicyNone(t *testing.T) {
	if p, err := parsePolicy([]string{"none"}); err != nil || len(p.Tools)+len(p.Tiers) != 0 {
		t.Errorf("none: %+v, %v", p, err)
	}
	for _, rules := range [][]string{{""}, {"none", "read_file=ask"}, {"read_file=ask", ""}} {
		if p, err := parsePolicy(rules); err == nil {
			t.Errorf("%q: %+v", rules, p)
		}
	}
	if p, err := parsePolicy([]string{"read_file=ask"}); err != nil || p.Tools["read_file"] != reeve.Ask {
		t.Errorf("a rule: %+v, %v", p, err)
	}
}
