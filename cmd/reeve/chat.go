package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

// chatOptions are the flags of the chat command.
type chatOptions struct {
	conversation string
	attach       []string
	variables    map[string]string
	model        string
}

func chatCommand(a *app) *cobra.Command {
	var o chatOptions
	c := &cobra.Command{
		Use: "chat AGENT [MESSAGE]", Short: "Talk to an agent", Args: cobra.RangeArgs(1, 2),
		Long: `Starts a conversation with an agent, or continues one with --conversation.

In a terminal, the command reads messages until you leave. It shows the agent's answer as it is
written, and the agent's calls and their results; it asks you about calls that need approval. Ctrl-C
cancels the current turn. At the prompt, Ctrl-C or Ctrl-D leaves.

With MESSAGE, or with a message on standard input, the command runs one turn and prints only the
answer to standard output. With --json it prints each frame as a line of JSON. The exit code is 3 if
the turn waits for a person.`,
		Example: `  reeve chat clerk
  reeve chat clerk "what is left to do?" --attach plan.pdf
  echo hi | reeve chat clerk
  reeve chat clerk --conversation conv_...`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t := &chatSession{app: a, client: c, options: o}
				if err := t.open(ctx, args[0]); err != nil {
					return err
				}
				if len(args) == 2 || !isInteractive(a.in) {
					return t.runOnce(ctx, args[1:])
				}
				return t.interact(ctx)
			})
		},
	}
	c.Flags().StringVar(&o.conversation, "conversation", "", "id of the conversation to continue (default: a new one)")
	c.Flags().StringArrayVar(&o.attach, "attach", nil, "file to attach to the first message; can be repeated")
	c.Flags().StringToStringVar(&o.variables, "var", nil,
		"NAME=VALUE, a variable in the agent's instructions; can be repeated")
	c.Flags().StringVar(&o.model, "model", "", "model to use (default: the agent's model)")
	return c
}

// isInteractive reports whether in is a terminal.
func isInteractive(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	devNull, err := os.Stat(os.DevNull) // a character device too
	return info.Mode()&os.ModeCharDevice != 0 && (err != nil || !os.SameFile(info, devNull))
}

// chatSession is a run of the chat command, in a terminal or in a pipe.
type chatSession struct {
	*app
	client       *client.Client
	options      chatOptions
	conversation reeve.Conversation
	lastSeq      int64 // sequence number of the last frame shown
	lines        chan string
}

// open gets the conversation named by --conversation, or creates one.
func (t *chatSession) open(ctx context.Context, agent string) (err error) {
	if t.options.conversation == "" {
		t.conversation, err = t.client.Conversations().Create(ctx, reeve.ConversationRequest{Agent: agent})
		return err
	}
	if t.conversation, err = t.client.Conversations().Get(ctx, t.options.conversation); err != nil {
		return err
	}
	g, err := t.client.Agents().Get(ctx, agent)
	if err != nil {
		return err
	}
	if g.ID != t.conversation.AgentID {
		return usagef("conversation %s is with another agent: %s", t.conversation.ID, t.conversation.AgentID)
	}
	frames, err := t.client.Conversations().Frames(ctx, t.conversation.ID, 0, 1)
	t.lastSeq = frames.Last
	return err
}

// runOnce runs one turn and prints the answer. Without args, the message is read from standard input.
func (t *chatSession) runOnce(ctx context.Context, args []string) error {
	content := strings.Join(args, "")
	if len(args) == 0 {
		b, err := t.readInput("-")
		if err != nil {
			return err
		}
		content = strings.TrimSpace(string(b))
	}
	v := &pipeView{chatSession: t}
	if err := t.runTurn(ctx, content, v); err != nil {
		return err
	}
	return v.finish(ctx)
}

