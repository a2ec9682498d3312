package store

import (
	"context"

	"reeve"
)

const conversationColumns = `c.id, c.workspace_id, c.agent_id, c.user_id, c.title, c.origin, c.state, c.turns,
	c.created_at, c.updated_at`

func scanConversation(r scanner) (c reeve.Conversation, err error) {
	defer wrapCorrupt("conversations", &c.ID, &err)
	var created, updated int64
	err = r.Scan(&c.ID, &c.WorkspaceID, &c.AgentID, &c.UserID, &c.Title, &c.Origin, &c.State, &c.Turns, &created,
		&updated)
	c.CreatedAt, c.UpdatedAt = reeve.FromMillis(created), reeve.FromMillis(updated)
	return c, err
}

// InsertConversation inserts a conversation and its participants.
func (t ChatTx) InsertConversation(ctx context.Context, c reeve.Conversation) error {
	t.tx.Announce(c.WorkspaceID, TopicConversations, c.ID, "")
	if err := t.tx.exec(ctx, `INSERT INTO conversations (id, workspace_id, agent_id, user_id, title, origin, state,
		turns, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $8)`,
		c.ID, c.WorkspaceID, c.AgentID, c.UserID, reeve.SanitizeText(c.Title), c.Origin, c.State,
		reeve.Millis(t.now)); err != nil {
		return err
	}
	for _, p := range c.Participants {
		if _, err := t.AddParticipant(ctx, c.ID, p); err != nil {
			return err
		}
	}
	return nil
}

// AddParticipant adds a participant. It returns false if the participant was added before.
func (t ChatTx) AddParticipant(ctx context.Context, conversation string, p reeve.Participant) (bool, error) {
	t.tx.Announce("", TopicConversations, "", "")
	n, err := t.tx.execCount(ctx, `INSERT INTO participants (conversation_id, kind, id, added_by, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (conversation_id, kind, id) DO NOTHING`, conversation, p.Kind, reeve.SanitizeText(p.ID), p.AddedBy,
		reeve.Millis(t.now))
	return n == 1, err
}

// RemoveParticipant removes a participant. It returns false if there was none.
func (t ChatTx) RemoveParticipant(ctx context.Context, conversation, kind, id string) (bool, error) {
	t.tx.Announce("", TopicConversations, "", "")
	n, err := t.tx.execCount(ctx, `DELETE FROM participants WHERE conversation_id = $1 AND kind = $2 AND id = $3`,
		conversation, kind, id)
	return n == 1, err
}

// ChangeConversation updates the title and state that a change sets.
func (t ChatTx) ChangeConversation(ctx context.Context, id string, c reeve.ConversationChange) error {
	t.tx.Announce("", TopicConversations, "", "")
	title := ""
	if c.Title != nil {
		title = reeve.SanitizeText(*c.Title)
	}
	return t.tx.exec(ctx, `UPDATE conversations SET title = CASE WHEN $2 = 1 THEN $3 ELSE title END, state = CASE
		WHEN $4 = '' THEN state ELSE $4 END, updated_at = $5 WHERE id = $1`,
		id, boolToInt(c.Title != nil), title, c.State, reeve.Millis(t.now))
}

// CountTurn increments the number of a conversation's turns.
func (t ChatTx) CountTurn(ctx context.Context, conversation string) error {
	t.tx.Announce("", TopicConversations, "", "")
	return t.tx.exec(ctx, `UPDATE conversations SET turns = turns + 1, updated_at = $2 WHERE id = $1`, conversation,
		reeve.Millis(t.now))
}

// GetConversation returns a conversation of a workspace with its participants. If user is not empty, the user must be
// one of them.
func (s Chat) GetConversation(ctx context.Context, workspace, user, id string) (reeve.Conversation, error) {
	c, ok, err := queryOne(ctx, s.Snap, scanConversation, `SELECT `+conversationColumns+` FROM conversations c
		WHERE c.id = $2 AND c.workspace_id = $1
		AND ($3 = '' OR EXISTS (SELECT 1 FROM participants p WHERE p.conversation_id = c.id AND p.kind = 'user'
		AND p.id = $3))`, workspace, id, user)
	if err == nil && !ok {
		err = notFound("conversation", id)
	}
	if err != nil {
		return c, err
	}
	c.Participants, err = queryAll(ctx, s.Snap, func(r scanner) (p reeve.Participant, err error) {
		var added int64
		err = r.Scan(&p.Kind, &p.ID, &p.AddedBy, &added)
		p.AddedAt = reeve.FromMillis(added)
		return p, err
	}, `SELECT kind, id, added_by, created_at FROM participants WHERE conversation_id = $1 ORDER BY created_at,
		kind DESC, id`, id)
	return c, err
}

