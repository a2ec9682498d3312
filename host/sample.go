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

// SampleName is what the sample automation is called.
const SampleName = "triage"

// InstallSample puts something to try things with into the workspace default, if no agent was ever made there: a small
// mailbox, and an automation that sorts it, ready to run without any key. It tells whether it did. Nothing calls it but
// a program that wants to: "reeve serve --sample" and "reeve init --sample".
func (h *Host) InstallSample(ctx context.Context) (put bool, err error) {
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
	if reeve.CodeOf(err) == reeve.AlreadyExists { // another server on the same database was faster
		return false, nil
	}
	return err == nil, err
}
