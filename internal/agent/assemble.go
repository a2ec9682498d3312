package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// Assembler makes the first request of a turn. The answers and results of the turn are appended to it.
type Assembler interface {
	Assemble(ctx context.Context, in AssemblyInput) (model.Request, error)
}

// AssemblyInput is the input of an assembler.
type AssemblyInput struct {
	WorkspaceID     string           `json:"workspace_id"`
	AgentID         string           `json:"agent_id"`
	ConversationID  string           `json:"conversation_id,omitempty" doc:"Conversation of the turn; empty for other runs"`
	TurnID          string           `json:"turn_id"`
	UserID          string           `json:"user_id,omitempty"`
	Agent           string           `json:"agent" doc:"The agent's name"`
	Others          []string         `json:"others,omitempty" doc:"Names of the other agents in the messages"`
	UserMessage     model.Message    `json:"user_message" doc:"The user's message"`
	RecentTurns     []TurnSnapshot   `json:"recent_turns" doc:"Earlier turns, oldest first. They are cached and must not be changed"`
	Summary         string           `json:"summary,omitempty" doc:"Summary of the turns or runs before the recent ones"`
	Memory          *AgentMemory     `json:"memory,omitempty" doc:"The agent's own state"`
	RecentRuns      []PastRun        `json:"recent_runs,omitempty" doc:"Outcomes of earlier runs for the same user, oldest first. Runs of the same schedule come before others"`
	Notes           []reeve.Note     `json:"notes,omitempty" doc:"Notes that fit the message, best first, then pinned and latest ones"`
	ActiveTurns     []ActiveTurn     `json:"active_turns,omitempty" doc:"Other open turns of the conversation"`
	ModelProfileID  string           `json:"model_profile_id" doc:"The model's name"`
	Instructions    string           `json:"instructions,omitempty" doc:"Instructions with variables inserted"`
	ToolIDs         []string         `json:"tool_ids"`
	ToolDefinitions []ToolDefinition `json:"tool_definitions"`
	Settings        Settings         `json:"settings"`
}

// TurnSnapshot is an earlier turn.
type TurnSnapshot struct {
	ID       string          `json:"id"`
	State    reeve.RunState  `json:"state,omitempty"`
	Input    string          `json:"input"`
	Output   string          `json:"output,omitempty"`
	AgentID  string          `json:"agent_id,omitempty" doc:"Agent that answered"`
	ParentID string          `json:"parent_id,omitempty" doc:"Turn whose call began this turn"`
	Messages []model.Message `json:"messages" doc:"Messages for the model; of other agents only their text, after their names"`
}

// ActiveTurn is another turn of the conversation that is still in progress.
type ActiveTurn struct {
	ID      string        `json:"id"`
	Input   string        `json:"input"`
	Pending []PendingCall `json:"pending,omitempty"`
}

// PendingCall is a call that has no result yet.
type PendingCall struct {
	Tool        string    `json:"tool"`
	OperationID string    `json:"operation_id"`
	Since       time.Time `json:"since"`
}

// ToolDefinition is a tool that the agent has.
type ToolDefinition struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Async       bool            `json:"async,omitempty"`
}

// assembly gathers what a run's first request is made from: instructions, tools, notes, the agent's state, and earlier
// turns or runs.
type assembly struct {
	*runInfo
	summarizeUpTo string           // the last turn or run that should be summarized, because not all of them are shown
	leftOut       []reeve.Omission // what the request does not show
	left          int              // tokens of the window (context_tokens) that are not used yet
}

// assembleRequest makes the turn's request, with retries and a timeout.
func (v *modelRun) assembleRequest(ctx context.Context) (r model.Request, err error) {
	if err := v.loadTools(ctx); err != nil {
		return r, err
	}
	a := &assembly{runInfo: &v.runInfo, leftOut: []reeve.Omission{}, left: v.set.ContextTokens}
	in, err := a.assemblyInput(ctx, v.listDefinitions())
	if err != nil {
		return r, err
	}
	v.summarizeUpTo, v.leftOut = a.summarizeUpTo, a.leftOut
	assembler := v.chooseAssembler()
	err = retryStep(ctx, func(ctx context.Context) error {
		r, err = assembler.Assemble(ctx, in)
		return err
	})
	if err != nil && ctx.Err() == nil {
		said := reeve.AsError(err)
		err = reeve.Errorf(reeve.AssemblyFailed, "request assembly failed: %s", said.Message).Hintf("%s", said.Hint)
	}
	return r, err
}

