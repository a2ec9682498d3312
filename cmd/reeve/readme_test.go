package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// An update of a policy replaces all of it, so each one that the README's walk makes repeats the rules that were set
// before.
func TestReadmeKeepsThePolicyItSet(t *testing.T) {
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
		t.Errorf("the walk sets %d policies", updates)
	}
}

// An agent of the kind planner that a person made plans all automations, and so the README's walk makes none: its own
// automations would be planned by a coach.
func TestReadmeLeavesThePlannerAlone(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "reeve agents create gymcoach --kind coach") ||
		!strings.Contains(string(b), "reeve automations plan") {
		t.Error("the walk is another one now: look whether its kinds are right")
	}
	for _, kind := range []string{"planner", "maintainer"} {
		if strings.Contains(string(b), "--kind "+kind) {
			t.Errorf("the walk makes an agent of the kind %s", kind)
		}
	}
}
