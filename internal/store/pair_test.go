package store

import (
	"strings"
	"testing"
	"time"

	"reeve"
)

// The ids of a call and its answer differ in their last character, and isPair knows all of those.
func TestPairs(t *testing.T) {
	ids, now := reeve.IDs{}, time.Now()
	for range 32 { // each ends in the next character
		call := ids.New(reeve.PrefixMessage, now)
		answer := reeve.AnswerTo(call)
		if call[:29] != answer[:29] || !strings.Contains(isPair, "'"+call[29:]+answer[29:]+"'") {
			t.Errorf("%s and %s", call, answer)
		}
	}
}
