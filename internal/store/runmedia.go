package store

import (
	"cmp"
	"context"

	"reeve"
)

// runMedia is a file that a scheduled run sent to the conversation of its schedule.
type runMedia struct {
	run, operation, conversation, agent string
	file                                reeve.Attachment
	isShown                             bool
}

const selectRunMedia = `SELECT run_id, operation_id, conversation_id, agent_id, name, media_type, size, hash, caption,
	shown_at FROM run_media `

func scanRunMedia(r scanner) (m runMedia, err error) {
	var shown int64
	if err := r.Scan(&m.run, &m.operation, &m.conversation, &m.agent, &m.file.Name, &m.file.MediaType, &m.file.Size,
		&m.file.Hash, &m.file.Caption, &shown); err != nil {
		return m, corruptError("run_media", m.run+"/"+m.operation, err)
	}
	m.isShown = shown != 0
	return m, nil
}

// KeepMedia keeps a file that a scheduled run sends to the conversation of its schedule, until the run ends. Then
// TakeMedia or ShowMedia shows it. It does nothing if the run has ended.
func (t ChatTx) KeepMedia(ctx context.Context, conversation, run, operation, agent string, a reeve.Attachment) error {
	return t.tx.exec(ctx, `INSERT INTO run_media (run_id, operation_id, conversation_id, agent_id, name, media_type,
		size, hash, caption, created_at, shown_at)
		SELECT r.id, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0 FROM runs r WHERE r.id = $1
		AND r.state IN ('running', 'parked') ON CONFLICT (run_id, operation_id) DO NOTHING`, run, operation,
		conversation, agent, a.Name, a.MediaType, a.Size, a.Hash, a.Caption, reeve.Millis(t.now))
}

// TakeMedia returns the files that a run has sent to a conversation and that were not shown yet, in order. The caller
// shows them in a frame of this transaction.
func (t ChatTx) TakeMedia(ctx context.Context, conversation, run string) ([]reeve.Attachment, error) {
	list, err := queryAll(ctx, t.Snap, scanRunMedia, selectRunMedia+`WHERE run_id = $1 AND conversation_id = $2
		AND shown_at = 0 ORDER BY created_at, operation_id`, run, conversation)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]reeve.Attachment, len(list))
	for i, m := range list {
		out[i] = m.file
	}
	return out, t.tx.exec(ctx, `UPDATE run_media SET shown_at = $3 WHERE run_id = $1 AND conversation_id = $2`, run,
		conversation, reeve.Millis(t.now))
}

// ShowMedia stores a media frame for each file that ended runs have sent and that no report contains. It returns the
// conversations.
func (t ChatTx) ShowMedia(ctx context.Context, runs []string) (conversations []string, err error) {
	list, err := queryIn(ctx, t.Snap, scanRunMedia, selectRunMedia+`WHERE run_id IN (?) AND shown_at = 0
		ORDER BY conversation_id, created_at, operation_id`, runs)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		f := reeve.Frame{TurnID: m.run, AgentID: m.agent, Text: m.file.Caption, OperationID: m.operation}
		m.file.Caption = ""
		f.Attachments = []reeve.Attachment{m.file}
		f.Type = reeve.FrameMedia
		if err := t.AppendFinalFrame(ctx, m.conversation, mediaKeyPrefix(m.file.Hash)+m.operation, f); err != nil {
			return nil, err
		}
		if err := t.tx.exec(ctx, `UPDATE run_media SET shown_at = $3 WHERE run_id = $1 AND operation_id = $2`, m.run,
			m.operation, reeve.Millis(t.now)); err != nil {
			return nil, err
		}
		conversations = append(conversations, m.conversation)
	}
	return conversations, nil
}

// reportedMedia returns the file with this hash that a report has shown in a conversation.
func (s Chat) reportedMedia(ctx context.Context, conversation, hash string) (reeve.Attachment, error) {
	list, err := queryAll(ctx, s.Snap, scanRunMedia, selectRunMedia+`WHERE conversation_id = $1 AND hash = $2
		AND shown_at > 0 ORDER BY created_at DESC LIMIT 1`, conversation, hash)
	if err != nil || len(list) == 0 {
		return reeve.Attachment{}, cmp.Or(err, notFound("media", hash))
	}
	return list[0].file, nil
}

// RequestThread returns the thread of the session in which a person asked for a run: its own, if the run is a turn, or
// the one in which its schedule was made. It is empty if there is none.
func (s Runs) RequestThread(ctx context.Context, run reeve.Run) (string, error) {
	if run.Reason == reeve.ReasonRetry {
		first, err := s.GetRun(ctx, run.WorkspaceID, run.ReasonID)
		if reeve.CodeOf(err) == reeve.NotFound {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		run = first
	}
	switch run.Reason {
	case reeve.ReasonUser:
		return run.ThreadID, nil
	case reeve.ReasonTimer, reeve.ReasonCatchup:
		t, err := s.Snap.Queue().GetTimer(ctx, run.WorkspaceID, "", run.ReasonID)
		if reeve.CodeOf(err) == reeve.NotFound {
			err = nil
		}
		return t.Origin, err
	case reeve.ReasonSubscription, reeve.ReasonManual, reeve.ReasonRetry, reeve.ReasonScriptJob:
	}
	return "", nil
}
