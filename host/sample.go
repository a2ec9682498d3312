package host

import (
	"context"
	_ "embed" // for the sample's script
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

//go:embed sample/triage.js
var sampleScript string

// SampleName is the name of the sample automation.
const SampleName = "triage"

// InstallSample adds a small mailbox, and an automation that sorts it without an API key, to the workspace default. It
// does nothing if the workspace has agents. It reports whether it installed the sample. Only "reeve serve --sample",
// "reeve init --sample" and programs that want a sample call it.
func (h *Host) InstallSample(ctx context.Context) (isInstalled bool, err error) {
	if err := h.open(ctx); err != nil {
		return false, err
	}
	const workspace = "default"
	var agents []reeve.Agent
	if err := h.db.View(ctx, func(s *store.Snap) (err error) {
		agents, err = s.Agents().ListAgents(ctx, workspace, "", 1)
		return err
	}); err != nil || len(agents) > 0 {
		return false, err
	}
	if _, err := h.InstallSampleMail(ctx, workspace); err != nil {
		return false, err
	}
	agent := reeve.Agent{WorkspaceID: workspace, Name: SampleName, Kind: "assistant", Lifecycle: reeve.AgentActive,
		Mode: reeve.Hybrid, Categories: []string{}, Config: json.RawMessage("{}")}
	_, err = h.services.automations.Create(ctx, workspace, "owner", agent, reeve.AutomationRequest{Name: SampleName,
		Tools:         []string{"email_get", "email_search", "file_write"},
		ScriptRequest: reeve.ScriptRequest{Source: sampleScript, Comment: "the sample: sorts the sample mailbox"}})
	if reeve.CodeOf(err) == reeve.AlreadyExists { // another server has installed it at the same time
		return false, nil
	}
	return err == nil, err
}
