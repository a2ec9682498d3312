package httpapi

import (
	"context"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// pathCursor is the prefix of cursors of lists that are ordered by path.
const pathCursor = "path:"

// automationFileHandlers serves the files that automations have written.
type automationFileHandlers struct {
	db   *store.DB
	gate *gate.Gate
}

func (h *automationFileHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Cursor string `query:"cursor" maxLength:"600" doc:"next_cursor of the previous page; empty for the first page"`
}) (*body[api.SessionFileList], error) {
	after, ok := strings.CutPrefix(in.Cursor, pathCursor)
	if in.Cursor != "" && (!ok || !strings.HasPrefix(after, "/")) {
		return nil, newInvalidCursor()
	}
	out := &body[api.SessionFileList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.Files, err = snap.Chat().SessionFilesAfter(ctx, who.Workspace, automationFileThread(m), after,
			in.Limit)
		return err
	})
	if n := len(out.Body.Files); n == in.Limit {
		out.Body.Next = pathCursor + out.Body.Files[n-1].Path
	}
	return out, err
}

func (h *automationFileHandlers) get(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Path string `query:"path" required:"true" minLength:"1" maxLength:"512" doc:"Path of the file, such as /summary.md"`
}) (*body[api.SessionFileContent], error) {
	out := &body[api.SessionFileContent]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		name := "/" + strings.TrimPrefix(in.Path, "/")
		f, ok, err := snap.Chat().FindSessionFile(ctx, who.Workspace, automationFileThread(m), name)
		if err == nil && !ok {
			err = reeve.Errorf(reeve.NotFound, "the automation has no file %s", name).
				Hintf("list its files with reeve automations files %s", m.Name)
		}
		if err != nil {
			return err
		}
		text, _, err := snap.Chat().GetSessionFile(ctx, who.Workspace, automationFileThread(m), name)
		if err != nil {
			return err
		}
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		out.Body = api.SessionFileContent{SessionFile: f, Content: redaction.StoredSecretsOnly(string(text), false)}
		return nil
	})
}

// automationFileThread returns the thread whose session files are an automation's files.
func automationFileThread(m reeve.Automation) string {
	return reeve.SessionThread(m.AgentID, reeve.AutomationSession)
}
