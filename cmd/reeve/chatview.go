package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"reeve"
	"reeve/client"
)

// pipeView prints only the messages of a turn, or with --json each frame as a line. It is used if standard input is
// not a terminal.
type pipeView struct {
	*chatSession
	hasMessage bool
	last       reeve.Frame
	approval   *reeve.Frame // set if a call waits for a person
}

func (p *pipeView) showFrame(_ context.Context, f reeve.Frame) error {
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
		p.hasMessage = true
		if !p.json {
			printContent(p.out, f.Text)
		}
	case reeve.FrameApproval:
		p.approval = &f
		return client.ErrStop
	default:
	}
	return nil
}

// showDelegateFrame prints the frames of a delegate and reports of schedules with --json.
// Otherwise it only looks for approvals.
func (p *pipeView) showDelegateFrame(ctx context.Context, f reeve.Frame) error {
	if p.json || f.Type == reeve.FrameApproval {
		hasMessage, last := p.hasMessage, p.last
		err := p.showFrame(ctx, f)
		p.hasMessage, p.last = hasMessage, last
		return err
	}
	return nil
}

// finish reports how the turn ended.
func (p *pipeView) finish(ctx context.Context) error {
	switch {
	case p.approval != nil && p.approval.ApprovalID != "":
		p.notef("%s needs approval: reeve approvals approve %s", p.approval.Tool, p.approval.ApprovalID)
		p.notef("then continue: reeve chat %s --conversation %s", p.conversation.AgentID, p.conversation.ID)
		return exitError{exitPending}
	case p.approval != nil:
		p.notef("%s waits: %s", p.approval.Tool, sanitize(p.approval.Message))
		return exitError{exitPending}
	case p.last.State == reeve.RunCompleted && !p.hasMessage && !p.json:
		return p.printOutput(ctx, p.last.TurnID)
	case p.last.State == reeve.RunCompleted:
		return nil
	}
	return &reeve.Error{Code: p.last.Code, Message: fmt.Sprintf("turn %s: %s", p.last.State, p.last.Message)}
}

// printOutput prints the output of a turn that sent no message.
func (t *chatSession) printOutput(ctx context.Context, turn string) error {
	v, err := t.client.Turns().Get(context.WithoutCancel(ctx), turn)
	if err == nil {
		printContent(t.out, sanitize(v.Output))
	}
	return err
}

// terminalView shows a turn in a terminal while it runs: messages on standard output, calls and questions on standard
// error.
type terminalView struct {
	*chatSession
	shownText  string // part of the current message that is on the screen
	hasMessage bool
	delegates  map[string]string // names of the delegates, by turn id
}

func (s *terminalView) showFrame(ctx context.Context, f reeve.Frame) error {
	switch f.Type {
	case reeve.FrameToken:
		s.showToken(f)
	case reeve.FrameMessage:
		s.showMessage(f)
	case reeve.FrameTool:
		s.endLine()
		fmt.Fprintf(s.err, "* %s %s\n", sanitize(f.Tool), truncate(string(f.Args), 100))
	case reeve.FrameResult:
		s.endLine()
		mark := "="
		if f.IsError {
			mark = "!"
		}
		fmt.Fprintf(s.err, "  %s %s: %s\n", mark, sanitize(f.Tool), truncate(f.Content, 100))
	case reeve.FrameMedia:
		s.endLine()
		if f.Text != "" {
			fmt.Fprintln(s.out, sanitize(f.Text))
		}
		s.showFiles("media", f.Attachments)
	case reeve.FrameReport:
		s.endLine()
		fmt.Fprintf(s.out, "[%s] %s\n", sanitize(f.Title), sanitize(f.Text))
		s.showFiles("media", f.Attachments)
	case reeve.FrameApproval:
		s.endLine()
		return s.askApproval(ctx, f)
	case reeve.FrameError:
		s.endLine()
		s.showError(&reeve.Error{Code: f.Code, Message: f.Message, Hint: f.Hint})
	case reeve.FrameComplete:
		s.endLine()
		if f.State == reeve.RunCancelled {
			s.notef("the turn was cancelled")
		}
		if f.State == reeve.RunCompleted && !s.hasMessage {
			return s.printOutput(ctx, f.TurnID)
		}
	case reeve.FrameStarted:
		s.showFiles("attachments save", f.Attachments)
	case reeve.FrameConnected, reeve.FramePong:
	}
	return nil
}

