package model

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"reeve"
)

// Providers is a Model that sends each request to the provider of its model. It retries requests that fail, and sets
// the price of the answers.
//
// A model name is one of these: provider/model, an alias of Config.Names, a model of the rehearsal script, "rehearsal",
// or a provider's own name with a known prefix such as claude-. An empty name means the default model.
type Providers struct {
	byName       map[string]provider
	names        map[string]string
	script       Script
	rehearsal    Model
	prices       Prices
	defaultModel string
	configured   map[string]bool // provider/model of the default and of all aliases
	log          *slog.Logger

	mu       sync.Mutex
	unpriced map[string]bool // models whose missing price was logged
}

// Open returns the providers of a config, or an error that names the invalid setting. It sends no request.
func Open(c Config) (*Providers, error) {
	p := &Providers{names: c.Names, log: c.Log, configured: map[string]bool{}, unpriced: map[string]bool{}}
	if p.log == nil {
		p.log = slog.Default()
	}
	var err error
	if p.byName, err = c.providers(); err != nil {
		return nil, err
	}
	if p.prices, err = LoadPrices(c.Prices); err != nil {
		return nil, settingError("model.prices", err)
	}
	if c.Script != "" {
		if p.script, err = ReadScript(c.Script); err != nil {
			return nil, settingError("model.script", err)
		}
	}
	p.rehearsal = Rehearsal(p.script)
	if p.defaultModel = c.Default; p.defaultModel == "" {
		p.defaultModel = p.chooseDefault()
	}
	for _, alias := range slices.Sorted(maps.Keys(c.Names)) { // sorted: with several errors, always return the same
		to := c.Names[alias]
		if _, again := c.Names[to]; again || alias == "" {
			return nil, settingError("model.names."+alias,
				reeve.Errorf(reeve.Validation, "model.names: %s refers to another alias", alias).
					Hintf("write %s: provider/model", alias))
		}
		if _, _, err := p.resolve(to); err != nil && reeve.CodeOf(err) == reeve.NotFound {
			return nil, settingError("model.names."+alias, reeve.Errorf(reeve.Validation, "model.names: %s: %s", alias,
				reeve.AsError(err).Message).Hintf("%s", reeve.AsError(err).Hint))
		}
	}
	if _, _, err := p.resolve(p.defaultModel); err != nil {
		e := reeve.AsError(err)
		return nil, settingError("model.default", reeve.Errorf(reeve.Validation, "model.default is not usable: %s",
			e.Message).
			Hintf("%s", e.Hint))
	}
	for _, name := range append(slices.Collect(maps.Values(c.Names)), p.defaultModel) {
		if pr, model, err := p.resolve(name); err == nil {
			p.configured[pr.server.Name+"/"+model] = true
		}
	}
	return p, nil
}

// chooseDefault returns the default model for a config without one.
func (p *Providers) chooseDefault() string {
	for _, f := range defaultModels {
		if pr := p.byName[f.provider]; pr.missing == "" && pr.server.Key != "" {
			return f.provider + "/" + f.model
		}
	}
	return "rehearsal"
}

// Default returns the name of the default model.
func (p *Providers) Default() string { return p.defaultModel }

// prefixes maps the prefixes of model names to providers.
var prefixes = []struct{ begins, provider string }{
	{"claude-", "anthropic"}, {"gpt-", "openai"}, {"chatgpt-", "openai"}, {"codex-", "openai"}, {"o1", "openai"},
	{"o3", "openai"}, {"o4", "openai"}, {"gemini-", "gemini"},
}

// resolve returns the provider of a model and the provider's own name of the model.
func (p *Providers) resolve(name string) (provider, string, error) {
	if name == "" {
		name = p.defaultModel
	}
	if to, ok := p.names[name]; ok {
		name = to
	}
	if name == "rehearsal" {
		return provider{server: rehearsalServer, model: p.rehearsal}, p.rehearsalName(), nil
	}
	if slices.Contains(p.script.Models, name) {
		return provider{server: rehearsalServer, model: p.rehearsal}, name, nil
	}
	providerName, rest, ok := strings.Cut(name, "/")
	if ok && providerName == "rehearsal" {
		return provider{server: rehearsalServer, model: p.rehearsal}, rest, nil
	}
	if !ok {
		providerName, rest = "", name
		for _, x := range prefixes {
			if strings.HasPrefix(name, x.begins) {
				providerName = x.provider
				break
			}
		}
		if providerName == "" && strings.Contains(name, ":") {
			providerName = "ollama" // only Ollama's model names have tags
		}
	}
	pr, known := p.byName[providerName]
	switch {
	case !known || rest == "":
		return provider{}, "", reeve.Errorf(reeve.NotFound, "there is no model %q", name).
			Hintf("write provider/model with one of the providers %s, or rehearsal, which needs no key",
				strings.Join(slices.Sorted(maps.Keys(p.byName)), ", "))
	case pr.missing != "":
		return provider{}, "", reeve.Errorf(reeve.ModelFailed, "provider %s of model %s has no key", providerName,
			name).
			Hintf("set %s", pr.missing)
	default:
		return pr, rest, nil
	}
}

// Resolve returns the provider of a model and the provider's own name of the model. For an unknown name it returns an
// empty provider and the name.
func (p *Providers) Resolve(name string) (provider, model string) {
	pr, own, err := p.resolve(name)
	if err == nil {
		return pr.server.Name, own
	}
	if to, ok := p.names[name]; ok {
		name = to
	}
	if before, after, ok := strings.Cut(name, "/"); ok && p.byName[before].model != nil { // a provider without a key
		return before, after
	}
	return "", name
}

