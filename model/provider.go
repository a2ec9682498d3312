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

// Providers is the model of models: it asks the provider that a request's model belongs to, again if need be, and
// counts what it costs.
//
// A model is named provider/model, or by a name of the config, or by its own when that begins as its provider's names
// do; rehearsal is one without a key. No name at all is the default.
type Providers struct {
	by        map[string]provider
	names     map[string]string
	script    Script
	rehearsal Model
	prices    Prices
	first     string
	written   map[string]bool // by provider/model: those that the config names
	log       *slog.Logger

	mu       sync.Mutex
	unpriced map[string]bool
}

// Open reads a config and says what is wrong with it. It asks nobody yet.
func Open(c Config) (*Providers, error) {
	p := &Providers{names: c.Names, log: c.Log, written: map[string]bool{}, unpriced: map[string]bool{}}
	if p.log == nil {
		p.log = slog.Default()
	}
	var err error
	if p.by, err = c.providers(); err != nil {
		return nil, err
	}
	if p.prices, err = LoadPrices(c.Prices); err != nil {
		return nil, at("model.prices", err)
	}
	if c.Script != "" {
		if p.script, err = ReadScript(c.Script); err != nil {
			return nil, at("model.script", err)
		}
	}
	p.rehearsal = Rehearsal(p.script)
	if p.first = c.Default; p.first == "" {
		p.first = p.fallback()
	}
	for _, alias := range slices.Sorted(maps.Keys(c.Names)) { // of several mistakes always the same is told
		to := c.Names[alias]
		if _, again := c.Names[to]; again || alias == "" {
			return nil, at("model.names."+alias, reeve.Errorf(reeve.Validation, "model.names: %s is another name again",
				alias).Hintf("Write %s: provider/model.", alias))
		}
		if _, _, err := p.find(to); err != nil && reeve.CodeOf(err) == reeve.NotFound {
			return nil, at("model.names."+alias, reeve.Errorf(reeve.Validation, "model.names: %s: %s", alias,
				reeve.AsError(err).Message).Hintf("%s", reeve.AsError(err).Hint))
		}
	}
	if _, _, err := p.find(p.first); err != nil {
		e := reeve.AsError(err)
		return nil, at("model.default", reeve.Errorf(reeve.Validation, "model.default cannot be used: %s", e.Message).
			Hintf("%s", e.Hint))
	}
	for _, name := range append(slices.Collect(maps.Values(c.Names)), p.first) {
		if who, model, err := p.find(name); err == nil {
			p.written[who.server.Name+"/"+model] = true
		}
	}
	return p, nil
}

// fallback is the default model when none is configured.
func (p *Providers) fallback() string {
	for _, f := range first {
		if pr := p.by[f.provider]; pr.missing == "" && pr.server.Key != "" {
			return f.provider + "/" + f.model
		}
	}
	return "rehearsal"
}

// Default is the model that is asked when a request names none.
func (p *Providers) Default() string { return p.first }

// prefixes are how the names of providers' models begin.
var prefixes = []struct{ begins, provider string }{
	{"claude-", "anthropic"}, {"gpt-", "openai"}, {"chatgpt-", "openai"}, {"codex-", "openai"}, {"o1", "openai"},
	{"o3", "openai"}, {"o4", "openai"}, {"gemini-", "gemini"},
}

// find resolves a name to who is asked, and under which name.
func (p *Providers) find(name string) (provider, string, error) {
	if name == "" {
		name = p.first
	}
	if to, ok := p.names[name]; ok {
		name = to
	}
	if name == "rehearsal" {
		return provider{server: rehearsalServer, model: p.rehearsal}, p.rehearsed(), nil
	}
	if slices.Contains(p.script.Models, name) {
		return provider{server: rehearsalServer, model: p.rehearsal}, name, nil
	}
	who, rest, ok := strings.Cut(name, "/")
	if ok && who == "rehearsal" {
		return provider{server: rehearsalServer, model: p.rehearsal}, rest, nil
	}
	if !ok {
		who, rest = "", name
		for _, x := range prefixes {
			if strings.HasPrefix(name, x.begins) {
				who = x.provider
				break
			}
		}
		if who == "" && strings.Contains(name, ":") {
			who = "ollama" // only there names have tags
		}
	}
	pr, known := p.by[who]
	switch {
	case !known || rest == "":
		return provider{}, "", reeve.Errorf(reeve.NotFound, "there is no model %q", name).
			Hintf("Write provider/model, with one of %s; or rehearsal, which needs no key.",
				strings.Join(slices.Sorted(maps.Keys(p.by)), ", "))
	case pr.missing != "":
		return provider{}, "", reeve.Errorf(reeve.ModelFailed, "%s has no key, so %s cannot be asked", who, name).
			Hintf("Set %s.", pr.missing)
	default:
		return pr, rest, nil
	}
}

