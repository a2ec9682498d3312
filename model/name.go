package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// names maps the names of tools to ones that every provider takes, [a-zA-Z_][a-zA-Z0-9_-]{0,63}, and back.
type names struct {
	out, in map[string]string
}

const maxName = 64

// nameTools maps the tools of a request, those that are offered and those that were called. A name that is fine stays
// as it is.
func nameTools(r Request, ms []Message) names {
	n := names{out: map[string]string{}, in: map[string]string{}}
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Name)
	}
	for _, m := range ms {
		for _, p := range m.Parts {
			if p.Type == ToolCall || p.Type == Result {
				all = append(all, p.Name)
			}
		}
	}
	for _, name := range all {
		if name != "" && plain(name) == name {
			n.out[name], n.in[name] = name, name
		}
	}
	for _, name := range all {
		if _, ok := n.out[name]; ok || name == "" {
			continue
		}
		as := plain(name)
		if _, taken := n.in[as]; taken {
			sum := sha256.Sum256([]byte(name))
			as = as[:min(len(as), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
		}
		n.out[name], n.in[as] = as, name
	}
	return n
}

// plain replaces what providers do not take.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, name)
	if c := name[0]; c == '-' || '0' <= c && c <= '9' {
		name = "_" + name
	}
	return name[:min(len(name), maxName)]
}

// theirs gives the name that a provider sees.
func (n names) theirs(name string) string {
	if as, ok := n.out[name]; ok {
		return as
	}
	return name
}

// ours gives the name of the tool that a provider called; one that was never offered stays as it is, and the gate will
// say so.
func (n names) ours(name string) string {
	if as, ok := n.in[name]; ok {
		return as
	}
	return name
}
