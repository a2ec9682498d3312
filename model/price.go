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

// Price is what a model costs, in dollars for a million tokens.
type Price struct {
	Input      float64  `yaml:"input"`
	Output     float64  `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`  // as input when not given
	CacheWrite *float64 `yaml:"cache_write"` // as input when not given
	Over       int64    `yaml:"over"`        // with more input tokens than this, Long is the price
	Long       *Price   `yaml:"long"`
}

// Prices are the prices of models, by provider/model. The name provider/* stands for all others of a provider.
type Prices map[string]Price

// LoadPrices gives the built-in prices, with those of a file over them when one is named.
func LoadPrices(file string) (Prices, error) {
	prices, err := parsePrices("prices.yaml", builtinPrices)
	if err != nil || file == "" {
		return prices, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the price table cannot be read: %w", err)
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
		return nil, reeve.Errorf(reeve.Validation, "the price table %s is wrong: %s", name,
			yaml.FormatError(err, false, true)).
			Hintf("Each line is like `openai/gpt-5: {input: 1.25, output: 10, cache_read: 0.125}`, in dollars for a " +
				"million tokens.")
	}
	for model, p := range prices {
		if n, ok := p.wrong(); ok {
			return nil, reeve.Errorf(reeve.Validation, "the price table %s is wrong: %s has a price of %v", name, model,
				n)
		}
		if !strings.Contains(model, "/") {
			return nil, reeve.Errorf(reeve.Validation, "the price table %s is wrong: %s has no provider", name, model).
				Hintf("Write provider/model.")
		}
	}
	return prices, nil
}

// wrong finds a price that is none.
func (p Price) wrong() (float64, bool) {
	for _, n := range []float64{p.Input, p.Output, or(p.CacheRead, 0), or(p.CacheWrite, 0), float64(p.Over)} {
		if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return n, true
		}
	}
	if p.Long != nil {
		return p.Long.wrong()
	}
	return 0, false
}

// edition is what follows a model's name without being another model: a date, a build, a stage.
var edition = regexp.MustCompile(`^(-\d{3,8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{4}|-\d{2}-\d{2}|-latest|-preview|-exp)+$`)

// Find finds the price of a model: its own, that of the same name without an edition, or that of all of its provider's.
func (ps Prices) Find(provider, model string) (Price, bool) {
	name, ok := ps.find(provider, model)
	if !ok {
		name = provider + "/*"
	}
	p, ok := ps[name]
	return p, ok
}

// find gives the name under which a model has a price of its own.
func (ps Prices) find(provider, model string) (best string, ok bool) {
	name := provider + "/" + strings.TrimPrefix(model, "models/")
	if _, ok := ps[name]; ok {
		return name, true
	}
	for known := range ps {
		if rest, ok := strings.CutPrefix(name, known); ok && edition.MatchString(rest) && len(known) > len(best) {
			best = known
		}
	}
	return best, best != ""
}

// Micros is what usage costs, in millionths of a dollar: a dollar for a million tokens is a millionth for one.
func (p Price) Micros(u Usage) int64 {
	if p.Long != nil && u.Input > p.Over {
		return p.Long.Micros(u)
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	cost := math.Round(float64(fresh)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*or(p.CacheRead,
		p.Input) + float64(u.CacheWrite)*or(p.CacheWrite, p.Input))
	return int64(min(cost, 1<<62)) // a price may be as absurd as it likes
}

func or(n *float64, otherwise float64) float64 {
	if n != nil {
		return *n
	}
	return otherwise
}