// Resolve gives the provider that a model belongs to, and the provider's own name of it. Of a name that is not known it
// gives the
// name alone.
func (p *Providers) Resolve(name string) (provider, model string) {
	who, own, err := p.find(name)
	if err == nil {
		return who.server.Name, own
	}
	if to, ok := p.names[name]; ok {
		name = to
	}
	if before, after, ok := strings.Cut(name, "/"); ok && p.by[before].model != nil { // it has no key
		return before, after
	}
	return "", name
}

// rehearsed is the name under which the rehearsal model is asked when it is only called by its kind.
func (p *Providers) rehearsed() string {
	if len(p.script.Models) > 0 {
		return p.script.Models[0]
	}
	return "rehearsal"
}

// Check says whether a model could be asked, without asking it.
func (p *Providers) Check(name string) error {
	_, _, err := p.find(name)
	return err
}

// Answer implements Model.
func (p *Providers) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	pr, name, err := p.find(r.Model)
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

// mostUnpriced is of how many models without a price it is said: people may ask for any name, and there are servers
// that answer to any.
const mostUnpriced = 100

// cost is what an answer costs. A model without a price costs nothing, which is said once.
func (p *Providers) cost(a Answer, asked string) int64 {
	price, ok := p.prices.Find(a.Provider, a.Model)
	if !ok {
		price, ok = p.prices.Find(a.Provider, asked)
	}
	if !ok {
		name := a.Provider + "/" + asked
		p.mu.Lock()
		news := !p.unpriced[name] && len(p.unpriced) < mostUnpriced
		if news {
			p.unpriced[name] = true
		}
		p.mu.Unlock()
		if news {
			p.log.Warn("a model has no price, so its answers count as free", "model", name, "hint",
				"add it to the file named by model.prices")
		}
		return 0
	}
	return price.Micros(a.Usage)
}

// Names lists the models that can be asked: those of the config and the script, and the known ones of each provider
// that is ready. A provider may have more.
func (p *Providers) Names() []string {
	all := map[string]bool{"rehearsal": true, p.first: true}
	for n := range p.names {
		all[n] = p.Check(n) == nil
	}
	for _, n := range p.script.Models {
		all[n] = true
	}
	for n := range p.prices {
		if who, _, _ := strings.Cut(n, "/"); !strings.HasSuffix(n, "/*") && p.by[who].model != nil &&
			p.by[who].missing == "" {
			all[n] = true
		}
	}
	maps.DeleteFunc(all, func(_ string, can bool) bool { return !can })
	return slices.Sorted(maps.Keys(all))
}

// CanonicalName names a model for those who count answers by it: the one that answered, else the one that was asked
// for, as the config, the script or the price table has it. All others are "other": people may ask for any name, and
// there are servers that answer to any.
func (p *Providers) CanonicalName(asked, provider, answered string) string {
	if name, ok := p.known(provider, answered); ok {
		return name
	}
	if who, model, err := p.find(asked); err == nil {
		if name, ok := p.known(who.server.Name, model); ok {
			return name
		}
	}
	return "other"
}

func (p *Providers) known(provider, model string) (string, bool) {
	switch {
	case p.written[provider+"/"+model], provider == rehearsalServer.Name && slices.Contains(p.script.Models, model):
		return model, true
	case provider == rehearsalServer.Name:
		return "rehearsal", true
	}
	priced, ok := p.prices.find(provider, model)
	_, name, _ := strings.Cut(priced, "/")
	return name, ok && name != "*"
}

// Status is how a provider stands.
type Status struct {
	Provider string
	Missing  string // the setting that is missing; empty when it can be asked
}

// Status lists the providers, for people who look for what is wrong. Nobody is asked.
func (p *Providers) Status() []Status {
	out := []Status{{Provider: "rehearsal"}}
	for _, name := range slices.Sorted(maps.Keys(p.by)) {
		out = append(out, Status{Provider: name, Missing: p.by[name].missing})
	}
	return out
}
