package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reeve"
)

const (
	maxRuleGoal     = 500  // bytes of the goal in a summary by rules
	maxRulePrevious = 3000 // bytes of the previous summary
	maxRuleLine     = 160  // bytes of an input or an outcome
	maxRuleRuns     = 20   // last turns or runs that are listed
)

// summarizeByRules makes a summary without a model. It contains the goal, the previous summary, the number of turns or
// runs by outcome, and the first lines of the last ones. Equal input gives equal text.
func summarizeByRules(m material) string {
	var b strings.Builder
	what := "runs"
	if m.byTurns {
		what = "turns"
	}
	if m.goal != "" {
		fmt.Fprintf(&b, "Goal: %q\n", firstLine(m.goal, maxRuleGoal))
	}
	if m.previous != "" {
		fmt.Fprintf(&b, "Before: %s\n", reeve.Truncate(m.previous, maxRulePrevious))
	}
	counts := map[reeve.RunState]int{}
	for _, r := range m.runs {
		counts[r.State]++
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
	}
	fmt.Fprintf(&b, "Then %d %s: %s.\n", len(m.runs), what, strings.Join(parts, ", "))
	shown := m.runs[max(0, len(m.runs)-maxRuleRuns):]
	if n := len(m.runs) - len(shown); n > 0 {
		fmt.Fprintf(&b, "The last %d:\n", len(shown))
	}
	for _, r := range shown {
		outcome := r.Output
		if outcome == "" {
			outcome = r.Message
		}
		fmt.Fprintf(&b, "- %q: %s, %q\n", firstLine(r.Input, maxRuleLine), r.State, firstLine(outcome, maxRuleLine))
	}
	return strings.TrimSpace(b.String())
}

// firstLine returns the first line of a text that is not blank, shortened to n bytes.
func firstLine(text string, n int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return reeve.Truncate(strings.TrimSpace(line), n)
}
