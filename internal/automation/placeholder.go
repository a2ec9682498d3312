package automation

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"reeve/internal/sandbox/js"
)

// newPlaceholder returns what a script gets for a call that a dry run did not make.
func newPlaceholder(tool string, ordinal int) error {
	return &js.NotRun{Text: fmt.Sprintf("result of %s #%d", tool, ordinal)}
}

// placeholderPattern matches the text of a placeholder, or of a value in it.
var placeholderPattern = regexp.MustCompile(`‹(result of [^‹›]*#(\d+)[^‹›]*), not run›`)

// findPlaceholders returns the ordinals of the planned calls whose results occur in a text, sorted.
func findPlaceholders(texts ...json.RawMessage) []int {
	var found []int
	for _, text := range texts {
		for _, m := range placeholderPattern.FindAllSubmatch(text, -1) {
			if n, err := strconv.Atoi(string(m[2])); err == nil {
				found = append(found, n)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// placeholderText returns the text of the first placeholder in arguments.
func placeholderText(args json.RawMessage) string {
	if m := placeholderPattern.FindSubmatch(args); m != nil {
		return string(m[1])
	}
	return ""
}
