package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"reeve"
)

// Settings is the part of an agent's config that its brain uses.
type Settings = reeve.AgentConfig

const (
	defaultModelRequests = 25
	defaultMaxTokens     = 4096
	defaultRecentTurns   = 20
	defaultContextTokens = 32_000
	defaultRecentRuns    = 5
	defaultRunMemory     = 2000
)

// readSettings parses an agent's config and fills in the defaults. gate.CheckAgentConfig validated the config when it
// was set.
func readSettings(config json.RawMessage) (Settings, error) {
	s, err := reeve.ParseAgentConfig(bytes.TrimSpace(config))
	return withDefaults(s), err
}

func withDefaults(s Settings) Settings {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&s.MaxModelRequests, defaultModelRequests)
	set(&s.MaxTokens, defaultMaxTokens)
	set(&s.ContextTokens, defaultContextTokens)
	set(&s.RunMemoryTokens, defaultRunMemory)
	if s.RecentTurns == nil {
		s.RecentTurns = new(int)
		*s.RecentTurns = defaultRecentTurns
	}
	if s.RecentRuns == nil {
		s.RecentRuns = new(int)
		*s.RecentRuns = defaultRecentRuns
	}
	return s
}

// isOn reports whether a setting that is on by default is on.
func isOn(setting *bool) bool { return setting == nil || *setting }

// insertVariables replaces {{name}} by its value, from the first map that has it. Values are not expanded again. A name
// without a value is left unchanged.
func insertVariables(text string, variables ...map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if !closed {
			b.WriteString("{{" + rest)
			return b.String()
		}
		value, ok := "", false
		for _, v := range variables {
			if value, ok = v[strings.TrimSpace(name)]; ok {
				break
			}
		}
		if !ok {
			value = "{{" + name + "}}"
		}
		b.WriteString(value)
		text = after
	}
}
