package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
	"reeve/internal/store"
)

const (
	conversationPath = "/api/conversations/{id}"
	turnsPath        = conversationPath + "/turns"
	eventsPath       = conversationPath + "/events"
	mediaPath        = conversationPath + "/media/{hash}"
	attachmentsPath  = conversationPath + "/attachments"
	playgroundPath   = "/api/playground/sessions/{sessionId}/chat"
)

// registerConversationRoutes registers the routes of conversations and turns.
func registerConversationRoutes(router huma.API, s *services) {
	const (
		get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
		viewer, member        = reeve.Viewer, reeve.Member
		created, noContent    = http.StatusCreated, http.StatusNoContent
		tag                   = "conversations"
	)
	conversations := &conversationHandlers{db: s.DB, chat: s.Chat, streamer: s.streamer, streams: s.Streams, log: s.Log}
	turns := &turnHandlers{db: s.DB, chat: s.Chat, canceler: s.canceler, streamer: s.streamer, log: s.Log}
	handle(router, route{get, "/api/conversations", "listConversations", "List your conversations", tag, viewer, 0},
		conversations.list)
	handle(router, route{post, "/api/conversations", "createConversation", "Create a conversation", tag, member,
		created},
		conversations.create)
	handle(router, route{get, conversationPath, "getConversation", "Get a conversation", tag, viewer, 0},
		conversations.get)
	handle(router, route{patch, conversationPath, "updateConversation", "Rename, complete or reopen a conversation",
		tag, member, 0}, conversations.update)
	handle(router, route{post, conversationPath + "/participants", "addParticipant", "Add a participant", tag, member,
		created}, conversations.addParticipant)
	handle(router, route{del, conversationPath + "/participants/{participantId}", "removeParticipant",
		"Remove a participant", tag, member, noContent}, conversations.removeParticipant)
	handle(router, route{get, conversationPath + "/messages", "listConversationMessages",
		"List a conversation's messages", tag, viewer, 0}, conversations.listMessages)
	handle(router, route{get, conversationPath + "/frames", "listFrames", "List the frames that clients received", tag,
		viewer,
		0}, conversations.listFrames)
	handle(router, route{get, mediaPath, "getConversationMedia", "Download a file that an agent sent", tag, viewer, 0},
		conversations.getMedia)
	handle(router, route{get, attachmentsPath, "listAttachments", "List the files that people attached", tag, viewer,
		0}, conversations.listAttachments)
	handle(router, route{get, attachmentsPath + "/{attachment}", "getAttachment", "Download an attached file", tag,
		viewer, 0}, conversations.getAttachment)
	handle(router, route{get, eventsPath, "streamConversation", "Follow a conversation (server-sent events)", tag,
		viewer, 0},
		conversations.streamEvents)
	handle(router, route{get, turnsPath, "listTurns", "List a conversation's turns", tag, viewer, 0}, turns.list)
	handle(router, route{post, turnsPath, "createTurn",
		"Begin a turn; with Accept: text/event-stream, stream it", tag, member, created}, turns.create)
	handle(router, route{get, "/api/turns/{id}", "getTurn", "Get a turn with its messages and feedback", tag,
		viewer, 0}, turns.get)
	handle(router, route{post, "/api/turns/{id}/cancel", "cancelTurn", "Cancel a turn", tag, member, 0}, turns.cancel)
	handle(router, route{post, "/api/turns/{id}/feedback", "rateTurn", "Give feedback on a turn", tag, member,
		created}, turns.rate)
	handle(router, route{post, playgroundPath, "playgroundChat",
		"Send a message in a playground session (server-sent events)", tag, member, 0}, turns.playground)

	documentStream(router, eventsPath, get, "200", nil)
	documentStream(router, turnsPath, post, "201", schemaOf[reeve.Turn](router))
	documentStream(router, playgroundPath, post, "200", schemaOf[api.PlaygroundInfo](router))
}

// documentStream documents a response that is a stream of server-sent events. With a schema, the response may also be
// one JSON document.
func documentStream(router huma.API, path, method, status string, schema *huma.Schema) {
	item := router.OpenAPI().Paths[path]
	op := item.Get
	if method == http.MethodPost {
		op = item.Post
	}
	content := map[string]*huma.MediaType{eventType: {Schema: &huma.Schema{Type: "string"}}}
	if schema != nil {
		content["application/json"] = &huma.MediaType{Schema: schema}
	}
	op.Responses[status].Content = content
}

func schemaOf[T any](router huma.API) *huma.Schema {
	return huma.SchemaFromType(router.OpenAPI().Components.Schemas, typeOf[T]())
}

// getVisibleConversation returns a conversation. It fails with NOT_FOUND if the caller may not see it.
func getVisibleConversation(ctx context.Context, snap *store.Snap, who reeve.Principal,
	id string) (reeve.Conversation, error) {
	return snap.Chat().GetConversation(ctx, who.Workspace, chat.VisibleTo(who), id)
}

// conversationHandlers serves conversations, their participants, messages, frames and files.
type conversationHandlers struct {
	db       *store.DB
	chat     *chat.Service
	streamer eventStreamer
	streams  *Streams
	log      *slog.Logger
}

