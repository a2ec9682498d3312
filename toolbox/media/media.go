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

// Files reads files with the rights of a call.
type Files interface {
	CheckReadable(ctx context.Context, inv *reeve.Invocation, path string) error
	ReadFile(ctx context.Context, inv *reeve.Invocation, path string) ([]byte, error)
}

// Pack is the pack of send_media.
type Pack struct{ Files Files }

type sendArgs struct {
	Path    string `json:"path" minLength:"1" maxLength:"4096" doc:"File under /shared, /tmp or /project"`
	Caption string `json:"caption,omitempty" maxLength:"4000" doc:"Text shown with the file"`
}

// Tools returns send_media.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{reeve.MustTool(reeve.Tool{ID: "send_media", Name: "Send media", Category: "communication",
		Pack: "media", Capability: "files.read", Effect: reeve.Local, Risk: reeve.LowRisk,
		TimeoutMS: 15_000, Description: "Send a file from the workspace, such as a picture, a document or audio, to " +
			"the " +
			"people of the conversation. They see it next to your answer. Returns its name, type and size.",
		Check: func(ctx context.Context, inv *reeve.Invocation) error {
			in, err := reeve.Args[sendArgs](inv)
			if err != nil {
				return err
			}
			return p.Files.CheckReadable(ctx, inv, in.Path)
		}}, p.send)}
}

// send stores the file's current bytes and appends a frame to the conversation, in one transaction.
func (p *Pack) send(ctx context.Context, in sendArgs) (string, error) {
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return "", err
	}
	inv := reeve.InvocationFrom(ctx)
	conversation, turn, err := findConversation(ctx, tx, inv)
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
	a := reeve.Attachment{Name: path.Base(in.Path), MediaType: mediaType(in.Path, body), Hash: hash, Size: len(body)}
	if err := tx.Chat().SendMedia(ctx, conversation, inv.Operation, reeve.Frame{TurnID: turn, AgentID: inv.Agent,
		Text: in.Caption, OperationID: inv.Operation, Attachments: []reeve.Attachment{a}}); err != nil {
		return "", err
	}
	inv.Emit(reeve.SemanticKey, "MEDIA")
	inv.Emit(reeve.EntityID, conversation)
	return fmt.Sprintf("Sent %s (%s, %d bytes).", a.Name, a.MediaType, a.Size), nil
}

// findConversation returns the conversation to send to, and the turn to show the file in. This is the conversation that
// the run is a turn of, or the one in which its schedule was made. For a delegated run, the first run of the chain
// decides, because a person waits there.
func findConversation(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) (conversation, turn string, err error) {
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
		"the run does not belong to a conversation, so the file has no recipient").
		Hintf("name the file's path in your answer instead")
}

// mediaType returns the media type of a file by its extension, or by its content if the extension is unknown.
func mediaType(name string, body []byte) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return http.DetectContentType(body)
}
