package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"reeve"
)

// ConversationFilter chooses conversations.
type ConversationFilter struct {
	Agent string // with one agent. Default: with any
	State string // in one state. Default: in any
	User  string // of one who takes part; an owner sees everybody's. Default: all that you see
	Page
}

// Conversations lists conversations, newest first.
func (c *Client) Conversations(ctx context.Context, f ConversationFilter) (reeve.ConversationList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("state", f.State)
	q.Set("user", f.User)
	return get[reeve.ConversationList](ctx, c, path("conversations"), q)
}

// Begin begins a conversation.
func (c *Client) Begin(ctx context.Context, r reeve.ConversationRequest) (reeve.Conversation, error) {
	return post[reeve.Conversation](ctx, c, path("conversations"), r)
}

// BeginOnce is Begin under a key: the same key begins one conversation, within a day.
func (c *Client) BeginOnce(ctx context.Context, key string, r reeve.ConversationRequest) (out reeve.Conversation, err error) {
	return out, c.do(ctx, &request{method: http.MethodPost, path: path("conversations"), body: r, key: key}, &out)
}

// Conversation gives one conversation, with who takes part.
func (c *Client) Conversation(ctx context.Context, id string) (reeve.Conversation, error) {
	return get[reeve.Conversation](ctx, c, path("conversations", id), nil)
}

// ChangeConversation renames, completes or reopens a conversation.
func (c *Client) ChangeConversation(ctx context.Context, id string, r reeve.ConversationChange) (out reeve.Conversation, err error) {
	return out, c.do(ctx, &request{method: http.MethodPatch, path: path("conversations", id), body: r}, &out)
}

// AddParticipant brings somebody into a conversation.
func (c *Client) AddParticipant(ctx context.Context, id string, r reeve.ParticipantRequest) (reeve.Conversation, error) {
	return post[reeve.Conversation](ctx, c, path("conversations", id, "participants"), r)
}

// RemoveParticipant ends somebody's part in a conversation.
func (c *Client) RemoveParticipant(ctx context.Context, id, kind, who string) error {
	return c.do(ctx, &request{method: http.MethodDelete, path: path("conversations", id, "participants", who), query: url.Values{"kind": {kind}}}, nil)
}

// History lists a part of what was said and done in a conversation, oldest first.
func (c *Client) History(ctx context.Context, id string, p Page) (reeve.MessageList, error) {
	return get[reeve.MessageList](ctx, c, path("conversations", id, "messages"), p.query())
}

// Say says something. The same key says it once; without one, each request does. The answer is the turn as it begins:
// [Client.Follow] gives what happens in it.
func (c *Client) Say(ctx context.Context, conversation, key string, r reeve.TurnRequest) (out reeve.Turn, err error) {
	if key == "" {
		key = c.key()
	}
	return out, c.do(ctx, &request{method: http.MethodPost, path: path("conversations", conversation, "turns"), body: r, key: key,
		again: "ask again with the Idempotency-Key " + key + ": it is said once"}, &out)
}

// Turns lists a conversation's turns, newest first.
func (c *Client) Turns(ctx context.Context, conversation string, p Page) (reeve.TurnList, error) {
	return get[reeve.TurnList](ctx, c, path("conversations", conversation, "turns"), p.query())
}

// Turn gives a turn with all that was said and done in it so far.
func (c *Client) Turn(ctx context.Context, id string) (reeve.TurnDetail, error) {
	return get[reeve.TurnDetail](ctx, c, path("turns", id), nil)
}

// CancelTurn ends a turn.
func (c *Client) CancelTurn(ctx context.Context, id string) (reeve.Turn, error) {
	return post[reeve.Turn](ctx, c, path("turns", id, "cancel"), nil)
}

// RateTurn says what you think of a turn.
func (c *Client) RateTurn(ctx context.Context, id string, r reeve.FeedbackRequest) (reeve.Feedback, error) {
	return post[reeve.Feedback](ctx, c, path("turns", id, "feedback"), r)
}

// Frames lists kept frames of a conversation after a sequence number, in order.
func (c *Client) Frames(ctx context.Context, conversation string, after int64, limit int) (reeve.FrameList, error) {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[reeve.FrameList](ctx, c, path("conversations", conversation, "frames"), q)
}

// Media fetches a file that an agent sent to a conversation.
func (c *Client) Media(ctx context.Context, conversation, hash string) ([]byte, error) {
	r := &request{method: http.MethodGet, path: path("conversations", conversation, "media", hash)}
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, c.lost(ctx, r, err)
	}
	return b, nil
}

// Deliver brings the outcome of an operation that was to come from outside.
func (c *Client) Deliver(ctx context.Context, operation string, r reeve.ResultRequest) (reeve.Operation, error) {
	return post[reeve.Operation](ctx, c, path("operations", operation, "result"), r)
}