func (h *conversationHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string `query:"agent" maxLength:"128" doc:"Agent id or name"`
	State string `query:"state" enum:"active,completed"`
	User  string `query:"user" maxLength:"255" doc:"Participant; only owners may name another user"`
}) (*body[api.ConversationList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ConversationList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		f := store.ConversationFilter{User: chat.VisibleTo(who), State: in.State, Before: in.Cursor, Limit: in.Limit}
		if f.User == "" && in.User != "" {
			if known, err := snap.Agents().HasUser(ctx, who.Workspace, in.User); err != nil {
				return err
			} else if !known {
				return newNotFound("user", in.User)
			}
			f.User = in.User
		} else if in.User != "" && in.User != f.User {
			return reeve.Errorf(reeve.Forbidden, "only an owner may list the conversations of another user")
		}
		var err error
		if f.Agent, err = resolveAgentFilter(ctx, snap, who.Workspace, in.Agent); err != nil {
			return err
		}
		out.Body.Conversations, err = snap.Chat().ListConversations(ctx, who.Workspace, f)
		return err
	})
	if n := len(out.Body.Conversations); n == in.Limit {
		out.Body.Next = out.Body.Conversations[n-1].ID
	}
	return out, err
}

func (h *conversationHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ConversationRequest
}) (*body[reeve.Conversation], error) {
	c, err := h.chat.Open(ctx, who, "", "chat", in.Body)
	return &body[reeve.Conversation]{c}, err
}

func (h *conversationHandlers) get(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.Conversation], error) {
	out := &body[reeve.Conversation]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = getVisibleConversation(ctx, snap, who, in.ID)
		return err
	})
}

func (h *conversationHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ConversationChange
}) (*body[reeve.Conversation], error) {
	out := &body[reeve.Conversation]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		c, err := getVisibleConversation(ctx, &tx.Snap, who, in.ID)
		if err != nil {
			return err
		}
		if err := tx.Chat().ChangeConversation(ctx, c.ID, in.Body); err != nil {
			return err
		}
		out.Body, err = getVisibleConversation(ctx, &tx.Snap, who, in.ID)
		return err
	})
}

func (h *conversationHandlers) addParticipant(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.ParticipantRequest
}) (*body[reeve.Conversation], error) {
	if strings.TrimSpace(in.Body.ID) == "" {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the participant's id is missing",
			Fields: []reeve.Field{{Path: "/id", Message: "is blank", Expected: "a user, or an agent's id or name"}}}
	}
	out := &body[reeve.Conversation]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := getVisibleConversation(ctx, &tx.Snap, who, in.ID); err != nil {
			return err
		}
		p := reeve.Participant{Kind: in.Body.Kind, ID: in.Body.ID, AddedBy: who.User}
		if p.Kind == reeve.AgentParticipant {
			a, err := tx.Agents().GetAgent(ctx, who.Workspace, p.ID)
			if err != nil {
				return err
			}
			if a.Lifecycle == reeve.AgentDestroyed {
				return reeve.Errorf(reeve.Conflict, "the agent is destroyed")
			}
			p.ID = a.ID
		} else if err := chat.CheckUser(ctx, &tx.Snap, who.Workspace, p.ID, "/id"); err != nil {
			return err
		}
		fresh, err := tx.Chat().AddParticipant(ctx, in.ID, p)
		if err == nil && !fresh {
			err = reeve.Errorf(reeve.AlreadyExists, "%q is a participant already", in.Body.ID)
		}
		if err != nil {
			return err
		}
		if out.Body, err = tx.Chat().GetConversation(ctx, who.Workspace, "", in.ID); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

// removeParticipant removes a user or an agent from a conversation. A conversation keeps its own agent and at least one
// user.
func (h *conversationHandlers) removeParticipant(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Participant string `path:"participantId" maxLength:"128" doc:"User, or agent id"`
	Kind        string `query:"kind" enum:"user,agent" default:"user"`
}) (*none, error) {
	defer h.streams.Recheck()
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		// the lock keeps two concurrent requests from removing the last two users
		if err := tx.Chat().LockConversation(ctx, in.ID); err != nil {
			return err
		}
		c, err := getVisibleConversation(ctx, &tx.Snap, who, in.ID)
		if err != nil {
			return err
		}
		usersLeft := 0
		for _, p := range c.Participants {
			if p.Kind == reeve.UserParticipant && (in.Kind != p.Kind || p.ID != in.Participant) {
				usersLeft++
			}
		}
		switch {
		case in.Kind == reeve.AgentParticipant && in.Participant == c.AgentID:
			return reeve.Errorf(reeve.Conflict, "the agent of a conversation cannot be removed").
				Hintf("create another conversation to talk to another agent")
		case usersLeft == 0:
			return reeve.Errorf(reeve.Conflict, "the last user of a conversation cannot be removed").
				Hintf("complete the conversation instead")
		}
		ok, err := tx.Chat().RemoveParticipant(ctx, in.ID, in.Kind, in.Participant)
		if err == nil && !ok {
			err = reeve.Errorf(reeve.NotFound, "%s %q is not a participant", in.Kind, in.Participant)
		}
		return err
	})
}

func (h *conversationHandlers) listMessages(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.MessageList], error) {
	if err := checkMessageCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.MessageList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Messages, err = snap.Ledger().ListMessages(ctx, who.Workspace, c.ThreadID(), in.Cursor, in.Limit)
		return err
	})
	if n := len(out.Body.Messages); n == in.Limit {
		out.Body.Next = store.MessageCursor(out.Body.Messages[n-1])
	}
	return out, err
}

func (h *conversationHandlers) listFrames(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	ListPosition
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"200"`
}) (*body[api.FrameList], error) {
	out := &body[api.FrameList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		if out.Body.Frames, err = snap.Chat().ListFrames(ctx, c.ID, in.After, in.Limit); err != nil {
			return err
		}
		for i := range out.Body.Frames {
			out.Body.Frames[i].ConversationID = c.ID
		}
		if out.Body.Last, err = snap.Chat().LastFrame(ctx, c.ID); err != nil {
			return err
		}
		return chat.CheckPosition(in.After, out.Body.Last)
	})
}
