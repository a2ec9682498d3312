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

// The instructions of a new planner and a new maintainer. They are stored with the agent, where people can change them.
var (
	plannerPrompt    = insertRules(plannerText)
	maintainerPrompt = insertRules(maintainerText)
)

// insertRules replaces {{rules}} in a prompt. Any other text in double braces would be taken for a variable.
func insertRules(text string) string {
	return strings.TrimSpace(strings.Replace(text, "{{rules}}", strings.TrimSpace(rulesText), 1))
}
