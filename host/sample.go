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

// InstallSample adds a small mailbox and an automation that sorts it without an API key to the workspace default. The
// automation begins with a dry run, whose plan a person can apply. A second agent asks to write a file, so that a call
// waits for approval. InstallSample does nothing if the workspace has agents. It reports whether it installed the
// sample. Only "reeve serve --sample", "reeve init --sample" and programs that want a sample call it.
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
	if err != nil {
		return false, err
	}
	if _, err := h.services.automations.Start(ctx, workspace, SampleName, "owner",
		reeve.AutomationRunRequest{Type: reeve.DryRun}); err != nil {
		return false, err
	}
	return true, h.askToWriteSample(ctx, workspace)
}

const (
	sampleWriter = "scribe"
	sampleFile   = `{"path": "/shared/week.md", "content": "# The week at Fernhill Nursery\n\n` +
		`- The greenhouse glass is paid by Friday.\n- Besuch on Thursday: show the new beds.\n` +
		`- Answer the complaint about the damaged ferns.\n"}`
)

// askToWriteSample adds an agent that asks before it writes, and makes a call of it that waits for approval.
func (h *Host) askToWriteSample(ctx context.Context, workspace string) error {
	agent := reeve.Agent{ID: h.db.NewID(reeve.PrefixAgent), WorkspaceID: workspace, Name: sampleWriter,
		Kind: "assistant", Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, Categories: []string{},
		Policy: reeve.Policy{Tools: map[string]reeve.PolicyAnswer{"file_write": reeve.Ask, "file_delete": reeve.Allow}},
		Config: json.RawMessage("{}")}
	if err := h.db.Update(ctx, func(tx *store.Tx) error {
		agent.CreatedAt = tx.Now()
		if err := tx.Agents().InsertAgent(ctx, agent); err != nil {
			return err
		}
		for _, id := range []string{"file_list", "file_read", "file_write", "file_delete"} {
			tool, err := tx.Agents().GetTool(ctx, workspace, id)
			if err == nil {
				err = tx.Agents().Attach(ctx, agent, tool, json.RawMessage("{}"))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	_, err := h.services.gate.Call(ctx, reeve.Call{Workspace: workspace, Agent: agent.ID, Tool: "file_write",
		Args: json.RawMessage(sampleFile), User: "owner", Via: reeve.ViaGo,
		Reason: "A summary of the mail of this week, for the notice board"})
	return err
}