// assemblyInput reads the input of the assembler. The settings limit how much it reads, however long the conversation
// is.
func (v *assembly) assemblyInput(ctx context.Context, tools []ToolDefinition) (AssemblyInput, error) {
	in := AssemblyInput{WorkspaceID: v.run.WorkspaceID, AgentID: v.run.AgentID, ConversationID: v.conversation(),
		TurnID: v.run.ID, UserID: v.run.UserID, Agent: v.agent.Name,
		ModelProfileID: v.set.Model, Instructions: insertVariables(v.set.Instructions, v.log.info.Variables,
			v.set.Variables),
		Settings: v.set, RecentTurns: []TurnSnapshot{}, ToolDefinitions: tools}
	for _, t := range tools {
		in.ToolIDs = append(in.ToolIDs, t.ID)
	}
	if v.log.info.Model != "" {
		in.ModelProfileID = v.log.info.Model
	}
	given := v.clientHistory()
	in.Instructions = strings.TrimSpace(in.Instructions + "\n\n" + given.System)
	if given.MaxTokens > 0 {
		in.Settings.MaxTokens = given.MaxTokens
	}
	if given.Temperature != nil {
		in.Settings.Temperature = given.Temperature
	}
	if given.Effort != "" {
		in.Settings.Effort = given.Effort
	}
	vector := v.encodeInput(ctx)
	err := v.DB.View(ctx, func(s *store.Snap) (err error) {
		if err := v.readContext(ctx, s, &in, vector); err != nil || v.showsUntrusted {
			return err
		}
		v.showsUntrusted, err = s.Ledger().HasOutsideText(ctx, v.run.WorkspaceID, listShownRuns(in)...)
		return err
	})
	return in, err
}

// listShownRuns returns the ids of the runs whose texts the input has. Notices among the turns have no run.
func listShownRuns(in AssemblyInput) (ids []string) {
	for _, t := range in.RecentTurns {
		ids = append(ids, t.ID)
	}
	for _, t := range in.ActiveTurns {
		ids = append(ids, t.ID)
	}
	for _, r := range in.RecentRuns {
		ids = append(ids, r.ID)
	}
	return ids
}

// readContext reads what the request shows besides the instructions.
func (v *assembly) readContext(ctx context.Context, s *store.Snap, in *AssemblyInput, vector []float32) (err error) {
	if in.UserMessage, err = v.userMessage(ctx, s, v.log.inputs); err != nil {
		return err
	}
	people := newAgentNames(v.agent)
	if v.isGuest() && v.log.info.Agent != "" {
		name, err := people.get(ctx, s, v.log.info.Agent)
		if err != nil {
			return err
		}
		in.UserMessage = addSpeaker(in.UserMessage, name+" asks you")
	}
	notes, isMore, err := v.recallNotes(ctx, s, vector)
	if err != nil {
		return err
	}
	if isMore {
		v.leaveOut("notes", "", "only the %d notes that fit the message best and the %d pinned or latest ones are "+
			"shown", maxMatchingNotes, maxLatestNotes)
	}
	in.Notes = v.fitNotes(notes)
	if in.Memory, err = v.readMemory(ctx, s); err != nil {
		return err
	}
	in.Memory = v.fitMemory(in.Memory)
	if given := v.clientHistory().History; given != "" {
		in.RecentTurns, err = v.clientTurn(ctx, s, given)
		return err
	}
	if in.ConversationID == "" {
		in.RecentRuns, in.Summary, err = v.recallRuns(ctx, s)
		return err
	}
	if in.ActiveTurns, err = v.listActiveTurns(ctx, s); err != nil {
		return err
	}
	var summarized string
	if in.Summary, summarized, err = v.readSummary(ctx, s); err != nil {
		return err
	}
	if in.RecentTurns, err = v.recentTurns(ctx, s, people); err != nil {
		return err
	}
	in.Others = people.listOthers()
	return v.planSummary(ctx, s, in.RecentTurns, summarized)
}

// listDefinitions lists the agent's tools, then those of the client.
func (v *modelRun) listDefinitions() (list []ToolDefinition) {
	for _, t := range v.tools {
		if !v.isClientTool[t.ID] {
			list = append(list, ToolDefinition{ID: t.ID, Name: t.Name, Description: t.Description,
				InputSchema: t.Parameters, Async: t.Async})
		}
	}
	for _, t := range v.clientTools {
		list = append(list, ToolDefinition{ID: t.Name, Name: t.Name, Description: t.Description,
			InputSchema: t.Parameters})
	}
	return list
}

// userMessage returns the message of a user with its attachments.
func (v *assembly) userMessage(ctx context.Context, s *store.Snap, said []reeve.Message) (model.Message, error) {
	out := model.Message{Role: model.User}
	for _, m := range said {
		var info reeve.MessageInfo
		if err := json.Unmarshal(m.Metadata, &info); err != nil {
			return out, err
		}
		for _, a := range info.Attachments {
			p := model.Part{Type: model.Media, Name: a.Name, MediaType: a.MediaType, URL: a.URL}
			if a.Hash != "" {
				body, err := s.Ledger().GetPayload(ctx, v.run.WorkspaceID, store.ConversationPayload, a.Hash, 0, -1)
				if err != nil {
					return out, err
				}
				p.Data, p.URL = body.Body, ""
			}
			out.Parts = append(out.Parts, p)
		}
		if m.Content != "" {
			out.Parts = append(out.Parts, model.Part{Type: model.Text, Text: m.Content})
		}
	}
	return out, nil
}

