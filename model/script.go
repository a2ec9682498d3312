package model

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"reeve"
)

// Script is a script of the rehearsal model, in YAML or JSON.
type Script struct {
	// Models are the names that the model accepts. Default: all.
	Models []string `yaml:"models"`
	// Answers are tried in order. An answer with a condition is used each time the condition matches. An answer without
	// one is used once, in order. When no answer is left, the model behaves as without a script.
	Answers []ScriptAnswer `yaml:"answers"`
}

// ScriptAnswer is one answer of a script.
type ScriptAnswer struct {
	When   ScriptCondition `yaml:"when"`
	Text   string          `yaml:"text"`   // {{said}} is the last text of the user, {{results}} the last tool results
	Think  string          `yaml:"think"`  // reasoning before the text
	Calls  []ScriptCall    `yaml:"calls"`  // tool calls after the text
	Stop   Stop            `yaml:"stop"`   // Default: tools with calls, else end
	Delay  ScriptDuration  `yaml:"delay"`  // before the first fragment
	Pace   ScriptDuration  `yaml:"pace"`   // before each further fragment
	Pieces int             `yaml:"pieces"` // number of streamed fragments. Default: one per word
	Fail   *ScriptFailure  `yaml:"fail"`   // a failure before or in the middle of the answer
	Usage  *ScriptUsage    `yaml:"usage"`  // Default: estimated from the length
}

// ScriptCondition says when an answer matches: all fields that are set must match. A field is a substring or, between
// slashes, a regular expression.
type ScriptCondition struct {
	Said   string `yaml:"said"`   // text of the last message, if the user wrote it
	Result string `yaml:"result"` // tool results of the last message
	Tool   string `yaml:"tool"`   // name of a tool with a result in the last message
	Offers string `yaml:"offers"` // name of an offered tool
	System string `yaml:"system"` // the system text
	Model  string `yaml:"model"`  // the whole name of the requested model
	Every  int    `yaml:"every"`  // use the answer only for the 1st and then each N-th match
}

// ScriptCall is a tool call of a script. Args of type string are sent unchanged, even if they are not valid JSON.
type ScriptCall struct {
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	Args any    `yaml:"args"`
}

// ScriptUsage is the token usage that a script reports.
type ScriptUsage struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cache_read"`
	CacheWrite int64 `yaml:"cache_write"`
	Reasoning  int64 `yaml:"reasoning"`
}

// ScriptFailure is a simulated failure. Exactly one of Status, Cut, Hang and Nonsense is set.
type ScriptFailure struct {
	Status     int            `yaml:"status"`      // HTTP status of the response
	RetryAfter ScriptDuration `yaml:"retry_after"` // Retry-After of the response; only with Status
	Message    string         `yaml:"message"`     // body of the response; only with Status
	After      int            `yaml:"after"`       // number of fragments streamed before the failure
	Cut        bool           `yaml:"cut"`         // end the stream early
	Hang       bool           `yaml:"hang"`        // send nothing more until the caller cancels
	Nonsense   bool           `yaml:"nonsense"`    // send an invalid answer
}

// ScriptDuration is a duration, written as 50ms or 1.5s.
type ScriptDuration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *ScriptDuration) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration such as 50ms or 1.5s", text)
	}
	*w = ScriptDuration(d)
	return nil
}

// UnmarshalYAML decodes a string as a condition on the text of the user.
func (w *ScriptCondition) UnmarshalYAML(data []byte) error {
	var said string
	if yaml.Unmarshal(data, &said) == nil {
		*w = ScriptCondition{Said: said}
		return nil
	}
	type plain ScriptCondition
	return yaml.UnmarshalWithOptions(data, (*plain)(w), yaml.Strict())
}

// ReadScript reads a script from a file.
func ReadScript(file string) (Script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Script{}, reeve.Errorf(reeve.Validation, "cannot read the rehearsal script: %w", err)
	}
	s, err := ParseScript(data)
	if err != nil {
		e := reeve.AsError(err)
		return Script{}, reeve.Errorf(e.Code, "%s: %s", file, e.Message)
	}
	return s, nil
}

// ParseScript parses and checks a script.
func ParseScript(data []byte) (Script, error) {
	var s Script
	if err := yaml.UnmarshalWithOptions(data, &s, yaml.Strict()); err != nil {
		return Script{}, reeve.Errorf(reeve.Validation, "invalid rehearsal script: %s",
			yaml.FormatError(err, false, true))
	}
	for i, l := range s.Answers {
		if err := l.check(); err != nil {
			return Script{}, reeve.Errorf(reeve.Validation, "invalid rehearsal script: answer %d: %v", i+1, err)
		}
	}
	return s, nil
}

func (l ScriptAnswer) check() error {
	for _, pattern := range []string{l.When.Said, l.When.Result, l.When.Tool, l.When.Offers, l.When.System} {
		if _, err := parsePattern(pattern); err != nil {
			return err
		}
	}
	for _, c := range l.Calls {
		if c.Name == "" {
			return fmt.Errorf("a call has no name")
		}
	}
	if l.Stop != "" && !slices.Contains([]Stop{StopEnd, StopTools, StopLength, StopRefused}, l.Stop) {
		return fmt.Errorf("stop must be end, tools, length or refused, not %q", l.Stop)
	}
	if l.Pieces < 0 || l.When.Every < 0 {
		return fmt.Errorf("pieces and every must not be negative")
	}
	if l.Fail == nil {
		if l.Text == "" && len(l.Calls) == 0 && l.Stop != StopRefused && l.Stop != StopLength {
			return fmt.Errorf("the answer is empty; set text, calls or fail")
		}
		return nil
	}
	kinds := 0
	for _, set := range []bool{l.Fail.Status != 0, l.Fail.Cut, l.Fail.Hang, l.Fail.Nonsense} {
		if set {
			kinds++
		}
	}
	if kinds != 1 || l.Fail.Status != 0 && (l.Fail.Status < 400 || l.Fail.Status > 599) {
		return fmt.Errorf("fail must have exactly one of status (400 to 599), cut, hang and nonsense")
	}
	return nil
}

// parsePattern returns the regular expression between slashes, or nil for a substring.
func parsePattern(pattern string) (*regexp.Regexp, error) {
	if len(pattern) < 2 || !strings.HasPrefix(pattern, "/") || !strings.HasSuffix(pattern, "/") {
		return nil, nil
	}
	return regexp.Compile(pattern[1 : len(pattern)-1])
}

// matchesPattern reports whether a text contains a match of a pattern. Every text matches the empty pattern.
func matchesPattern(pattern, text string) bool {
	re, err := parsePattern(pattern)
	switch {
	case err != nil:
		return false
	case re != nil:
		return re.MatchString(text)
	default:
		return strings.Contains(text, pattern)
	}
}
