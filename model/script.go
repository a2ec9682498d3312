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

// Script is what the rehearsal model follows, in YAML or JSON.
type Script struct {
	// Models are the names it answers to; any other is unknown. All, when empty.
	Models []string `yaml:"models"`
	// Answers are looked through from the first on: one with a `when` is given each time it fits; those without are
	// given once each, in order. When none is left the model behaves as it does without a script.
	Answers []Line `yaml:"answers"`
}

// Line is an answer of a script.
type Line struct {
	When   When       `yaml:"when"`
	Text   string     `yaml:"text"`   // {{said}} and {{results}} stand for what the request ends with
	Think  string     `yaml:"think"`  // reasoning, before the text
	Calls  []LineCall `yaml:"calls"`  // tool calls, after the text
	Stop   Stop       `yaml:"stop"`   // why it stops; end or tools, as fits
	Delay  Wait       `yaml:"delay"`  // before the first piece
	Pace   Wait       `yaml:"pace"`   // before each further piece
	Pieces int        `yaml:"pieces"` // in how many pieces the text is streamed; by words when 0
	Fail   *Fail      `yaml:"fail"`   // a failure instead of, or in the middle of, the answer
	Usage  *LineUsage `yaml:"usage"`  // what it counts; by length when not given
}

// When says when an answer fits: all that is set must. Each is a part of the text, or, between slashes, a regular
// expression.
type When struct {
	Said   string `yaml:"said"`   // what the person said last, when tools have not answered since
	Result string `yaml:"result"` // what tools answered last
	Tool   string `yaml:"tool"`   // the name of a tool that answered last
	Offers string `yaml:"offers"` // the name of a tool that is offered
	System string `yaml:"system"` // the system text
	Model  string `yaml:"model"`  // the model that is asked for, whole
	Every  int    `yaml:"every"`  // only the 1st, and then each N-th time that the rest fits
}

// LineCall is a tool call of a script. Args that are a string are sent as they are, valid or not.
type LineCall struct {
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	Args any    `yaml:"args"`
}

// LineUsage is what a script says that an answer used.
type LineUsage struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cache_read"`
	CacheWrite int64 `yaml:"cache_write"`
	Reasoning  int64 `yaml:"reasoning"`
}

// Fail is a failure to simulate. Exactly one of Status, Cut, Hang and Nonsense is set.
type Fail struct {
	Status     int    `yaml:"status"`      // an HTTP status, as a provider would give it
	RetryAfter Wait   `yaml:"retry_after"` // with a status
	Message    string `yaml:"message"`     // with a status
	After      int    `yaml:"after"`       // how many pieces are streamed first
	Cut        bool   `yaml:"cut"`         // the stream ends
	Hang       bool   `yaml:"hang"`        // nothing more comes, until the caller gives up
	Nonsense   bool   `yaml:"nonsense"`    // an answer that cannot be understood
}

// Wait is a duration, written as 50ms or 1.5s.
type Wait time.Duration

// UnmarshalText reads a duration.
func (w *Wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration like 50ms or 1.5s", text)
	}
	*w = Wait(d)
	return nil
}

// UnmarshalYAML takes a plain text as what was said.
func (w *When) UnmarshalYAML(data []byte) error {
	var said string
	if yaml.Unmarshal(data, &said) == nil {
		*w = When{Said: said}
		return nil
	}
	type plain When
	return yaml.UnmarshalWithOptions(data, (*plain)(w), yaml.Strict())
}

// ReadScript reads a script's file.
func ReadScript(file string) (Script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Script{}, reeve.Errorf(reeve.Validation, "the rehearsal script cannot be read: %w", err)
	}
	s, err := ParseScript(data)
	if err != nil {
		e := reeve.AsError(err)
		return Script{}, reeve.Errorf(e.Code, "%s: %s", file, e.Message)
	}
	return s, nil
}

// ParseScript reads a script, and says where it is wrong.
func ParseScript(data []byte) (Script, error) {
	var s Script
	if err := yaml.UnmarshalWithOptions(data, &s, yaml.Strict()); err != nil {
		return Script{}, reeve.Errorf(reeve.Validation, "the rehearsal script is wrong: %s",
			yaml.FormatError(err, false, true))
	}
	for i, l := range s.Answers {
		if err := l.check(); err != nil {
			return Script{}, reeve.Errorf(reeve.Validation, "the rehearsal script is wrong: answer %d: %v", i+1, err)
		}
	}
	return s, nil
}

func (l Line) check() error {
	for _, pattern := range []string{l.When.Said, l.When.Result, l.When.Tool, l.When.Offers, l.When.System} {
		if _, err := expression(pattern); err != nil {
			return err
		}
	}
	for _, c := range l.Calls {
		if c.Name == "" {
			return fmt.Errorf("a call needs a name")
		}
	}
	if l.Stop != "" && !slices.Contains([]Stop{StopEnd, StopTools, StopLength, StopRefused}, l.Stop) {
		return fmt.Errorf("stop is end, tools, length or refused, not %q", l.Stop)
	}
	if l.Pieces < 0 || l.When.Every < 0 {
		return fmt.Errorf("pieces and every are not negative")
	}
	if l.Fail == nil {
		if l.Text == "" && len(l.Calls) == 0 && l.Stop != StopRefused && l.Stop != StopLength {
			return fmt.Errorf("it says nothing; give it text, calls or fail")
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
		return fmt.Errorf("fail is one of status (400 to 599), cut, hang and nonsense")
	}
	return nil
}

// expression gives the regular expression between slashes, or nil for a plain text.
func expression(pattern string) (*regexp.Regexp, error) {
	if len(pattern) < 2 || !strings.HasPrefix(pattern, "/") || !strings.HasSuffix(pattern, "/") {
		return nil, nil
	}
	return regexp.Compile(pattern[1 : len(pattern)-1])
}

// fits says whether a text has a pattern in it; the empty pattern is in all.
func fits(pattern, text string) bool {
	re, err := expression(pattern)
	switch {
	case err != nil:
		return false
	case re != nil:
		return re.MatchString(text)
	default:
		return strings.Contains(text, pattern)
	}
}
