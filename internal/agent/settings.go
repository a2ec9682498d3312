package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"reeve"
)

// Settings is what an agent's config says of its brain.
type Settings = reeve.AgentConfig

const (
	defaultMoves   = 25
	defaultTokens  = 4096
	defaultTurns   = 20
	defaultContext = 32_000
)

// readSettings reads an agent's config, with its defaults. It was checked when it was set, by the schema in the gate.
func readSettings(config json.RawMessage) (Settings, error) {
	s, err := reeve.ReadConfig(bytes.TrimSpace(config))
	return withDefaults(s), err
}

func withDefaults(s Settings) Settings {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&s.MaxMoves, defaultMoves)
	set(&s.MaxTokens, defaultTokens)
	set(&s.ContextTokens, defaultContext)
	if s.RecentTurns == nil {
		n := defaultTurns
		s.RecentTurns = &n
	}
	return s
}

// insertVariables puts variables into a text, literally and once: what a variable's value says is not looked at again. A name
// that has no value stays as it is.
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
