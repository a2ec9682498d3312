package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// toolNames maps tool names to names that every provider accepts, [a-zA-Z_][a-zA-Z0-9_-]{0,63}, and back.
type toolNames struct {
	outgoing, incoming map[string]string
}

const maxName = 64

// mapToolNames maps the names of the offered and the called tools of a request. Valid names stay unchanged.
func mapToolNames(r Request, ms []Message) toolNames {
	n := toolNames{outgoing: map[string]string{}, incoming: map[string]string{}}
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
		if name != "" && sanitizeName(name) == name {
			n.outgoing[name], n.incoming[name] = name, name
		}
	}
	for _, name := range all {
		if _, ok := n.outgoing[name]; ok || name == "" {
			continue
		}
		sanitized := sanitizeName(name)
		if _, taken := n.incoming[sanitized]; taken {
			sum := sha256.Sum256([]byte(name))
			sanitized = sanitized[:min(len(sanitized), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
		}
		n.outgoing[name], n.incoming[sanitized] = sanitized, name
	}
	return n
}

// sanitizeName replaces the characters that providers do not accept, and truncates the name to maxName.
func sanitizeName(name string) string {
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

// toProvider returns the provider's name of a tool.
func (n toolNames) toProvider(name string) string {
	if as, ok := n.outgoing[name]; ok {
		return as
	}
	return name
}

// fromProvider returns the tool for a provider's name. It returns an unknown name unchanged, and the gate rejects it.
func (n toolNames) fromProvider(name string) string {
	if as, ok := n.incoming[name]; ok {
		return as
	}
	return name
}
