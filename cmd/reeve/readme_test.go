package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// An update of a policy replaces all of it, so each one that the README's walk makes repeats the rules that were set before.
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