// OnlyRehearses reports whether a name stands for the rehearsal model without a script. Such a model repeats what it is
// told and understands nothing.
func (p *Providers) OnlyRehearses(name string) bool {
	pr, _, err := p.resolve(name)
	return err == nil && pr.server.Name == rehearsalServer.Name && len(p.script.Answers) == 0
}

// rehearsalName returns the name that the rehearsal model gets for the model name "rehearsal".
func (p *Providers) rehearsalName() string {
	if len(p.script.Models) > 0 {
		return p.script.Models[0]
	}
	return "rehearsal"
}

// Check returns an error if the model is unknown or its provider has no key. It sends no request.
func (p *Providers) Check(name string) error {
	_, _, err := p.resolve(name)
	return err
}

// Answer implements Model.
func (p *Providers) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	pr, name, err := p.resolve(r.Model)
	if err != nil {
		return Answer{}, err
	}
	r.Model = name
	a, err := CountUsage(WithRetry(pr.model), p.log).Answer(ctx, r, watch)
	if err != nil && a.Usage == (Usage{}) {
		return Answer{}, err
	}
	if err != nil {
		a.Provider = pr.server.Name
	}
	a.Usage.Micros = p.cost(a, name)
	return a, err
}

// addPrices adds what a request costs at the price of its model, and the thinking of models whose cap does not include
// it.
func (p *Providers) addPrices(r Request, c *reeve.ModelCost) {
	pr, name, err := p.resolve(r.Model)
	if err != nil {
		return // the request fails
	}
	for _, older := range anthropicBudgetModels {
		if r.Effort != "" && strings.HasPrefix(name, older) {
			c.Thinking = int64(anthropicThinkingBudgets[r.Effort])
		}
	}
	price, ok := p.prices.Find(pr.server.Name, name)
	if !ok {
		return
	}
	if price.Long != nil && c.Input > price.Over {
		price = *price.Long
	}
	c.InputPrice = max(price.Input, valueOr(price.CacheRead, 0), valueOr(price.CacheWrite, 0))
	c.OutputPrice = price.Output
}

// maxUnpriced limits how many models without a price are logged. Clients may send any model name, and some servers
// accept all of them.
const maxUnpriced = 100

// cost returns the price of an answer in millionths of a dollar. A model without a price costs nothing. The first time,
// cost logs a warning.
func (p *Providers) cost(a Answer, requested string) int64 {
	price, ok := p.prices.Find(a.Provider, a.Model)
	if !ok {
		price, ok = p.prices.Find(a.Provider, requested)
	}
	if !ok {
		name := a.Provider + "/" + requested
		p.mu.Lock()
		isNew := !p.unpriced[name] && len(p.unpriced) < maxUnpriced
		if isNew {
			p.unpriced[name] = true
		}
		p.mu.Unlock()
		if isNew {
			p.log.Warn("model has no price; its answers count as free", "model", name, "hint",
				"add the model to the file of model.prices")
		}
		return 0
	}
	return price.Micros(a.Usage)
}

// Names lists the usable models: the aliases, the models of the script, and those of the price table whose provider has
// a key. A provider may have more.
func (p *Providers) Names() []string {
	all := map[string]bool{"rehearsal": true, p.defaultModel: true}
	for n := range p.names {
		all[n] = p.Check(n) == nil
	}
	for _, n := range p.script.Models {
		all[n] = true
	}
	for n := range p.prices {
		if providerName, _, _ := strings.Cut(n, "/"); !strings.HasSuffix(n, "/*") &&
			p.byName[providerName].model != nil &&
			p.byName[providerName].missing == "" {
			all[n] = true
		}
	}
	maps.DeleteFunc(all, func(_ string, can bool) bool { return !can })
	return slices.Sorted(maps.Keys(all))
}

// CanonicalName returns a model name that is safe as a metric label: the model that answered, else the requested one,
// as spelled in the config, the script or the price table. For all other models it returns "other", because clients may
// send any model name.
func (p *Providers) CanonicalName(requested, provider, answered string) string {
	if name, ok := p.findKnown(provider, answered); ok {
		return name
	}
	if pr, model, err := p.resolve(requested); err == nil {
		if name, ok := p.findKnown(pr.server.Name, model); ok {
			return name
		}
	}
	return "other"
}

func (p *Providers) findKnown(provider, model string) (string, bool) {
	switch {
	case p.configured[provider+"/"+model], provider == rehearsalServer.Name && slices.Contains(p.script.Models, model):
		return model, true
	case provider == rehearsalServer.Name:
		return "rehearsal", true
	}
	priced, ok := p.prices.findName(provider, model)
	_, name, _ := strings.Cut(priced, "/")
	return name, ok && name != "*"
}

// Status says whether a provider is configured.
type Status struct {
	Provider string
	Missing  string // the required setting that is not set; empty if there is none
}

// Status lists the providers. It sends no request.
func (p *Providers) Status() []Status {
	out := []Status{{Provider: "rehearsal"}}
	for _, name := range slices.Sorted(maps.Keys(p.byName)) {
		out = append(out, Status{Provider: name, Missing: p.byName[name].missing})
	}
	return out
}
