package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"reeve"
	"reeve/model"
)

// AutomationRunner runs automations as steps of turns.
type AutomationRunner interface {
	RunAsStep(ctx context.Context, s reeve.AutomationStep, server reeve.RunServer) (json.RawMessage, error)
}

// automationStep runs an automation in place of the built-in assembler or extractor.
type automationStep struct {
	steps      AutomationRunner
	server     reeve.RunServer
	run        reeve.Run
	automation string
	tries      int
}

// chooseAssembler returns the assembler of the turn.
func (v *runInfo) chooseAssembler() Assembler {
	switch {
	case v.set.Assembly != "":
		return &automationStep{steps: v.Steps, server: v.server, run: v.run, automation: v.set.Assembly}
	case v.Assemble != nil:
		return v.Assemble
	}
	return DefaultAssembler{}
}

// chooseExtractor returns the extractor of the turn, or nil.
func (v *runInfo) chooseExtractor() Extractor {
	if v.set.Extraction != "" {
		return &automationStep{steps: v.Steps, server: v.server, run: v.run, automation: v.set.Extraction}
	}
	return v.Extract
}

// scriptAssemblyInput is the input of an automation that assembles: all data, and the request of the built-in
// assembler.
type scriptAssemblyInput struct {
	AssemblyInput
	Request model.Request `json:"request"`
}

// scriptedRequest is the value that the automation returns.
type scriptedRequest struct {
	model.Request
	Messages []struct {
		model.Message
		Text string `json:"text"`
	} `json:"messages"`
}

// Assemble runs the automation to make the request. Attachments are replaced by references, which the script may use.
func (s *automationStep) Assemble(ctx context.Context, in AssemblyInput) (r model.Request, err error) {
	ask, err := DefaultAssembler{}.Assemble(ctx, in)
	if err != nil {
		return r, err
	}
	var kept attachments
	in.UserMessage = kept.remove([]model.Message{in.UserMessage})[0]
	turns := make([]TurnSnapshot, len(in.RecentTurns))
	for i, t := range in.RecentTurns {
		t.Messages = kept.remove(t.Messages)
		turns[i] = t
	}
	in.RecentTurns, ask.Messages = turns, kept.remove(ask.Messages)
	text, err := json.Marshal(scriptAssemblyInput{in, ask})
	if err != nil {
		return r, err
	}
	value, err := s.steps.RunAsStep(ctx, reeve.AutomationStep{Run: s.run, Automation: s.automation, Input: text},
		s.server)
	if err != nil {
		return r, err
	}
	return s.parseRequest(value, in, ask, kept)
}

// parseRequest decodes the value of the script. Missing fields are filled from the built-in assembler's request.
func (s *automationStep) parseRequest(value json.RawMessage, in AssemblyInput, ask model.Request,
	kept attachments) (r model.Request, err error) {
	wrong := func(format string, args ...any) (model.Request, error) {
		return r, reeve.Errorf(reeve.Validation, "automation %s returned no valid request: %s", s.automation,
			fmt.Sprintf(format, args...)).
			Hintf(`it must return {"messages": [{"role": "user", "text": "..."}], "system": "...", ...}; docs/automations.md has the contract`)
	}
	var out scriptedRequest
	out.System, out.Effort = ask.System, ask.Effort // an explicit empty string removes them
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return wrong("%v", err)
	}
	r = out.Request
	for i, m := range out.Messages {
		if m.Text != "" {
			m.Parts = append([]model.Part{{Type: model.Text, Text: m.Text}}, m.Parts...)
		}
		if m.Role != model.User && m.Role != model.Assistant || len(m.Parts) == 0 {
			return wrong("message %d has no role or no content", i+1)
		}
		for j := range m.Parts {
			if err := kept.restore(&m.Parts[j]); err != nil {
				return wrong("message %d: %v", i+1, err)
			}
		}
		r.Messages = append(r.Messages, m.Message)
	}
	if len(r.Messages) == 0 {
		return wrong("it has no messages")
	}
	known := map[string]bool{}
	for _, id := range in.ToolIDs {
		known[id] = true
	}
	for _, t := range r.Tools {
		if !known[t.Name] {
			return wrong("the agent has no tool %q", t.Name)
		}
	}
	if r.Tools == nil {
		r.Tools = ask.Tools
	}
	if r.Model == "" {
		r.Model = ask.Model
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = ask.MaxTokens
	}
	if r.Temperature == nil {
		r.Temperature = ask.Temperature
	}
	return r, nil
}

// Extract runs the automation to extract notes. The notes of a value {"notes": [...]} are stored; any other value is
// ignored. Each try has its own key, so a resumed turn does not repeat a completed extraction.
func (s *automationStep) Extract(ctx context.Context, in ExtractionInput) ([]string, error) {
	s.tries++
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	value, err := s.steps.RunAsStep(ctx, reeve.AutomationStep{Run: s.run, Automation: s.automation, Key: "extract:" +
		strconv.Itoa(s.tries), Input: text}, s.server)
	if err != nil {
		return nil, err
	}
	var out struct {
		Notes []string `json:"notes"`
	}
	if json.Unmarshal(value, &out) != nil {
		return nil, nil // the automation stores notes itself
	}
	return out.Notes, nil
}

// attachments holds the bytes of attachments while a script works on the messages.
type attachments [][]byte

const attachmentScheme = "attachment:"

// remove returns the messages with references instead of bytes.
func (k *attachments) remove(list []model.Message) []model.Message {
	out := make([]model.Message, len(list))
	for i, m := range list {
		parts := make([]model.Part, len(m.Parts))
		for j, p := range m.Parts {
			if len(p.Data) > 0 {
				p.URL = attachmentScheme + strconv.Itoa(len(*k))
				*k, p.Data = append(*k, p.Data), nil
			}
			parts[j] = p
		}
		out[i] = model.Message{Role: m.Role, Parts: parts}
	}
	return out
}

// restore replaces the reference in a part by the bytes that remove took out.
func (k attachments) restore(p *model.Part) error {
	number, ours := strings.CutPrefix(p.URL, attachmentScheme)
	if !ours {
		return nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(k) {
		return fmt.Errorf("attachment %s not found", p.URL)
	}
	p.Data, p.URL = k[n], ""
	return nil
}