// showFiles lists files of a frame, with the subcommand of reeve conversations that prints one.
func (s *terminalView) showFiles(command string, files []reeve.Attachment) {
	for _, a := range files {
		if a.Caption != "" {
			fmt.Fprintln(s.out, sanitize(a.Caption))
		}
		id := a.Hash
		if a.Number > 0 {
			id = strconv.Itoa(a.Number)
		}
		fmt.Fprintf(s.err, "  + %s (%s, %d bytes): reeve conversations %s %s %s > FILE\n", sanitize(a.Name),
			sanitize(a.MediaType), a.Size, command, s.conversation.ID, id)
	}
}

// showDelegateFrame shows the messages of a delegate with its name, and its calls. It also shows reports of schedules.
func (s *terminalView) showDelegateFrame(ctx context.Context, f reeve.Frame) error {
	switch f.Type {
	case reeve.FrameStarted:
		s.endLine()
		name := f.AgentID
		if a, err := s.client.Agents().Get(ctx, f.AgentID); err == nil {
			name = a.Name
		}
		s.delegates[f.TurnID] = sanitize(name)
	case reeve.FrameMessage:
		s.endLine()
		fmt.Fprintf(s.out, "[%s] %s\n", s.delegates[f.TurnID], sanitize(f.Text))
	case reeve.FrameTool, reeve.FrameResult, reeve.FrameMedia, reeve.FrameReport, reeve.FrameApproval:
		return s.showFrame(ctx, f)
	default:
	}
	return nil
}

// showToken prints a part of a message as it arrives. It does not print reasoning.
func (s *terminalView) showToken(f reeve.Frame) {
	switch {
	case f.Discard && s.shownText != "":
		s.endLine()
		s.notef("(the answer was interrupted; it starts again)")
	case !f.Reasoning && !f.Discard:
		fmt.Fprint(s.out, sanitize(f.Text))
		s.shownText += f.Text
	}
}

// showMessage prints the part of a message that is not on the screen yet.
func (s *terminalView) showMessage(f reeve.Frame) {
	rest, ok := strings.CutPrefix(f.Text, s.shownText)
	if !ok {
		s.endLine()
		rest = f.Text
	}
	fmt.Fprint(s.out, sanitize(rest))
	s.shownText, s.hasMessage = f.Text, true
	s.endLine()
}

// endLine starts a new line, unless the cursor is already at the start of a line.
func (s *terminalView) endLine() {
	if s.shownText != "" && !strings.HasSuffix(s.shownText, "\n") {
		fmt.Fprintln(s.out)
	}
	s.shownText = ""
}

// askApproval asks the user to approve or deny a call. If the input ends, the call keeps waiting. A call without an
// approval id cannot be decided here and is only shown.
func (s *terminalView) askApproval(ctx context.Context, f reeve.Frame) error {
	fmt.Fprintf(s.err, "? %s needs approval: %s\n", sanitize(f.Tool), sanitize(f.Message))
	printDetails(s.err, "  arguments", indentJSON(f.Args), "  would change", f.Preview)
	if f.ApprovalID == "" {
		return nil
	}
	for {
		answer, ok := s.prompt("  allow? [y/n] ", nil)
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
			s.notef("the call still needs approval: reeve approvals approve %s", f.ApprovalID)
			return client.ErrStop
		}
		if reeve.CodeOf(err) == reeve.Conflict { // another person decided first
			s.notef("the call was already decided")
			err = nil
		}
		return err
	}
}
