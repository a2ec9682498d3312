package canonjson

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of objects and arrays that Parse accepts.
const maxDepth = 100

// maxNumberLen is the longest number that Parse accepts, in characters. Every double fits, and exact arithmetic on a
// number with a million digits would take seconds.
const maxNumberLen = 2000

// maxQuoted is how many bytes of a number an error message quotes.
const maxQuoted = 24

var tooDeep = fmt.Sprintf("nesting deeper than %d", maxDepth)

// Parse parses one JSON value as encoding/json does, with numbers as json.Number. It fails with an *Error on invalid
// UTF-8, duplicate keys, lone surrogates, and text after the value. It also refuses nesting deeper than 100, numbers
// outside the range of a double, and numbers of more than 2000 characters.
func Parse(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, newError(b, invalidUTF8At(b), "bytes that are not UTF-8")
	}
	if !json.Valid(b) {
		return nil, newSyntaxError(b, json.Unmarshal(b, new(json.RawMessage)))
	}
	p := parser{src: b}
	return p.parseValue(0)
}

// parser parses a text that is known to be valid JSON.
type parser struct {
	src []byte
	at  int
}

// peek skips white space and returns the next byte without consuming it.
func (p *parser) peek() byte {
	for {
		switch c := p.src[p.at]; c {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return c
		}
	}
}

func (p *parser) parseValue(depth int) (any, error) {
	switch c := p.peek(); c {
	case '{', '[':
		if depth >= maxDepth {
			return nil, newError(p.src, p.at, tooDeep)
		}
		p.at++
		if c == '{' {
			return p.parseObject(depth)
		}
		return p.parseArray(depth)
	case '"':
		return p.parseString()
	case 't':
		p.at += len("true")
		return true, nil
	case 'f':
		p.at += len("false")
		return false, nil
	case 'n':
		p.at += len("null")
		return nil, nil
	}
	return p.parseNumber()
}

func (p *parser) parseObject(depth int) (any, error) {
	m := map[string]any{}
	for p.peek() != '}' {
		at := p.at
		key, err := p.parseString()
		if err != nil {
			return nil, err
		}
		if _, dup := m[key]; dup {
			return nil, newError(p.src, at, fmt.Sprintf("key %q appears twice in one object", key))
		}
		p.peek() // the colon
		p.at++
		if m[key], err = p.parseValue(depth + 1); err != nil {
			return nil, err
		}
		p.skipComma()
	}
	p.at++
	return m, nil
}

func (p *parser) parseArray(depth int) (any, error) {
	list := []any{}
	for p.peek() != ']' {
		v, err := p.parseValue(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.skipComma()
	}
	p.at++
	return list, nil
}

func (p *parser) skipComma() {
	if p.peek() == ',' {
		p.at++
	}
}

// parseString parses a string. Most strings have no escapes and are copied.
func (p *parser) parseString() (s string, err error) {
	start, hasEscapes := p.at, false
	for p.at++; p.src[p.at] != '"'; p.at++ {
		if p.src[p.at] == '\\' {
			hasEscapes = true
			p.at++
		}
	}
	p.at++
	raw := p.src[start:p.at]
	if !hasEscapes {
		return string(raw[1 : len(raw)-1]), nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", err // cannot happen, the string is valid
	}
	return s, p.checkSurrogates(start, raw, s)
}

// parseNumber fails on a number that a double cannot represent and on one that is too long.
func (p *parser) parseNumber() (n json.Number, err error) {
	at := p.at
	for p.at < len(p.src) && strings.IndexByte("+-.0123456789eE", p.src[p.at]) >= 0 {
		p.at++
	}
	n = json.Number(p.src[at:p.at])
	if len(n) > maxNumberLen {
		return n, newError(p.src, at, fmt.Sprintf("number %s is longer than %d characters", quote(n), maxNumberLen))
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || f == 0 && !isZero(string(n)) {
		return n, newError(p.src, at, fmt.Sprintf("number %s is out of range", quote(n)))
	}
	return n, nil
}

// quote returns the beginning of n for an error message.
func quote(n json.Number) string {
	if len(n) > maxQuoted {
		return string(n[:maxQuoted]) + "…"
	}
	return string(n)
}

// isZero reports whether all digits of n before the exponent are zero.
func isZero(n string) bool {
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		n = n[:i]
	}
	return strings.Trim(n, "-0.") == ""
}

// checkSurrogates fails on a lone surrogate, which encoding/json silently replaces with U+FFFD. raw is the string at
// offset at as written, s the decoded string.
func (p *parser) checkSurrogates(at int, raw []byte, s string) error {
	if !strings.ContainsRune(s, utf8.RuneError) {
		return nil
	}
	for i := 0; i+5 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		r := parseHex4(raw[i+2:])
		if !utf16.IsSurrogate(r) {
			i += 5
			continue
		}
		if i+11 < len(raw) && raw[i+6] == '\\' && raw[i+7] == 'u' &&
			utf16.DecodeRune(r, parseHex4(raw[i+8:])) != utf8.RuneError {
			i += 11
			continue
		}
		return newError(p.src, at, "a lone surrogate in a string")
	}
	return nil
}

func parseHex4(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

func invalidUTF8At(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