// ConversationFilter restricts a list of conversations. Empty fields do not restrict it.
type ConversationFilter struct {
	User   string // a participant
	Agent  string
	State  string
	Before string // a conversation's id
	Limit  int
}

// ListConversations returns a page of conversations, newest first.
func (s Chat) ListConversations(ctx context.Context, workspace string,
	f ConversationFilter) ([]reeve.Conversation, error) {
	return queryAll(ctx, s.Snap, scanConversation, `SELECT `+conversationColumns+` FROM conversations c
		WHERE c.workspace_id = $1
		AND ($2 = '' OR EXISTS (SELECT 1 FROM participants p WHERE p.conversation_id = c.id AND p.kind = 'user'
		AND p.id = $2))
		AND ($3 = '' OR c.agent_id = $3) AND ($4 = '' OR c.state = $4) AND ($5 = '' OR (c.created_at,
		c.id) < (SELECT b.created_at, b.id FROM conversations b WHERE b.id = $5)) ORDER BY c.created_at DESC,
		c.id DESC LIMIT $6`,
		workspace, f.User, f.Agent, f.State, f.Before, f.Limit)
}

// ListTurns returns a page of a conversation's turns before a turn, newest first.
func (s Chat) ListTurns(ctx context.Context, conversation, before string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE session_id = $1
		AND reason = 'user_initiated' AND ($2 = '' OR id < $2)
		ORDER BY id DESC LIMIT $3`, conversation, before, limit)
}

// InsertFeedback inserts a person's feedback on a turn.
func (t ChatTx) InsertFeedback(ctx context.Context, workspace string, f reeve.Feedback) error {
	return t.tx.exec(ctx, `INSERT INTO feedback (id, workspace_id, turn_id, user_id, score, comment, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		f.ID, workspace, f.TurnID, f.UserID, f.Score, reeve.SanitizeText(f.Comment), reeve.Millis(t.now))
}

// ListFeedback returns up to 200 entries of feedback on a turn, oldest first.
func (s Chat) ListFeedback(ctx context.Context, workspace, turn string) ([]reeve.Feedback, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (f reeve.Feedback, err error) {
		var created int64
		err = r.Scan(&f.ID, &f.TurnID, &f.UserID, &f.Score, &f.Comment, &created)
		f.CreatedAt = reeve.FromMillis(created)
		return f, err
	}, `SELECT id, turn_id, user_id, score, comment, created_at FROM feedback WHERE workspace_id = $1 AND turn_id = $2
		ORDER BY id LIMIT 200`, workspace, turn)
}

// EndedTurns returns the last ended turns of a conversation before a turn, newest first. Only ID, AgentID, ParentID and
// State are set.
func (s Chat) EndedTurns(ctx context.Context, conversation, before string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.Run, err error) {
		return v, r.Scan(&v.ID, &v.AgentID, &v.ParentID, &v.State)
	},
		`SELECT id, agent_id, parent_id, state FROM runs WHERE session_id = $1 AND reason = 'user_initiated' AND id < $2
			AND state NOT IN ('running', 'parked')
		ORDER BY id DESC LIMIT $3`, conversation, before, limit)
}

// ActiveTurns returns a conversation's open turns except one, oldest first.
func (s Chat) ActiveTurns(ctx context.Context, conversation, except string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE id IN (SELECT run_id FROM open_runs
		WHERE session_id = $1 AND turn = 1) AND id <> $2
		ORDER BY id LIMIT $3`, conversation, except, limit)
}

// OpenOperations returns a run's operations that have no outcome yet, oldest first.
func (s Chat) OpenOperations(ctx context.Context, workspace, run string, limit int) ([]reeve.Operation, error) {
	return queryAll(ctx, s.Snap, scanOperation, openOperations+` LIMIT $3`, run, workspace, limit)
}

const openOperations = `SELECT ` + operationColumns + ` FROM calls WHERE run_id = $1 AND run_id <> '' AND result_id = ''
	AND ` + inWorkspace + `
		AND state IN ('parked', 'prepared', 'dispatched', 'unknown') ORDER BY id`
