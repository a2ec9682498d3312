package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"reeve"
)

// Settings is what an agent's config says of its brain. Other fields of the config are left to others.
type Settings struct {
	Rehearsal     *Plan             `json:"rehearsal,omitempty" doc:"A fixed plan of calls, instead of a model"`
	Model         string            `json:"model,omitempty" doc:"Such as anthropic/claude-sonnet-4-5; the server's default if left out"`
	Instructions  string            `json:"instructions,omitempty" doc:"Who the agent is and what it does; {{name}} is replaced by a variable"`
	Variables     map[string]string `json:"variables,omitempty" doc:"Defaults of the variables"`
	MaxMoves      int               `json:"max_moves,omitempty" doc:"How often the model is asked in one turn. Default: 25"`
	MaxTokens     int               `json:"max_tokens,omitempty" doc:"Tokens of one answer. Default: 4096"`
	Temperature   *float64          `json:"temperature,omitempty"`
	Effort        string            `json:"effort,omitempty" doc:"low, medium or high"`
	RecentTurns   *int              `json:"recent_turns,omitempty" doc:"Turns before this one that the model sees. Default: 20"`
	ContextTokens int               `json:"context_tokens,omitempty" doc:"Tokens of earlier turns that the model sees. Default: 32000"`
}

const (
	defaultMoves   = 25
	defaultTokens  = 4096
	defaultTurns   = 20
	defaultContext = 32_000
	mostMoves      = 200
)

// ReadSettings reads an agent's config, and says what is wrong with it.
func ReadSettings(config json.RawMessage) (Settings, error) {
	var s Settings
	if len(bytes.TrimSpace(config)) == 0 {
		return s.withDefaults(), nil
	}
	if err := json.Unmarshal(config, &s); err != nil {
		return s, reeve.Errorf(reeve.Validation, "the agent's config is not right: %v", err)
	}
	var f []reeve.Field
	bad := func(path, expected, message string) {
		f = append(f, reeve.Field{Path: "/config/" + path, Message: message, Expected: expected})
	}
	if s.MaxMoves < 0 || s.MaxMoves > mostMoves {
		bad("max_moves", "1 to 200", "is out of range")
	}
	if s.MaxTokens < 0 || s.MaxTokens > 1_000_000 {
		bad("max_tokens", "1 to 1000000", "is out of range")
	}
	if t := s.Temperature; t != nil && (*t < 0 || *t > 2) {
		bad("temperature", "0 to 2", "is out of range")
	}
	if n := s.RecentTurns; n != nil && (*n < 0 || *n > 200) {
		bad("recent_turns", "0 to 200", "is out of range")
	}
	if s.ContextTokens < 0 || s.ContextTokens > 2_000_000 {
		bad("context_tokens", "1 to 2000000", "is out of range")
	}
	switch s.Effort {
	case "", "low", "medium", "high":
	default:
		bad("effort", "low, medium or high", "is not a degree of effort")
	}
	if len(f) > 0 {
		return s, &reeve.Error{Code: reeve.Validation, Message: "the agent's config is not right", Fields: f}
	}
	return s.withDefaults(), nil
}

func (s Settings) withDefaults() Settings {
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

// insert puts variables into a text, literally and once: what a variable's value says is not looked at again. A name that has
// no value stays as it is.
func insert(text string, variables ...map[string]string) string {
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
