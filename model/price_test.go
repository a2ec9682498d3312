package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// TestPrices checks that versions of a model have its price, other models of the family do not, and that a file
// overrides the built-in prices.
func TestPrices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("openai/gpt-5: {input: 100, output: 200}\nacme/*: {input: 1, output: 2}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	usage := model.Usage{Input: 1000, Output: 100, CacheRead: 600, CacheWrite: 200}
	for _, c := range []struct {
		file, provider, model string
		usage                 model.Usage
		micros                int64
		known                 bool
	}{
		{"", "anthropic", "claude-sonnet-4-5-20250929", usage, 200*3 + 100*15 + 180 + 750, true},
		// Cache writes cost as much as input: 200*1.25 + 200*1.25.
		{"", "openai", "gpt-5-2025-08-07", usage, 500 + 1000 + 75, true},
		{"", "openai", "gpt-5-nano", model.Usage{Input: 100}, 5, true},
		{"", "openai", "gpt-5-unheard-of", usage, 0, false},
		{"", "acme", "gpt-5", usage, 0, false},
		{"", "ollama", "qwen3:8b", usage, 0, true},
		{"", "gemini", "gemini-2.5-pro", model.Usage{Input: 100_000, Output: 10}, 125_100, true},
		// a long prompt
		{"", "gemini", "models/gemini-2.5-pro-preview-05-06", model.Usage{Input: 300_000, Output: 10}, 750_150, true},
		{file, "openai", "gpt-5", model.Usage{Input: 1, Output: 1}, 300, true},
		{file, "openai", "gpt-5-mini", model.Usage{Output: 10}, 20, true},
		{file, "acme", "anything", model.Usage{Input: 1, Output: 1}, 3, true},
	} {
		prices, err := model.LoadPrices(c.file)
		if err != nil {
			t.Fatal(err)
		}
		p, known := prices.Find(c.provider, c.model)
		if got := p.Micros(c.usage); got != c.micros || known != c.known {
			t.Errorf("%s/%s: %d, %v; want %d, %v", c.provider, c.model, got, known, c.micros, c.known)
		}
	}
}

// TestBadPrices checks that the error locates the mistake.
func TestBadPrices(t *testing.T) {
	for text, says := range map[string]string{
		"openai/gpt-5: {input: cheap}":        "gpt-5",
		"openai/gpt-5: {inputs: 1}":           "inputs",
		"openai/gpt-5: {input: -1}":           "-1",
		"gpt-5: {input: 1}":                   "no provider",
		"a/b: {input: 1, long: {output: -2}}": "-2",
		"- a list":                            "prices.yaml",
	} {
		file := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := model.LoadPrices(file)
		if reeve.CodeOf(err) != reeve.Validation || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want one with %q", text, err, says)
		}
	}
	if _, err := model.LoadPrices("/no/such/file"); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("no file: %v", err)
	}
}
