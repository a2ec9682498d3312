package files

import (
	"context"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Attachments is the pack of attachment_save.
type Attachments struct {
	Files *Pack
	DB    *store.DB
}

type attachmentArgs struct {
	Path      string `json:"path" minLength:"1" maxLength:"4096" doc:"File to create under /shared or /tmp. Creates missing folders"`
	Index     int    `json:"index,omitempty" minimum:"1" maximum:"20" default:"1" doc:"Which attachment of the turn, from 1"`
	TurnsBack int    `json:"turns_back,omitempty" minimum:"0" maximum:"50" default:"0" doc:"0: the current turn. 1: the latest earlier turn with attachments, and so on"`
	Overwrite bool   `json:"overwrite,omitempty" doc:"True to replace an existing file"`
}

type attachmentResult struct {
	Path       string `json:"path"`
	Attachment string `json:"attachment" doc:"Id of the attachment"`
	Name       string `json:"name" doc:"Name under which it was attached"`
	MediaType  string `json:"media_type"`
	Size       int    `json:"size" doc:"Bytes of the file"`
	Created    bool   `json:"created" doc:"True if the file is new"`
	Changed    bool   `json:"changed" doc:"False if the file already had this content"`
	State      string `json:"state" doc:"New state of the file"`
}

// Tools returns attachment_save.
func (a *Attachments) Tools() []reeve.Tool {
	t := newTool("attachment_save", "Save attachment",
		"Save a file that the user attached to this turn, or to an earlier turn of the conversation, under /shared or "+
			"/tmp. Fails if the file exists, unless overwrite is true. The old content is kept, so the change can be "+
			"undone. Returns the path, type and size.", capWrite, reeve.Verifiable, writeTimeout)
	t.Identity = []string{"path", "index", "turns_back"}
	t.ConfigSchema = nil // no setting project, because the tool cannot write to /project
	t.Check = func(ctx context.Context, inv *reeve.Invocation) error {
		in, err := reeve.Args[attachmentArgs](inv)
		if err == nil {
			_, err = parseAttachmentPath(in)
		}
		return err
	}
	t.Preview, t.Verify = a.preview, a.verify
	return []reeve.Tool{reeve.MustTool(t, a.save)}
}

func parseAttachmentPath(in attachmentArgs) (vpath, error) {
	v, err := parseWritePath("path", in.Path)
	if err == nil && v.root == projectRoot {
		err = reeve.Errorf(reeve.Denied, "attachments cannot be saved into a project").
			Hintf("save the file under /shared or /tmp")
	}
	return v, err
}

// attachmentCopy is the attachment that a call saves, its content and its destination.
type attachmentCopy struct {
	reeve.StoredAttachment
	to   vpath
	data []byte
}

// readArgs decodes the arguments of a call and reads the attachment that they name.
func (a *Attachments) readArgs(ctx context.Context, inv *reeve.Invocation) (c attachmentCopy, overwrite bool,
	err error) {
	in, err := reeve.Args[attachmentArgs](inv)
	if err != nil {
		return c, false, err
	}
	if c.to, err = parseAttachmentPath(in); err != nil {
		return c, false, err
	}
	err = a.DB.View(ctx, func(s *store.Snap) error {
		if c.StoredAttachment, err = findAttachment(ctx, s, inv, max(1, in.Index), in.TurnsBack); err != nil {
			return err
		}
		if int64(c.Size) > a.Files.maxFile {
			return reeve.Errorf(reeve.TooLarge, "the attachment %s has %d bytes; a saved file has at most %d",
				c.FileName(), c.Size, a.Files.maxFile)
		}
		got, err := s.Ledger().GetPayload(ctx, inv.Workspace, store.ConversationPayload, c.Hash, 0, -1)
		c.data = got.Body
		return err
	})
	return c, in.Overwrite, err
}

// findAttachment returns the attachment with an index among those of a turn of the call's conversation. The errors list
// what there is.
func findAttachment(ctx context.Context, s *store.Snap, inv *reeve.Invocation, index,
	turnsBack int) (found reeve.StoredAttachment, err error) {
	_, session, _ := strings.Cut(inv.Session, ":session:")
	c, err := s.Chat().GetConversation(ctx, inv.Workspace, "", session)
	if reeve.CodeOf(err) == reeve.NotFound {
		return found, reeve.Errorf(reeve.ToolFailed, "the call does not belong to a conversation, so there are no "+
			"attachments").Hintf("only a turn of a conversation can save attachments")
	}
	if err != nil {
		return found, err
	}
	current, list, err := findCurrentAttachments(ctx, s, c.ID, inv)
	if err != nil {
		return found, err
	}
	where := "this turn"
	if turnsBack > 0 {
		turns, err := s.Chat().ListAttachmentTurns(ctx, c.ID, current, turnsBack)
		if err != nil {
			return found, err
		}
		if len(turns) < turnsBack {
			return found, reeve.Errorf(reeve.ToolFailed, "turns_back is %d, but only %d earlier turns have attachments",
				turnsBack, len(turns)).Hintf("use a smaller turns_back")
		}
		where = "that turn"
		if list, err = s.Chat().ListTurnAttachments(ctx, c.ID, turns[turnsBack-1]); err != nil {
			return found, err
		}
	}
	if index > len(list) {
		e := reeve.Errorf(reeve.ToolFailed, "index is %d, but %s has %d attachments%s", index, where, len(list),
			describeAttachments(inv, list))
		if len(list) == 0 {
			return found, e.Hintf("for a file of an earlier turn, set turns_back to 1 or more")
		}
		return found, e.Hintf("use an index from 1 to %d", len(list))
	}
	return list[index-1], nil
}

// findCurrentAttachments returns the call's turn and its attachments. A turn that another turn of the conversation
// asked for shares the attachments of that turn.
func findCurrentAttachments(ctx context.Context, s *store.Snap, conversation string,
	inv *reeve.Invocation) (turn string, list []reeve.StoredAttachment, err error) {
	turns := []string{inv.Run}
	for i := len(inv.Ancestors) - 1; i >= 0; i-- {
		turns = append(turns, inv.Ancestors[i].RunID)
	}
	for _, turn := range turns {
		if turn == "" {
			continue
		}
		if list, err = s.Chat().ListTurnAttachments(ctx, conversation, turn); err != nil || len(list) > 0 {
			return turn, list, err
		}
	}
	return inv.Run, nil, nil
}

// describeAttachments lists the names of attachments for an error.
func describeAttachments(inv *reeve.Invocation, list []reeve.StoredAttachment) string {
	if len(list) == 0 {
		return ""
	}
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = fmt.Sprintf("%d %s", i+1, a.FileName())
	}
	text := strings.Join(names, ", ")
	return ": " + inv.RedactedHead(text, len(text))
}

