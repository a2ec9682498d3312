package tools_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

const (
	mara      = "mara@fernhill.example"
	tomas     = "tomas@fernhill.example"
	marasMail = "<012.sample@fernhill.example>"
	tomasMail = "<021.sample@fernhill.example>"
)

var inboxPattern = regexp.MustCompile(`"inbox":"([^"]*)"`)

// listInboxes returns the inboxes of the mails in the result of a mail tool, sorted.
func listInboxes(content string) string {
	var out []string
	for _, m := range inboxPattern.FindAllStringSubmatch(content, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func confined(inbox string) kit.Object {
	return kit.Object{"default_inbox": inbox, "confine_inbox": true}
}

// An agent that is confined to an inbox neither finds nor reads mail of another, whichever of its mail tools has the
// setting. Without the setting, default_inbox is only a default.
func TestM17_AgentsAreConfinedToAnInbox(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.StartWith(t, cfg)
		if _, err := h.InstallSampleMail(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		kit.NewPersona(h, "free", nil, "email_search", kit.Object{"default_inbox": tomas}, "email_get")
		kit.NewPersona(h, "both", nil, "email_search", confined(tomas), "email_get", confined(tomas))
		kit.NewPersona(h, "searcher", nil, "email_search", confined(tomas), "email_get")
		kit.NewPersona(h, "getter", nil, "email_search", "email_get", confined(tomas))
		kit.NewPersona(h, "torn", nil, "email_search", confined(tomas), "email_get", confined(mara))
		catalogue := kit.Object{"query": "catalogue"}
		in := func(inbox string) kit.Object { return kit.Object{"query": "catalogue", "inbox_id": inbox} }

		kit.Equal(t, listInboxes(h.Call("free", "email_search", in(mara)).Content), mara, "a default")
		for _, agent := range []string{"both", "searcher", "getter"} {
			kit.Equal(t, listInboxes(h.Call(agent, "email_search", catalogue).Content), tomas, agent)
			kit.Equal(t, listInboxes(h.Call(agent, "email_search", in("tomas")).Content), tomas, agent)
			kit.Equal(t, listInboxes(h.Call(agent, "email_get", kit.Object{"message_id": tomasMail}).Content),
				tomas, agent)
			for _, who := range []string{mara, "mara", "MARA@FERNHILL.EXAMPLE", "nobody@x", "*", "fernhill"} {
				code, text := callCode(t, h, agent, "email_search", in(who))
				if code != reeve.Forbidden || !strings.Contains(text, "may read only the inbox "+tomas) ||
					who != mara && strings.Contains(text, mara) {
					t.Errorf("%s searches %s: %s %s", agent, who, code, text)
				}
				code, text = callCode(t, h, agent, "email_get", kit.Object{"message_id": marasMail, "inbox_id": who})
				if code != reeve.Forbidden {
					t.Errorf("%s reads in %s: %s %s", agent, who, code, text)
				}
			}
			code, text := callCode(t, h, agent, "email_get", kit.Object{"message_id": marasMail})
			if code != reeve.ToolFailed || !strings.Contains(text, "Email not found") {
				t.Errorf("%s reads another inbox: %s %s", agent, code, text)
			}
			for _, query := range []string{"", "invoice OR frost", "to:mara"} {
				res := h.Call(agent, "email_search", kit.Object{"query": query, "limit": 50})
				if got := listInboxes(res.Content); strings.Contains(got, mara) {
					t.Errorf("%s finds %q in %s", agent, query, got)
				}
			}
		}
		for tool, args := range map[string]kit.Object{"email_search": catalogue,
			"email_get": {"message_id": tomasMail}} {
			if code, text := callCode(t, h, "torn", tool, args); code != reeve.Forbidden {
				t.Errorf("confined to two inboxes: %s %s", code, text)
			}
		}
		// An inbox that is gone leaves nothing, not everything.
		h.Want(204, nil, "DELETE", "/api/mail/inboxes/"+tomas, nil)
		if code, text := callCode(t, h, "both", "email_search", catalogue); code != reeve.Forbidden {
			t.Errorf("after the inbox was removed: %s %s", code, text)
		}
		if code, text := callCode(t, h, "both", "email_get", kit.Object{"message_id": marasMail}); code != reeve.Forbidden {
			t.Errorf("after the inbox was removed: %s %s", code, text)
		}
	})
}

// A confinement names an inbox exactly, because an inbox that is imported later could match anything else.
func TestM17_AConfinementNeedsAnInbox(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	if _, err := h.InstallSampleMail(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	a := h.Agent("clerk")
	for _, tool := range []string{"email_search", "email_get"} {
		for at, config := range map[string]kit.Object{
			"/config/confine_inbox":  {"confine_inbox": true},
			"/config/default_inbox":  confined("tomas"),
			"/config/default_inbox ": {"default_inbox": "nobody"},
			"/config/colour":         {"colour": 1},
		} {
			r := h.Do("POST", "/api/agents/"+a.ID+"/tools", kit.Object{"tool_id": tool, "config": config})
			if r.Status != 400 || !strings.Contains(string(r.Body), strings.TrimSpace(at)) {
				t.Errorf("%s %v: %d %s", tool, config, r.Status, r.Body)
			}
		}
	}
}

// An agent that works for a confined agent is confined too.
func TestM17_AConfinementReachesHelpers(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: email_get}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: email_search, args: {query: catalogue}}, {name: email_search, args: {query: catalogue, inbox_id: mara}}, {name: email_get, args: {message_id: "`+marasMail+`"}}]}
`)
	if _, err := h.InstallSampleMail(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	kit.NewPersona(h, "boss", nil, "delegate", "email_search", confined(tomas), "email_get")
	kit.NewPersona(h, "helper", nil, "email_search", "email_get")
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
	child := kit.ListChildren(h, turn.ID)[0]
	infos, said := kit.ListResults(h, child.ID, "email_search")
	if len(infos) != 2 || infos[0].Code != "" || listInboxes(said[0]) != tomas ||
		infos[1].Code != reeve.Forbidden {
		t.Errorf("%+v %q", infos, said)
	}
	if infos, said = kit.ListResults(h, child.ID, "email_get"); len(infos) != 1 || infos[0].Code != reeve.ToolFailed ||
		!strings.Contains(said[0], "Email not found") {
		t.Errorf("%+v %q", infos, said)
	}
	// By itself, the helper reads all.
	var page reeve.MailPage
	if err := json.Unmarshal([]byte(h.Call("helper", "email_search", kit.Object{"query": "catalogue"}).Content),
		&page); err != nil || len(page.Emails) < 4 {
		t.Errorf("%v %+v", err, page)
	}
}
