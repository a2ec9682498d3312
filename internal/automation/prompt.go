package automation

import (
	_ "embed" // the prompts are files
	"strings"
)

//go:embed prompt/planner.md
var plannerText string

//go:embed prompt/maintainer.md
var maintainerText string

//go:embed prompt/rules.md
var rulesText string

// The instructions that the planner and the maintainer are made with. They are the agents' own from then on, for people
// to change.
var (
	plannerPrompt    = withRules(plannerText)
	maintainerPrompt = withRules(maintainerText)
)

// withRules puts the rules in. What is left in braces would be taken for a variable.
func withRules(text string) string {
	return strings.TrimSpace(strings.Replace(text, "{{rules}}", strings.TrimSpace(rulesText), 1))
}
