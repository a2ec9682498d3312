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
			"the people of the conversation. They see it next to your answer. A scheduled run sends it to the " +
			"conversation in which the schedule was made, with its report. Returns its name, type and size.",
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
	to, err := findRecipient(ctx, tx, inv)
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
	sent := fmt.Sprintf("Sent %s (%s, %d bytes).", a.Name, a.MediaType, a.Size)
	if to.isReport {
		a.Caption = in.Caption
		err = tx.Chat().KeepMedia(ctx, to.conversation, to.run, inv.Operation, inv.Agent, a)
		sent += " People see it when this run ends."
	} else {
		err = tx.Chat().SendMedia(ctx, to.conversation, inv.Operation, reeve.Frame{TurnID: to.run, AgentID: inv.Agent,
			Text: in.Caption, OperationID: inv.Operation, Attachments: []reeve.Attachment{a}})
	}
	if err != nil {
		return "", err
	}
	inv.Emit(reeve.SemanticKey, "MEDIA")
	inv.Emit(reeve.EntityID, to.conversation)
	return sent, nil
}

// recipient is where a file is shown.
type recipient struct {
	conversation string
	run          string // the turn that shows the file, or the scheduled run whose report contains it
	isReport     bool
}

// findRecipient returns the conversation that the run is a turn of, or the one in which its schedule was made. For a
// delegated run, the first run of the chain decides, because a person waits there.
func findRecipient(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) (to recipient, err error) {
	first := inv.Run
	for _, a := range inv.Ancestors[:min(1, len(inv.Ancestors))] {
		first = a.RunID
	}
	threads, user, isScheduled := []string{inv.Thread}, "", false
	if first != "" {
		run, err := tx.Runs().GetRun(ctx, inv.Workspace, first)
		if err != nil {
			return to, err
		}
		thread, err := tx.Runs().RequestThread(ctx, run)
		if err != nil {
			return to, err
		}
		isScheduled, user = run.Reason != reeve.ReasonUser && thread != "", run.UserID
		threads = []string{thread, inv.Thread}
	}
	for i, t := range threads {
		_, session, ok := strings.Cut(t, ":session:")
		if !ok {
			continue
		}
		c, err := tx.Chat().GetConversation(ctx, inv.Workspace, "", session)
		isReport := isScheduled && i == 0
		if err == nil && (!isReport || user == "" || c.HasUser(user)) {
			return recipient{c.ID, cmp.Or(first, inv.Run), isReport}, nil
		}
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return to, err
		}
	}
	return to, reeve.Errorf(reeve.ToolFailed,
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
