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

// chatOptions is what a conversation begins with.
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
		Long: `Talks to an agent. In a terminal it goes on until you leave: what the agent says is shown as it comes, with its calls and what they came
to, and a call that needs your approval asks for it. Ctrl-C ends the turn; at the prompt it leaves, as Ctrl-D does.

With a MESSAGE, or with one on the standard input, it is one turn: the answer goes to the standard output and nothing else does. With
--json every frame is a line. It exits with 3 when the turn waits for a person.`,
		Example: `  reeve chat clerk
  reeve chat clerk "what is left to do?" --attach plan.pdf
  echo hi | reeve chat clerk
  reeve chat clerk --conversation conv_...`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t := &talk{app: a, client: c, options: o}
				if err := t.open(ctx, args[0]); err != nil {
					return err
				}
				if len(args) == 2 || !terminal(a.in) {
					return t.once(ctx, args[1:])
				}
				return t.all(ctx)
			})
		},
	}
	c.Flags().StringVar(&o.conversation, "conversation", "", "go on with this one")
	c.Flags().StringArrayVar(&o.attach, "attach", nil,
		"a file that goes with the first message; may be given more than once")
	c.Flags().StringToStringVar(&o.variables, "var", nil, "name=value, put into the agent's instructions")
	c.Flags().StringVar(&o.model, "model", "", "the model, instead of the agent's own")
	return c
}

// terminal tells whether a person types.
func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	nothing, err := os.Stat(os.DevNull)
	return info.Mode()&os.ModeCharDevice != 0 && (err != nil || !os.SameFile(info, nothing))
}

// talk is a conversation at a terminal or in a pipe.
type talk struct {
	*app
	client       *client.Client
	options      chatOptions
	conversation reeve.Conversation
	at           int64 // the last seq that was shown
	lines        chan string
}

// open finds the conversation or begins one.
func (t *talk) open(ctx context.Context, agent string) (err error) {
	if t.options.conversation == "" {
		t.conversation, err = t.client.Conversations().Create(ctx, reeve.ConversationRequest{Agent: agent})
		return err
	}
	if t.conversation, err = t.client.Conversations().Get(ctx, t.options.conversation); err != nil {
		return err
	}
	who, err := t.client.Agents().Get(ctx, agent)
	if err != nil {
		return err
	}
	if who.ID != t.conversation.AgentID {
		return usagef("the conversation %s is with another agent: %s", t.conversation.ID, t.conversation.AgentID)
	}
	frames, err := t.client.Conversations().Frames(ctx, t.conversation.ID, 0, 1)
	t.at = frames.Last
	return err
}

// once says one thing and gives the answer.
func (t *talk) once(ctx context.Context, args []string) error {
	content := strings.Join(args, "")
	if len(args) == 0 {
		b, err := t.read("-")
		if err != nil {
			return err
		}
		content = strings.TrimSpace(string(b))
	}
	v := &piped{talk: t}
	if err := t.turn(ctx, content, v); err != nil {
		return err
	}
	return v.end(ctx)
}

// all goes on until the person leaves.
func (t *talk) all(ctx context.Context) error {
	leave := ctx.Done()
	t.note("talking to %s in %s; Ctrl-D leaves", t.conversation.AgentID, t.conversation.ID)
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
		content, ok := t.ask("> ", leave)
		switch {
		case !ok:
			fmt.Fprintln(t.err)
			t.note("go on with: reeve chat %s --conversation %s", t.conversation.AgentID, t.conversation.ID)
			return nil
		case strings.TrimSpace(content) == "" && len(t.options.attach) == 0:
			continue
		}
		if err := t.turn(ctx, content, &shown{talk: t, guests: map[string]string{}}); err != nil {
			t.report(err, "reeve chat")
		}
		if ctx.Err() != nil {
			leave = nil // an interrupt ended a turn; the next one at the prompt ends the process
		}
	}
}

// ask shows a prompt and gives the line that is typed; false means that there is none to come.
func (t *talk) ask(prompt string, leave <-chan struct{}) (string, bool) {
	fmt.Fprint(t.err, prompt)
	select {
	case line, ok := <-t.lines:
		return line, ok
	case <-leave:
		return "", false
	}
}

// view shows a turn's frames as they come, and those of agents that it called into the conversation. An ErrStop ends
// the turn's following.
type view interface {
	frame(ctx context.Context, f reeve.Frame) error
	guest(ctx context.Context, f reeve.Frame) error
}

// turn says something and shows what happens until the turn ends. An interrupt ends the turn, and a second one the
// process.
func (t *talk) turn(ctx context.Context, content string, v view) error {
	r := reeve.TurnRequest{Content: content, Variables: t.options.variables, Model: t.options.model}
	for _, name := range t.options.attach {
		file, err := t.attachment(name)
		if err != nil {
			return err
		}
		r.Attachments = append(r.Attachments, file)
	}
	ctx = context.WithoutCancel(ctx)
	turn, err := t.say(ctx, r)
	if err != nil {
		return err
	}
	t.options.attach = nil
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(interrupted, func() {
		stop()
		// which means that it has just ended
		if _, err := t.client.Turns().Cancel(ctx, turn.ID); err != nil && reeve.CodeOf(err) != reeve.Conflict {
			t.report(err, "reeve chat")
		}
	})()
	guests := map[string]bool{} // turns that it led to
	return t.client.Conversations().Follow(ctx, t.conversation.ID, t.at, func(f reeve.Frame) error {
		if f.Type == reeve.FrameStarted && (f.ParentID == turn.ID || guests[f.ParentID]) {
			guests[f.TurnID] = true
		}
		if f.TurnID != turn.ID {
			if guests[f.TurnID] {
				return v.guest(ctx, f)
			}
			return nil // somebody else's
		}
		if err := v.frame(ctx, f); err != nil {
			return err
		}
		if t.at = f.Seq; f.Type == reeve.FrameComplete {
			return client.ErrStop
		}
		return nil
	})
}

// say says it once, however often the connection is lost meanwhile.
func (t *talk) say(ctx context.Context, r reeve.TurnRequest) (turn reeve.Turn, err error) {
	key := reeve.RandomSecret(16)
	for pause := 200 * time.Millisecond; ; pause *= 2 {
		turn, err = t.client.Turns().Create(ctx, t.conversation.ID, key, r)
		if c := reeve.CodeOf(err); c != reeve.Unavailable && c != reeve.UnknownOutcome || pause > 4*time.Second {
			return turn, err
		}
		time.Sleep(pause)
	}
}

// attachment reads a file to send.
func (t *talk) attachment(name string) (reeve.Attachment, error) {
	b, err := t.read(name)
	if err != nil {
		return reeve.Attachment{}, err
	}
	kind := mime.TypeByExtension(filepath.Ext(name))
	if kind == "" {
		kind = http.DetectContentType(b)
	}
	return reeve.Attachment{Name: filepath.Base(name), MediaType: kind, Data: b}, nil
}
