package main

import (
	"errors"
	"go/token"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// directive marks a function as a tool.
const directive = "//reeve:tool"

// setting is one key=value of a directive.
type setting struct {
	pos   token.Pos
	key   string
	value string
}

// parseSettings parses the rest of a directive's line: words of the form key=value or key="value", separated by spaces.
func (p *problems) parseSettings(text string, pos token.Pos) []setting {
	var list []setting
	seen := map[string]bool{}
	for {
		rest := strings.TrimLeft(text, " \t")
		pos += token.Pos(len(text) - len(rest))
		if rest == "" {
			return list
		}
		n := strings.IndexAny(rest, " \t")
		if n < 0 {
			n = len(rest)
		}
		word := rest[:n]
		key, value, ok := strings.Cut(word, "=")
		if ok && strings.HasPrefix(value, `"`) {
			from := len(key) + 1
			quoted, err := strconv.QuotedPrefix(rest[from:])
			if err != nil {
				p.add(pos, "the value of %s has no closing quote", key)
				return list
			}
			value, _ = strconv.Unquote(quoted)
			n = from + len(quoted)
			ok = n == len(rest) || rest[n] == ' ' || rest[n] == '\t'
			word = rest[:n]
		}
		switch {
		case !ok || key == "":
			p.add(pos, "%s does not have the form key=value", word)
		case strings.TrimSpace(value) == "":
			p.add(pos, "%s has no value", key)
		case seen[key]:
			p.add(pos, "duplicate key %s", key)
		default:
			list = append(list, setting{pos, key, value})
		}
		seen[key] = true
		text, pos = rest[n:], pos+token.Pos(n)
	}
}

// applySettings copies the settings of a directive to the declaration of a tool.
func (p *problems) applySettings(t *tool, list []setting) {
	for _, s := range list {
		switch s.key {
		case "id":
			t.decl.ID = s.value
		case "name":
			t.decl.Name = s.value
		case "effect":
			t.decl.Effect = reeve.Effect(s.value)
		case "tier":
			t.decl.Tier = reeve.Tier(s.value)
		case "risk":
			t.decl.Risk = reeve.Risk(s.value)
		case "category":
			t.decl.Category = s.value
		case "capability":
			t.decl.Capability = s.value
		case "timeout":
			d, err := time.ParseDuration(s.value)
			if err != nil || d < time.Millisecond || d%time.Millisecond != 0 {
				p.add(s.pos, "timeout=%s is not a duration in whole milliseconds, such as 30s", s.value)
				continue
			}
			t.decl.TimeoutMS = d.Milliseconds()
		case "retry":
			n, err := strconv.Atoi(s.value)
			if err != nil || n < 1 {
				p.add(s.pos, "retry=%s is not a number of attempts, such as 3", s.value)
				continue
			}
			t.decl.Retry.Attempts = n
		case "verify":
			t.verify = s.value
		default:
			p.add(s.pos, "unknown key %s; use id, name, effect, tier, risk, category, capability, timeout, retry or "+
				"verify", s.key)
			continue
		}
		t.keyPos[s.key] = s.pos
	}
}

// checkDeclaration validates a declaration with the same rules as the registration of a tool.
func (p *problems) checkDeclaration(t *tool) {
	d := t.decl.WithDefaults()
	if d.Description == "" {
		d.Description = "missing" // parseTool reports a missing description
	}
	var bad *reeve.Error
	if err := d.Validate(); !errors.As(err, &bad) {
		return
	}
	for _, f := range bad.Fields {
		key := strings.TrimSuffix(strings.Split(f.Path, "/")[1], "_ms")
		pos, ok := t.keyPos[key]
		if !ok {
			pos = t.pos
		}
		p.add(pos, "%s (want %s)", f.Message, f.Expected)
	}
}
