package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmePolicyUpdatesKeepEarlierRules checks that each policy update in the README repeats the earlier rules,
// because an update replaces the whole policy.
func TestReadmePolicyUpdatesKeepEarlierRules(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`--policy (\w+)=\w+`)
	updates, set := 0, map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "reeve agents update coach --policy ") {
			continue
		}
		updates++
		now := map[string]bool{}
		for _, m := range rule.FindAllStringSubmatch(line, -1) {
			now[m[1]] = true
		}
		for tool := range set {
			if !now[tool] {
				t.Errorf("the rule for %s is dropped by %s", tool, line)
			}
		}
		set = now
	}
	if updates < 2 {
		t.Errorf("the README sets %d policies", updates)
	}
}

// TestReadmeCreatesNoPlanner checks that the README creates no agent of kind planner or maintainer, because such
// an agent would take over the script jobs of all automations.
func TestReadmeCreatesNoPlanner(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "reeve agents create gymcoach --kind coach") ||
		!strings.Contains(string(b), "reeve automations plan") {
		t.Error("the README has changed; check the kinds of the agents it creates")
	}
	for _, kind := range []string{"planner", "maintainer"} {
		if strings.Contains(string(b), "--kind "+kind) {
			t.Errorf("the README creates an agent of kind %s", kind)
		}
	}
}