// clientTurn returns the history that a client sent, as one earlier turn.
func (v *assembly) clientTurn(ctx context.Context, s *store.Snap, hash string) ([]TurnSnapshot, error) {
	body, err := s.Ledger().GetPayload(ctx, v.run.WorkspaceID, store.ConversationPayload, hash, 0, -1)
	if err != nil {
		return nil, err
	}
	t := TurnSnapshot{ID: "given"}
	if err := json.Unmarshal(body.Body, &t.Messages); err != nil {
		return nil, err
	}
	if len(t.Messages) == 0 {
		return []TurnSnapshot{}, nil
	}
	return []TurnSnapshot{t}, nil
}

// listActiveTurns lists the conversation's other open turns with their pending calls.
func (v *assembly) listActiveTurns(ctx context.Context, s *store.Snap) ([]ActiveTurn, error) {
	runs, err := s.Chat().ActiveTurns(ctx, v.run.SessionID, v.run.ID, 20)
	if err != nil {
		return nil, err
	}
	var out []ActiveTurn
	for _, r := range runs {
		if slices.ContainsFunc(v.run.Ancestors, func(a reeve.Ancestor) bool { return a.RunID == r.ID }) {
			continue // that turn called this one
		}
		t := ActiveTurn{ID: r.ID, Input: r.Input}
		ops, err := s.Chat().OpenOperations(ctx, v.run.WorkspaceID, r.ID, 20)
		if err != nil {
			return nil, err
		}
		for _, op := range ops {
			t.Pending = append(t.Pending, PendingCall{Tool: op.Tool, OperationID: op.ID, Since: op.CreatedAt})
		}
		out = append(out, t)
	}
	return out, nil
}

// DefaultAssembler is the built-in assembler. It sends instructions, open turns, notes, the agent's state, a summary of
// older turns or runs, as many recent turns or outcomes of runs as fit, and the user's message.
type DefaultAssembler struct{}

// Assemble returns the request.
func (DefaultAssembler) Assemble(_ context.Context, in AssemblyInput) (model.Request, error) {
	r := model.Request{Model: in.ModelProfileID, System: in.Instructions, MaxTokens: in.Settings.MaxTokens,
		Temperature: in.Settings.Temperature, Effort: in.Settings.Effort}
	if len(in.ActiveTurns) > 0 {
		var b strings.Builder
		b.WriteString("\n\nOther turns of this conversation are in progress. They are answered separately:\n")
		for _, t := range in.ActiveTurns {
			fmt.Fprintf(&b, "- %q", reeve.Truncate(t.Input, 200))
			for _, p := range t.Pending {
				fmt.Fprintf(&b, "; waits for %s since %s", p.Tool, p.Since.Format(time.RFC3339))
			}
			b.WriteByte('\n')
		}
		r.System = strings.TrimSpace(r.System + b.String())
	}
	if len(in.Others) > 0 {
		r.System = strings.TrimSpace(
			fmt.Sprintf("%s\n\nYou are %s. Other agents speak in this conversation too: %s. Their text follows "+
				"their names in brackets, as in [%s]. Do not put your own name before your text.",
				r.System, in.Agent, strings.Join(in.Others, ", "), in.Others[0]))
	}
	for _, t := range in.ToolDefinitions {
		d := t.Description
		if t.Async {
			d += " (Asynchronous: the result arrives later by itself; continue without it.)"
		}
		r.Tools = append(r.Tools, model.Tool{Name: t.ID, Description: d, Parameters: t.InputSchema})
	}
	if len(in.Notes) > 0 {
		var b strings.Builder
		b.WriteString("[Your earlier notes, which may be relevant]")
		for _, n := range in.Notes {
			fmt.Fprintf(&b, "\n- %s", renderNote(n))
		}
		r.Messages = appendMessage(r.Messages, model.NewTextMessage(model.User, b.String()))
	}
	if in.Memory != nil {
		r.Messages = appendMessage(r.Messages, model.NewTextMessage(model.User, in.Memory.render()))
	}
	if in.Summary != "" {
		what := "conversation"
		if in.ConversationID == "" {
			what = "runs"
		}
		r.Messages = appendMessage(r.Messages, model.NewTextMessage(model.User,
			"[Summary of the earlier "+what+"]\n"+in.Summary))
	}
	if len(in.RecentRuns) > 0 {
		r.Messages = appendMessage(r.Messages, model.NewTextMessage(model.User, renderPastRuns(in.RecentRuns)))
	}
	for _, t := range in.RecentTurns {
		for _, m := range t.Messages {
			r.Messages = appendMessage(r.Messages, m)
		}
	}
	if len(in.UserMessage.Parts) > 0 {
		r.Messages = appendMessage(r.Messages, in.UserMessage)
	}
	return r, nil
}

// appendMessage appends a message. Some models require alternating roles, so consecutive messages of one role are
// merged.
func appendMessage(list []model.Message, m model.Message) []model.Message {
	if n := len(list); n > 0 && list[n-1].Role == m.Role {
		list[n-1].Parts = slices.Concat(list[n-1].Parts, m.Parts)
		return list
	}
	return append(list, m)
}
