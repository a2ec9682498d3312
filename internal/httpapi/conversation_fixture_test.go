package httpapi_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// conversationFixture has the ids of a conversation, a turn and two notes.
type conversationFixture struct{ conversation, turn, note, forgettable string }

var missingConversation = conversationFixture{conversation: "conv_none", turn: "run_none", note: "note_none",
	forgettable: "note_none"}

// createConversationFixture creates a conversation with a waiting turn, and two notes.
func createConversationFixture(t *testing.T, h *reevetest.Host, agent string) (x conversationFixture) {
	t.Helper()
	x.conversation = decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations",
		object{"agent": agent, "title": "alpha's"})).ID
	x.turn = decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+x.conversation+"/turns",
		object{"content": "alpha's"})).ID
	x.forgettable = decode[reeve.Note](t, h.Want(201, nil, "POST", "/api/notes", object{"content": "to forget"})).ID
	x.note = decode[reeve.Note](t, h.Want(201, nil, "POST", "/api/notes",
		object{"content": "alpha's"})).ID
	return x
}

func (x conversationFixture) mask(s string) string {
	return strings.NewReplacer(x.conversation, "#", x.turn, "#", x.note, "#", x.forgettable, "#").Replace(s)
}

func (x conversationFixture) samples(agentID, operation string) map[string]sample {
	at, turn := "/api/conversations/"+x.conversation, "/api/turns/"+x.turn
	return map[string]sample{
		"listConversations": {"/api/conversations", nil, false, reeve.Viewer},
		"listNotes":         {"/api/notes", nil, false, reeve.Viewer},
		"searchNotes":       {"/api/notes/search?q=tea", nil, false, reeve.Viewer},
		"createNote":        {"/api/notes", object{"content": "remember"}, false, reeve.Member},
		"getNote":           {"/api/notes/" + x.note, nil, true, reeve.Viewer},
		"getNoteHistory":    {"/api/notes/" + x.note + "/history", nil, true, reeve.Viewer},
		"updateNote":        {"/api/notes/" + x.note, object{"pinned": true}, true, reeve.Member},
		"deleteNote":        {"/api/notes/" + x.note, nil, true, reeve.Member},
		"restoreNote":       {"/api/notes/" + x.note + "/restore", nil, true, reeve.Member},
		"forgetNote":        {"/api/notes/" + x.forgettable + "/forget", nil, true, reeve.Member},
		"importNotes": {"/api/notes/import", object{"notes": []any{object{"content": "imported"}}}, false,
			reeve.Member},
		"exportNotes":              {"/api/notes/export", nil, false, reeve.Viewer},
		"consolidateNotes":         {"/api/notes/consolidate", nil, false, reeve.Member},
		"createConversation":       {"/api/conversations", object{"agent": agentID}, true, reeve.Member},
		"getConversation":          {at, nil, true, reeve.Viewer},
		"updateConversation":       {at, object{"title": "other"}, true, reeve.Member},
		"addParticipant":           {at + "/participants", object{"kind": "user", "id": "carol"}, true, reeve.Member},
		"removeParticipant":        {at + "/participants/carol", nil, true, reeve.Member},
		"listConversationMessages": {at + "/messages", nil, true, reeve.Viewer},
		"listFrames":               {at + "/frames", nil, true, reeve.Viewer},
		"listAttachments":          {at + "/attachments", nil, true, reeve.Viewer},
		"getAttachment":            {at + "/attachments/att_none", nil, true, reeve.Viewer},
		"getConversationMedia":     {at + "/media/" + strings.Repeat("0", 64), nil, true, reeve.Viewer},
		"streamConversation":       {at + "/events", nil, true, reeve.Viewer},
		"listTurns":                {at + "/turns", nil, true, reeve.Viewer},
		"createTurn":               {at + "/turns", object{"content": "hello"}, true, reeve.Member},
		"getTurn":                  {turn, nil, true, reeve.Viewer},
		"cancelTurn":               {turn + "/cancel", nil, true, reeve.Member},
		"rateTurn":                 {turn + "/feedback", object{"score": 1}, true, reeve.Member},
		"playgroundChat": {"/api/playground/sessions/mine/chat",
			object{"message": "hello", "agentId": agentID, "detach": true}, true, reeve.Member},
		"deliverOperationResult": {"/api/operations/" + operation + "/result", object{"error": "it is gone"}, true,
			reeve.Member},
	}
}
