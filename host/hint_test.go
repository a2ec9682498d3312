package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// A refusal says what would help: what policy denies and what an agent's lifecycle does are not mended by the same.
func TestG02_TheHintIsAboutWhatRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change object
		hint   string
	}{
		"policy":    {object{"policy": object{"tools": object{"act": "deny"}}}, "change the policy of"},
		"dormant":   {object{"lifecycle": "dormant"}, "--lifecycle active"},
		"destroyed": {object{"lifecycle": "destroyed"}, "use another agent"},
	} {
		var ran counter
		h := reevetest.Start(t, tool("act", reeve.Keyed, ran.handle))
		a := h.Agent("a", "act")
		patch(h, a, c.change)
		if _, p, status := do(h, a.ID, call{"tool": "act"}); status != http.StatusForbidden || p.Code != reeve.Denied ||
			!strings.Contains(p.Hint, c.hint) || c.hint != "change the policy of" &&
			strings.Contains(p.Hint, "policy") {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
}
