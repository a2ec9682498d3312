package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"reeve"
	"reeve/api"
)

// ConversationFilter selects conversations.
type ConversationFilter struct {
	Agent string // with one agent. Default: with any
	State string // in one state. Default: in any
	User  string // with this participant; owners see those of all users. Default: all visible ones
	Page
}

// List lists conversations, newest first.
func (s ConversationService) List(ctx context.Context, f ConversationFilter) (api.ConversationList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("state", f.State)
	q.Set("user", f.User)
	return get[api.ConversationList](ctx, s.conn, path("conversations"), q)
}

// Create starts a conversation.
func (s ConversationService) Create(ctx context.Context, r reeve.ConversationRequest) (reeve.Conversation, error) {
	return post[reeve.Conversation](ctx, s.conn, path("conversations"), r)
}

// CreateOnce is like Create with a key. Within a day, the same key creates one conversation.
func (s ConversationService) CreateOnce(ctx context.Context, key string,
	r reeve.ConversationRequest) (out reeve.Conversation, err error) {
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("conversations"), body: r, key: key}, &out)
}

// Get returns one conversation with its participants.
func (s ConversationService) Get(ctx context.Context, id string) (reeve.Conversation, error) {
	return get[reeve.Conversation](ctx, s.conn, path("conversations", id), nil)
}

// Update renames, completes or reopens a conversation.
func (s ConversationService) Update(ctx context.Context, id string,
	r reeve.ConversationChange) (out reeve.Conversation, err error) {
	return out, s.conn.do(ctx, &request{method: http.MethodPatch, path: path("conversations", id), body: r}, &out)
}

// AddParticipant adds a user to a conversation.
func (s ConversationService) AddParticipant(ctx context.Context, id string,
	r api.ParticipantRequest) (reeve.Conversation, error) {
	return post[reeve.Conversation](ctx, s.conn, path("conversations", id, "participants"), r)
}

// RemoveParticipant removes a user from a conversation.
func (s ConversationService) RemoveParticipant(ctx context.Context, id, kind, who string) error {
	return s.conn.do(ctx, &request{method: http.MethodDelete, path: path("conversations", id, "participants", who),
		query: url.Values{"kind": {kind}}}, nil)
}

// Messages lists messages of a conversation, oldest first.
func (s ConversationService) Messages(ctx context.Context, id string, p Page) (api.MessageList, error) {
	return get[api.MessageList](ctx, s.conn, path("conversations", id, "messages"), p.query())
}

// Create sends a message and starts a turn. The same key sends it once. Without a key, each request does. Use
// [ConversationService.Follow] to receive the events of the turn.
func (s TurnService) Create(ctx context.Context, conversation, key string,
	r reeve.TurnRequest) (out reeve.Turn, err error) {
	if key == "" {
		key = s.conn.key()
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("conversations", conversation, "turns"),
		body: r, key: key,
		retryHint: "send the message again with Idempotency-Key " + key + "; it is not sent twice"}, &out)
}

// List lists a conversation's turns, newest first.
func (s TurnService) List(ctx context.Context, conversation string, p Page) (api.TurnList, error) {
	return get[api.TurnList](ctx, s.conn, path("conversations", conversation, "turns"), p.query())
}

// Get returns a turn with its messages and calls so far.
func (s TurnService) Get(ctx context.Context, id string) (api.TurnDetail, error) {
	return get[api.TurnDetail](ctx, s.conn, path("turns", id), nil)
}

// Cancel cancels a turn.
func (s TurnService) Cancel(ctx context.Context, id string) (reeve.Turn, error) {
	return post[reeve.Turn](ctx, s.conn, path("turns", id, "cancel"), nil)
}

// Rate stores feedback on a turn.
func (s TurnService) Rate(ctx context.Context, id string, r api.FeedbackRequest) (reeve.Feedback, error) {
	return post[reeve.Feedback](ctx, s.conn, path("turns", id, "feedback"), r)
}

// Frames lists stored frames of a conversation after a sequence number, in order.
func (s ConversationService) Frames(ctx context.Context, conversation string, after int64,
	limit int) (api.FrameList, error) {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.FrameList](ctx, s.conn, path("conversations", conversation, "frames"), q)
}

// Media returns a file that an agent sent to a conversation.
func (s ConversationService) Media(ctx context.Context, conversation, hash string) ([]byte, error) {
	return s.download(ctx, path("conversations", conversation, "media", hash))
}

// Attachments lists the files that people attached to a conversation, in order, after a number.
func (s ConversationService) Attachments(ctx context.Context, conversation string,
	after int) (api.AttachmentList, error) {
	q := url.Values{"after": {strconv.Itoa(after)}}
	return get[api.AttachmentList](ctx, s.conn, path("conversations", conversation, "attachments"), q)
}

// Attachment returns an attached file by its id or number.
func (s ConversationService) Attachment(ctx context.Context, conversation, id string) ([]byte, error) {
	return s.download(ctx, path("conversations", conversation, "attachments", id))
}

// download returns the bytes of a file.
func (s ConversationService) download(ctx context.Context, file string) ([]byte, error) {
	r := &request{method: http.MethodGet, path: file}
	resp, err := s.conn.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, s.conn.requestError(ctx, r, err)
	}
	return b, nil
}

// Deliver reports the outcome of an operation that waits for an external result.
func (s OperationService) Deliver(ctx context.Context, operation string, r api.ResultRequest) (reeve.Operation, error) {
	return post[reeve.Operation](ctx, s.conn, path("operations", operation, "result"), r)
}
