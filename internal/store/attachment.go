package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"reeve"
)

const attachmentColumns = `conversation_id, n, id, turn_id, user_id, name, media_type, size, hash, created_at`

func scanAttachment(r scanner) (a reeve.StoredAttachment, err error) {
	var at int64
	var conversation string
	if err := r.Scan(&conversation, &a.Number, &a.ID, &a.TurnID, &a.UserID, &a.Name, &a.MediaType, &a.Size, &a.Hash,
		&at); err != nil {
		return a, corruptError("attachments", conversation+"/"+strconv.Itoa(a.Number), err)
	}
	a.CreatedAt = reeve.FromMillis(at)
	return a, nil
}

// InsertAttachments records the attachments of a turn's message, whose bytes are stored already. It returns them with
// their ids and numbers in the conversation.
func (t ChatTx) InsertAttachments(ctx context.Context, m reeve.Message, conversation, user string,
	list []reeve.Attachment) ([]reeve.Attachment, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := t.LockConversation(ctx, conversation); err != nil { // numbers have no gaps
		return nil, err
	}
	last, _, err := queryOne(ctx, t.Snap, scanValue[int], `SELECT COALESCE(max(n), 0) FROM attachments
		WHERE conversation_id = $1`, conversation)
	if err != nil {
		return nil, err
	}
	out := make([]reeve.Attachment, len(list))
	for i, a := range list {
		a.Number = last + 1 + i
		a.ID = fmt.Sprintf("%s_%s_%d", reeve.PrefixAttachment, strings.TrimPrefix(m.ID, reeve.PrefixMessage+"_"), i)
		if err := t.tx.exec(ctx, `INSERT INTO attachments (`+attachmentColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7,
			$8, $9, $10)`, conversation, a.Number, a.ID, m.RunID, user, a.Name, a.MediaType, a.Size, a.Hash,
			reeve.Millis(t.now)); err != nil {
			return nil, err
		}
		a.Data = nil
		out[i] = a
	}
	return out, nil
}

// ListAttachments returns the attachments of a conversation after a number, in order.
func (s Chat) ListAttachments(ctx context.Context, conversation string, after,
	limit int) ([]reeve.StoredAttachment, error) {
	return queryAll(ctx, s.Snap, scanAttachment, `SELECT `+attachmentColumns+` FROM attachments
		WHERE conversation_id = $1 AND n > $2 ORDER BY n LIMIT $3`, conversation, after, limit)
}

// ListTurnAttachments returns the attachments of a turn, in order.
func (s Chat) ListTurnAttachments(ctx context.Context, conversation, turn string) ([]reeve.StoredAttachment, error) {
	return queryAll(ctx, s.Snap, scanAttachment, `SELECT `+attachmentColumns+` FROM attachments
		WHERE conversation_id = $1 AND turn_id = $2 ORDER BY n`, conversation, turn)
}

// ListAttachmentTurns returns the turns of a conversation with attachments that began before a turn, latest first. If
// before is empty, it returns all turns with attachments.
func (s Chat) ListAttachmentTurns(ctx context.Context, conversation, before string, limit int) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string], `SELECT DISTINCT turn_id FROM attachments
		WHERE conversation_id = $1 AND (turn_id < $2 OR $2 = '') ORDER BY turn_id DESC LIMIT $3`, conversation, before,
		limit)
}

// GetAttachment returns the attachment of a conversation with an id or a number.
func (s Chat) GetAttachment(ctx context.Context, conversation, id string) (reeve.StoredAttachment, error) {
	number, err := strconv.Atoi(id)
	if err != nil {
		number = 0
	}
	a, ok, err := queryOne(ctx, s.Snap, scanAttachment, `SELECT `+attachmentColumns+` FROM attachments
		WHERE conversation_id = $1 AND n = $2`, conversation, number)
	if err == nil && !ok {
		a, ok, err = queryOne(ctx, s.Snap, scanAttachment, `SELECT `+attachmentColumns+` FROM attachments
			WHERE conversation_id = $1 AND id = $2`, conversation, id)
	}
	if err == nil && !ok {
		err = notFound("attachment", id)
	}
	return a, err
}