func (a *Attachments) save(ctx context.Context, _ attachmentArgs) (attachmentResult, error) {
	inv := reeve.InvocationFrom(ctx)
	c, overwrite, err := a.readArgs(ctx, inv)
	if err != nil {
		return attachmentResult{}, err
	}
	d, err := a.Files.writer.replace(ctx, inv, rootSet{workspace: inv.Workspace},
		change{path: c.to, base: inv.Base, newContent: writeContent(c.to, c.data, overwrite)})
	if err != nil {
		return attachmentResult{}, err
	}
	reportChange(inv, c.to, d)
	return c.result(d), nil
}

func (c attachmentCopy) result(d changeResult) attachmentResult {
	return attachmentResult{Path: c.to.String(), Attachment: c.ID, Name: c.FileName(), MediaType: c.MediaType,
		Size: len(c.data), Created: d.before.kind == absent, Changed: d.before != d.after, State: d.after.String()}
}

func (a *Attachments) preview(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	c, overwrite, err := a.readArgs(ctx, inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	return a.Files.writer.preview(ctx, inv, change{path: c.to, newContent: writeContent(c.to, c.data, overwrite)})
}

func (a *Attachments) verify(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	c, _, err := a.readArgs(ctx, inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	before := parseBase(inv.Base)
	d := changeResult{before: before, after: fileState(c.data, before.kind == program), size: len(c.data)}
	o, _, err := a.Files.writer.verifyChange(ctx, inv, c.to, d, inv.Base, "attachment_save")
	return o, c.result(d), err
}
