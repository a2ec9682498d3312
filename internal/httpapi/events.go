package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/feed"
	"reeve/internal/store"
)

const (
	workspaceEventsPath = "/api/events"
	maxStreamsPerToken  = 20
)

// eventHandlers serves the stream of changes.
type eventHandlers struct {
	feed    *feed.Feed
	permits streamPermitIssuer
	streams *Streams

	mu   sync.Mutex
	open map[string]int // number of open streams by token id
}

func (h *eventHandlers) stream(ctx context.Context, who reeve.Principal, in *struct {
	Header    string `header:"X-Workspace-Id" doc:"Workspace id, such as default"`
	Workspace string `query:"workspace" maxLength:"64" doc:"Workspace id, for clients that cannot set headers"`
	Last      string `header:"Last-Event-ID" maxLength:"64" doc:"Id of the last event received"`
	Follow    bool   `query:"follow" default:"true" doc:"Wait for changes; false ends the stream after the known ones"`
}) (*huma.StreamResponse, error) {
	if h.feed == nil {
		return nil, reeve.Errorf(reeve.Unsupported, "this server has no stream of changes")
	}
	if err := h.enter(who.TokenID); err != nil {
		return nil, err
	}
	reader, continues, err := h.feed.Subscribe(ctx, in.Last)
	if err != nil {
		h.leave(who.TokenID)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer h.leave(who.TokenID)
		defer reader.Close()
		h.streams.serveEvents(c, http.StatusOK, func(ctx context.Context, e *eventWriter) {
			name := api.EventConnected
			if !continues {
				name = api.EventReset
			}
			if in.Last == "" || !continues {
				e.addText(reader.ID(), name, struct{}{})
			}
			if err := h.send(ctx, e, reader, who, in.Follow); err != nil {
				logServerFailure(ctx, h.streams.endError(ctx, err))
			}
		})
	}}, nil
}

// enter counts a stream of a token. It fails if the token has too many.
func (h *eventHandlers) enter(token string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[string]int{}
	}
	if h.open[token] >= maxStreamsPerToken {
		return reeve.Errorf(reeve.RateLimited, "the token has %d open streams of changes", h.open[token]).
			Hintf("close one of them")
	}
	h.open[token]++
	return nil
}

func (h *eventHandlers) leave(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[token]--; h.open[token] == 0 {
		delete(h.open, token)
	}
}

// send streams changes until the client disconnects, loses its right to listen, or the server stops.
func (h *eventHandlers) send(ctx context.Context, e *eventWriter, r *feed.Reader, who reeve.Principal,
	follow bool) error {
	permit, err := h.permits.issue(ctx, who, "")
	defer permit.close()
	if err != nil {
		return err
	}
	if err := e.flush(); err != nil || !follow {
		return err
	}
	for {
		var events []feed.Event
		missed := false
		if err := permit.wait(ctx, func(ctx context.Context) (err error) {
			events, missed, err = r.Next(ctx, who.Workspace)
			return err
		}); err != nil {
			return err
		}
		if missed {
			e.addText(r.ID(), api.EventReset, struct{}{})
		}
		for _, v := range events {
			e.addText(r.IDOf(v.N), api.EventChange, describeChange(who, v.Announcement))
		}
		if len(events) == 0 && !missed {
			e.addKeepAlive()
		}
		if err := e.flush(); err != nil {
			return err
		}
	}
}

// describeChange returns a change as the caller may see it. Entries that may belong to another user, and those that
// only owners may list, have an id for owners only.
func describeChange(who reeve.Principal, a store.Announcement) api.ChangeEvent {
	c := api.ChangeEvent{Topic: string(a.Topic), ID: a.ID, Run: a.Run}
	if who.Role == reeve.Owner {
		return c
	}
	c.Run = ""
	switch a.Topic {
	case store.TopicApprovals, store.TopicProposals, store.TopicOperations, store.TopicAgents, store.TopicAutomations:
	default:
		c.ID = ""
	}
	return c
}

// addText adds an event whose id is a text.
func (e *eventWriter) addText(id, name string, data any) {
	text, err := json.Marshal(data)
	if err != nil { // our own types always marshal
		panic(err)
	}
	fmt.Fprintf(&e.out, "id: %s\nevent: %s\ndata: %s\n\n", id, name, cmp.Or(string(text), "{}"))
}
