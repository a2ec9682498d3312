package schedules

import (
	"strings"
	"testing"

	"reeve"
	"reeve/internal/redact"
)

// TestG21_NameFromGoalHasNoPartOfSecret checks that the name that a schedule gets from its goal contains no part of a
// secret.
func TestG21_NameFromGoalHasNoPartOfSecret(t *testing.T) {
	const secret = "amber lynx\nA sleeps"
	inv := &reeve.Invocation{Redactor: redact.New([]string{secret})}
	for goal, want := range map[string]string{
		"say hello":              "say hello",
		"é\nand more":            "é",
		"say " + secret:          "say ",
		"say " + secret + " now": "say ",
		strings.Repeat("é", 61):  strings.Repeat("é", 59) + "…",
		strings.Repeat("é", 60):  strings.Repeat("é", 60),
		strings.Repeat("é", 56) + " " + secret + strings.Repeat("!", 50): strings.Repeat("é", 56) + " …",
	} {
		if got := nameFromGoal(inv, goal); got != want {
			t.Errorf("the name of %q is %q, want %q", goal, got, want)
		}
	}
}
