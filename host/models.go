package host

import (
	"reeve"
	"reeve/internal/automation"
	"reeve/model"
)

// toolModels are the models that tools may ask. A host has them once it is open.
type toolModels struct{ h *Host }

// Model returns the model that answers for a name. It fails if the server does not know the name, or if it would only
// rehearse: a tool must never return an invented answer.
func (m toolModels) Model(name string) (model.Model, error) {
	if m.h.cfg.Model != nil {
		return model.CountUsage(m.h.cfg.Model, m.h.log), nil
	}
	m.h.openMu.Lock()
	runs := m.h.runs
	m.h.openMu.Unlock()
	if runs == nil || runs.models == nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the server is not ready")
	}
	if provider, _ := runs.models.Resolve(name); provider == "rehearsal" {
		return nil, reeve.Errorf(reeve.Unsupported, "no model is configured, and a rehearsal cannot answer").
			Hintf("an operator can set the key of a provider and model.default; see docs/models.md")
	}
	return runs.models, nil
}

// refuseRehearsal returns a function that keeps the rehearsal model from playing the planner and the maintainer. A
// model that understands nothing must not write scripts. With a script file it may: a person wrote its answers.
func refuseRehearsal(models *model.Providers) func(a reeve.Agent, name string) error {
	return func(a reeve.Agent, name string) error {
		if models == nil || a.Kind != automation.PlannerKind && a.Kind != automation.MaintainerKind ||
			!models.OnlyRehearses(name) {
			return nil
		}
		return reeve.Errorf(reeve.Unsupported, "no model is configured, and %s needs one", a.Name).
			Hintf("an operator can set the key of a provider and model.default; see docs/models.md")
	}
}
