package media

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Files reads files that a call may read.
type Files interface {
	CheckReadable(ctx context.Context, inv *reeve.Invocation, path string) error
	ReadFile(ctx context.Context, inv *reeve.Invocation, path string) ([]byte, error)
}

// Pack is send_media.
type Pack struct{ Files Files }

type sendArgs struct {
	Path    string `json:"path" minLength:"1" maxLength:"4096" doc:"A file under /shared, /tmp or /project"`
	Caption string `json:"caption,omitempty" maxLength:"4000" doc:"What to say with it"`
}

// Tools gives the pack's tools.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{reeve.MustTool(reeve.Tool{ID: "send_media", Name: "Send media", Category: "communication",
		Pack: "media", Capability: "files.read", Effect: reeve.Local, Risk: reeve.LowRisk,
		TimeoutMS: 15_000, Description: "Sends a file of the workspace (a picture, a document, audio) to the people " +
			"of the conversation that asked for it. They see it beside what you say.",
		Check: func(ctx context.Context, inv *reeve.Invocation) error {
			in, err := reeve.Args[sendArgs](inv)
			if err != nil {
				return err
			}
			return p.Files.CheckReadable(ctx, inv, in.Path)
		}}, p.send)}
}

// send keeps the bytes as they are now, and tells the conversation, in one transaction.
func (p *Pack) send(ctx context.Context, in sendArgs) (string, error) {
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return "", err
	}
	inv := reeve.InvocationFrom(ctx)
	conversation, turn, err := channel(ctx, tx, inv)
	if err != nil {
		return "", err
	}
	body, err := p.Files.ReadFile(ctx, inv, in.Path)
	if err != nil {
		return "", err
	}
	hash, err := tx.Ledger().PutPayload(ctx, inv.Workspace, store.ConversationPayload, body)
	if err != nil {
		return "", err
	}
	a := reeve.Attachment{Name: path.Base(in.Path), MediaType: kind(in.Path, body), Hash: hash, Size: len(body)}
	if err := tx.Chat().SendMedia(ctx, conversation, inv.Operation, reeve.Frame{TurnID: turn, AgentID: inv.Agent,
		Text: in.Caption, OperationID: inv.Operation, Attachments: []reeve.Attachment{a}}); err != nil {
		return "", err
	}
	inv.Emit(reeve.SemanticKey, "MEDIA")
	inv.Emit(reeve.EntityID, conversation)
	return fmt.Sprintf("Sent %s (%s, %d bytes).", a.Name, a.MediaType, a.Size), nil
}

// channel is the conversation that asked, and its turn: the one that the run is a turn of, or the one in which its
// schedule was made. Of a run that a call of another agent led to, the first of these counts: that is where a person
// waits.
func channel(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) (conversation, turn string, err error) {
	threads, first := []string{inv.Thread}, inv.Run
	for _, a := range inv.Ancestors[:min(1, len(inv.Ancestors))] {
		first = a.RunID
	}
	if first != "" {
		run, err := tx.Runs().GetRun(ctx, inv.Workspace, first)
		if err != nil {
			return "", "", err
		}
		timer, err := tx.Snap.Queue().GetTimer(ctx, inv.Workspace, "", run.ReasonID)
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return "", "", err
		}
		threads = []string{run.ThreadID, timer.Origin, inv.Thread}
	}
	for _, t := range threads {
		_, session, ok := strings.Cut(t, ":session:")
		if !ok {
			continue
		}
		c, err := tx.Chat().GetConversation(ctx, inv.Workspace, "", session)
		if err == nil {
			return c.ID, cmp.Or(first, inv.Run), nil
		}
		if reeve.CodeOf(err) != reeve.NotFound {
			return "", "", err
		}
	}
	return "", "", reeve.Errorf(reeve.ToolFailed,
		"nobody asked for this in a conversation, so there is nobody to send it to").
		Hintf("say in your answer where the file is")
}

// kind is the media type of a file: by its name where that is known, else by its bytes.
func kind(name string, body []byte) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return http.DetectContentType(body)
}
