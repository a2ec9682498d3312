package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reeve"
	"reeve/client"
)

// piped shows a turn to a program: the answer, whole, or with --json every frame as a line.
type piped struct {
	*talk
	said  bool
	last  reeve.Frame
	waits *reeve.Frame // a call waits for a person
}

func (p *piped) frame(_ context.Context, f reeve.Frame) error {
	p.last = f
	if p.json {
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	switch f.Type {
	case reeve.FrameMessage:
		p.said = true
		if !p.json {
			printContent(p.out, f.Text)
		}
	case reeve.FrameApproval:
		p.waits = &f
		return client.ErrStop
	default:
	}
	return nil
}

// guest shows what another agent says that was called in: with --json all of it, else only that it waits for a person.
func (p *piped) guest(ctx context.Context, f reeve.Frame) error {
	if p.json || f.Type == reeve.FrameApproval {
		said, last := p.said, p.last
		err := p.frame(ctx, f)
		p.said, p.last = said, last
		return err
	}
	return nil
}

// end says how it ended.
func (p *piped) end(ctx context.Context) error {
	switch {
	case p.waits != nil && p.waits.ApprovalID != "":
		p.note("%s waits for a person: reeve approvals approve %s", p.waits.Tool, p.waits.ApprovalID)
		p.note("then go on with: reeve chat %s --conversation %s", p.conversation.AgentID, p.conversation.ID)
		return silent{exitNotDone}
	case p.waits != nil:
		p.note("%s waits: %s", p.waits.Tool, plain(p.waits.Message))
		return silent{exitNotDone}
	case p.last.State == reeve.RunCompleted && !p.said && !p.json:
		return p.output(ctx, p.last.TurnID)
	case p.last.State == reeve.RunCompleted:
		return nil
	}
	return &reeve.Error{Code: p.last.Code, Message: fmt.Sprintf("the turn is %s: %s", p.last.State, p.last.Message)}
}

// output shows what a turn came to that said nothing on the way.
func (t *talk) output(ctx context.Context, turn string) error {
	v, err := t.client.Turns().Get(context.WithoutCancel(ctx), turn)
	if err == nil {
		printContent(t.out, plain(v.Output))
	}
	return err
}

// shown shows a turn to a person, as it goes on.
type shown struct {
	*talk
	text   string // what was shown of the message that is being made
	said   bool
	guests map[string]string // agents that were called in, by turn
}

func (s *shown) frame(ctx context.Context, f reeve.Frame) error {
	switch f.Type {
	case reeve.FrameToken:
		s.token(f)
	case reeve.FrameMessage:
		s.whole(f)
	case reeve.FrameTool:
		s.fresh()
		fmt.Fprintf(s.err, "* %s %s\n", plain(f.Tool), cut(string(f.Args), 100))
	case reeve.FrameResult:
		s.fresh()
		mark := "="
		if f.IsError {
			mark = "!"
		}
		fmt.Fprintf(s.err, "  %s %s: %s\n", mark, plain(f.Tool), cut(f.Content, 100))
	case reeve.FrameMedia:
		s.fresh()
		if f.Text != "" {
			fmt.Fprintln(s.out, plain(f.Text))
		}
		for _, a := range f.Attachments {
			fmt.Fprintf(s.err, "  + %s (%s, %d bytes): reeve conversations media %s %s > FILE\n", plain(a.Name),
				plain(a.MediaType), a.Size, s.conversation.ID, a.Hash)
		}
	case reeve.FrameApproval:
		s.fresh()
		return s.approval(ctx, f)
	case reeve.FrameError:
		s.fresh()
		s.show(&reeve.Error{Code: f.Code, Message: f.Message, Hint: f.Hint})
	case reeve.FrameComplete:
		s.fresh()
		if f.State == reeve.RunCancelled {
			s.note("the turn was ended")
		}
		if f.State == reeve.RunCompleted && !s.said {
			return s.output(ctx, f.TurnID)
		}
	case reeve.FrameConnected, reeve.FrameStarted, reeve.FramePong:
	}
	return nil
}

// guest shows what another agent says and does that was called in, under its name.
func (s *shown) guest(ctx context.Context, f reeve.Frame) error {
	switch f.Type {
	case reeve.FrameStarted:
		s.fresh()
		name := f.AgentID
		if a, err := s.client.Agents().Get(ctx, f.AgentID); err == nil {
			name = a.Name
		}
		s.guests[f.TurnID] = plain(name)
	case reeve.FrameMessage:
		s.fresh()
		fmt.Fprintf(s.out, "[%s] %s\n", s.guests[f.TurnID], plain(f.Text))
	case reeve.FrameTool, reeve.FrameResult, reeve.FrameMedia, reeve.FrameApproval:
		return s.frame(ctx, f)
	default:
	}
	return nil
}

// token shows a piece as it comes. What the agent thinks before it speaks is not shown.
func (s *shown) token(f reeve.Frame) {
	switch {
	case f.Discard && s.text != "":
		s.fresh()
		s.note("(that broke off; here it is anew)")
	case !f.Reasoning && !f.Discard:
		fmt.Fprint(s.out, plain(f.Text))
		s.text += f.Text
	}
}

// whole shows what of a message has not been shown.
func (s *shown) whole(f reeve.Frame) {
	rest, ok := strings.CutPrefix(f.Text, s.text)
	if !ok {
		s.fresh()
		rest = f.Text
	}
	fmt.Fprint(s.out, plain(rest))
	s.text, s.said = f.Text, true
	s.fresh()
}

// fresh begins a new line, if there is something on this one.
func (s *shown) fresh() {
	if s.text != "" && !strings.HasSuffix(s.text, "\n") {
		fmt.Fprintln(s.out)
	}
	s.text = ""
}

// approval asks the person. What cannot be decided here is said, and the turn waits.
func (s *shown) approval(ctx context.Context, f reeve.Frame) error {
	fmt.Fprintf(s.err, "? %s waits for you: %s\n", plain(f.Tool), plain(f.Message))
	details(s.err, "  arguments", pretty(f.Args), "  would change", f.Preview)
	if f.ApprovalID == "" {
		return nil
	}
	for {
		answer, ok := s.ask("  allow it? [y/n] ", nil)
		var err error
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			_, err = s.client.Approvals().Approve(ctx, f.ApprovalID, "")
		case "n", "no":
			_, err = s.client.Approvals().Deny(ctx, f.ApprovalID, "")
		default:
			if ok {
				continue
			}
			s.note("it waits: reeve approvals approve %s", f.ApprovalID)
			return client.ErrStop
		}
		if reeve.CodeOf(err) == reeve.Conflict { // somebody else was faster
			s.note("it was decided already")
			err = nil
		}
		return err
	}
}