// interact runs a turn for each line the user types, until the user leaves.
func (t *chatSession) interact(ctx context.Context) error {
	leave := ctx.Done()
	t.notef("conversation %s with agent %s; press Ctrl-D to leave", t.conversation.ID, t.conversation.AgentID)
	t.lines = make(chan string)
	go func() {
		defer close(t.lines)
		in := bufio.NewScanner(t.in)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			t.lines <- in.Text()
		}
	}()
	for {
		content, ok := t.prompt("> ", leave)
		switch {
		case !ok:
			fmt.Fprintln(t.err)
			t.notef("to continue: reeve chat %s --conversation %s", t.conversation.AgentID, t.conversation.ID)
			return nil
		case strings.TrimSpace(content) == "" && len(t.options.attach) == 0:
			continue
		}
		if err := t.runTurn(ctx, content, &terminalView{chatSession: t, delegates: map[string]string{}}); err != nil {
			t.reportError(err, "reeve chat")
		}
		if ctx.Err() != nil {
			leave = nil // an interrupt cancelled the turn; the next interrupt at the prompt ends the process
		}
	}
}

// prompt prints text and returns the next line of input, or false at the end of the input or when leave is closed.
func (t *chatSession) prompt(text string, leave <-chan struct{}) (string, bool) {
	fmt.Fprint(t.err, text)
	select {
	case line, ok := <-t.lines:
		return line, ok
	case <-leave:
		return "", false
	}
}

// frameView shows the frames of a turn, and the frames of the turns that it started for other agents (delegates).
// A method returns client.ErrStop to stop following the turn.
type frameView interface {
	showFrame(ctx context.Context, f reeve.Frame) error
	showDelegateFrame(ctx context.Context, f reeve.Frame) error
}

// runTurn sends a message and shows the turn until it ends. An interrupt cancels the turn; a second interrupt ends the
// process.
func (t *chatSession) runTurn(ctx context.Context, content string, v frameView) error {
	r := reeve.TurnRequest{Content: content, Variables: t.options.variables, Model: t.options.model}
	for _, name := range t.options.attach {
		file, err := t.readAttachment(name)
		if err != nil {
			return err
		}
		r.Attachments = append(r.Attachments, file)
	}
	ctx = context.WithoutCancel(ctx)
	turn, err := t.createTurn(ctx, r)
	if err != nil {
		return err
	}
	t.options.attach = nil
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(interrupted, func() {
		stop()
		// a conflict means that the turn has just ended
		if _, err := t.client.Turns().Cancel(ctx, turn.ID); err != nil && reeve.CodeOf(err) != reeve.Conflict {
			t.reportError(err, "reeve chat")
		}
	})()
	delegates := map[string]bool{} // ids of the turns that this turn started
	return t.client.Conversations().Follow(ctx, t.conversation.ID, t.lastSeq, func(f reeve.Frame) error {
		if f.Type == reeve.FrameStarted && (f.ParentID == turn.ID || delegates[f.ParentID]) {
			delegates[f.TurnID] = true
		}
		if f.TurnID != turn.ID {
			if delegates[f.TurnID] || f.Type == reeve.FrameReport {
				return v.showDelegateFrame(ctx, f)
			}
			return nil // another turn of the conversation
		}
		if err := v.showFrame(ctx, f); err != nil {
			return err
		}
		if t.lastSeq = f.Seq; f.Type == reeve.FrameComplete {
			return client.ErrStop
		}
		return nil
	})
}

// createTurn creates a turn. It retries lost connections with the same idempotency key, so that the turn is created
// once.
func (t *chatSession) createTurn(ctx context.Context, r reeve.TurnRequest) (turn reeve.Turn, err error) {
	key := reeve.RandomSecret(16)
	for pause := 200 * time.Millisecond; ; pause *= 2 {
		turn, err = t.client.Turns().Create(ctx, t.conversation.ID, key, r)
		if c := reeve.CodeOf(err); c != reeve.Unavailable && c != reeve.UnknownOutcome || pause > 4*time.Second {
			return turn, err
		}
		time.Sleep(pause)
	}
}

// readAttachment reads a file to attach to a message.
func (t *chatSession) readAttachment(name string) (reeve.Attachment, error) {
	b, err := t.readInput(name)
	if err != nil {
		return reeve.Attachment{}, err
	}
	kind := mime.TypeByExtension(filepath.Ext(name))
	if kind == "" {
		kind = http.DetectContentType(b)
	}
	return reeve.Attachment{Name: filepath.Base(name), MediaType: kind, Data: b}, nil
}
