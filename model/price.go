package model

import (
	_ "embed"
	"math"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"reeve"
)

//go:embed prices.yaml
var builtinPrices []byte

// Price is the price of a model in dollars per million tokens.
type Price struct {
	Input      float64  `yaml:"input"`
	Output     float64  `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`  // Default: Input
	CacheWrite *float64 `yaml:"cache_write"` // Default: Input
	Over       int64    `yaml:"over"`        // number of input tokens above which Long applies
	Long       *Price   `yaml:"long"`
}

// Prices maps provider/model to a price. The name provider/* applies to all other models of a provider.
type Prices map[string]Price

// LoadPrices returns the built-in prices, overridden by those of a file unless file is empty.
func LoadPrices(file string) (Prices, error) {
	prices, err := parsePrices("prices.yaml", builtinPrices)
	if err != nil || file == "" {
		return prices, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "cannot read the price table: %w", err)
	}
	over, err := parsePrices(file, data)
	if err != nil {
		return nil, err
	}
	for name, p := range over {
		prices[name] = p
	}
	return prices, nil
}

func parsePrices(name string, data []byte) (Prices, error) {
	prices := Prices{}
	if err := yaml.UnmarshalWithOptions(data, &prices, yaml.Strict()); err != nil {
		return nil, reeve.Errorf(reeve.Validation, "price table %s: %s", name,
			yaml.FormatError(err, false, true)).
			Hintf("write prices in dollars per million tokens, " +
				"e.g. `openai/gpt-5: {input: 1.25, output: 10, cache_read: 0.125}`")
	}
	for model, p := range prices {
		if n, ok := p.findInvalid(); ok {
			return nil, reeve.Errorf(reeve.Validation, "price table %s: the price %[3]v of %[2]s is invalid", name,
				model,
				n)
		}
		if !strings.Contains(model, "/") {
			return nil, reeve.Errorf(reeve.Validation, "price table %s: %s has no provider", name, model).
				Hintf("write provider/model")
		}
	}
	return prices, nil
}

// findInvalid returns a price that is negative or not a number, if there is one.
func (p Price) findInvalid() (float64, bool) {
	for _, n := range []float64{p.Input, p.Output, valueOr(p.CacheRead, 0), valueOr(p.CacheWrite, 0), float64(p.Over)} {
		if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return n, true
		}
	}
	if p.Long != nil {
		return p.Long.findInvalid()
	}
	return 0, false
}

// versionSuffix matches the suffix of a model name that does not change the price: a date, a build or a stage.
var versionSuffix = regexp.MustCompile(
	`^(-\d{3,8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{4}|-\d{2}-\d{2}|-latest|-preview|-exp)+$`)

// Find returns the price of a model: its own, that of the name without a version suffix, or that of provider/*.
func (ps Prices) Find(provider, model string) (Price, bool) {
	name, ok := ps.findName(provider, model)
	if !ok {
		name = provider + "/*"
	}
	p, ok := ps[name]
	return p, ok
}

// findName returns the key of Prices for a model, ignoring provider/*.
func (ps Prices) findName(provider, model string) (best string, ok bool) {
	name := provider + "/" + strings.TrimPrefix(model, "models/")
	if _, ok := ps[name]; ok {
		return name, true
	}
	for known := range ps {
		if rest, ok := strings.CutPrefix(name, known); ok && versionSuffix.MatchString(rest) && len(known) > len(best) {
			best = known
		}
	}
	return best, best != ""
}

// Micros returns the price of usage in millionths of a dollar. A dollar per million tokens is a millionth per token.
func (p Price) Micros(u Usage) int64 {
	if p.Long != nil && u.Input > p.Over {
		return p.Long.Micros(u)
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	cost := math.Round(float64(fresh)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*valueOr(p.CacheRead,
		p.Input) + float64(u.CacheWrite)*valueOr(p.CacheWrite, p.Input))
	return int64(min(cost, 1<<62)) // avoid overflow with absurd prices
}

func valueOr(n *float64, otherwise float64) float64 {
	if n != nil {
		return *n
	}
	return otherwise
}
