package kit

import (
	"net/http"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// UpdateAgent patches an agent over REST.
func UpdateAgent(h *reevetest.Host, a reeve.Agent, body map[string]any) {
	h.T.Helper()
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID, body)
}

// RemoveAgentBy lists two ways to end an agent: "destroyed" changes its lifecycle, "removed" deletes its row.
var RemoveAgentBy = map[string]func(h *reevetest.Host, a reeve.Agent){
	"destroyed": func(h *reevetest.Host, a reeve.Agent) { UpdateAgent(h, a, Object{"lifecycle": "destroyed"}) },
	"removed": func(h *reevetest.Host, a reeve.Agent) {
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
	},
}

// NewPersona creates an agent whose instructions are "I am NAME.", with more fields of its request and with tools. A
// tool id may be followed by an Object with the settings of that tool.
func NewPersona(h *reevetest.Host, name string, also Object, tools ...any) reeve.Agent {
	h.T.Helper()
	body := Object{"name": name, "config": Object{"instructions": "I am " + name + "."}}
	for k, v := range also {
		body[k] = v
	}
	var a reeve.Agent
	h.Want(http.StatusCreated, &a, "POST", "/api/agents", body)
	for i, tool := range tools {
		id, ok := tool.(string)
		if !ok {
			continue
		}
		attached := Object{"tool_id": id}
		if i+1 < len(tools) {
			if config, ok := tools[i+1].(Object); ok {
				attached["config"] = config
			}
		}
		h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", attached)
	}
	return a
}

// NewCategory creates a category of the journal and returns its id.
func NewCategory(h *reevetest.Host, name string) string {
	h.T.Helper()
	var c reeve.Category
	h.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: name})
	return c.ID
}

// ListNotes returns the texts of the notes that a query selects.
func ListNotes(h *reevetest.Host, query string, headers ...string) (out []string) {
	h.T.Helper()
	var l api.NoteList
	h.Want(http.StatusOK, &l, "GET", "/api/notes"+query, nil, headers...)
	for _, n := range l.Notes {
		out = append(out, n.Content)
	}
	return out
}

// NewTokenFor creates a token for another user and returns the request headers that use it.
func NewTokenFor(h *reevetest.Host, user, role string) []string {
	h.T.Helper()
	var made struct {
		Token string `json:"token"`
	}
	h.Want(http.StatusCreated, &made, "POST", "/api/tokens", Object{"name": user, "user": user, "role": role})
	return []string{"Authorization", "Bearer " + made.Token}
}
