package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// things names one thing of each kind.
type things struct {
	agent, tool, operation, unknown, undoable, approval, call, hash, token, secret, kind, subject string
	journal                                                                                       journalThings
	wakes                                                                                         wakeThings
	proposal, refused, changeSet                                                                  string
	talk                                                                                          talkThings
	auto                                                                                          automationThings
	mail                                                                                          mailThings
	branch                                                                                        branchThings
}

// nowhere names things that are not there.
var nowhere = things{agent: "nobody", tool: "nothing", operation: "op_none", unknown: "op_none", undoable: "op_none",
	approval: "apr_none", call: "msg_none",
	hash: strings.Repeat("0", 64), token: "tok_none", secret: "NONE", kind: "robot", subject: "agent:nobody",
	journal: noJournal, wakes: noWakes,
	proposal: "prop_none", refused: "prop_none", changeSet: "cs_none", talk: noTalk, auto: noAutomation, mail: noMail,
	branch: noBranch}

// sample is a request that is right in itself.
type sample struct {
	path  string
	body  any
	names bool       // it names a thing, so that elsewhere it is not found
	role  reeve.Role // the least that may
}

// sampled leaves out operations that have no sample yet. TestI06_OtherWorkspacesAreInvisible names them.
func sampled(operations []operation) []operation {
	have := samples(nowhere)
	return slices.DeleteFunc(operations, func(o operation) bool { _, ok := have[o.id]; return !ok })
}

// samples has one request for every operation of the API. Whoever adds a route adds its sample here, and all sweeps
// know it.
func samples(x things) map[string]sample {
	agent := "/api/agents/" + x.agent
	w := weather(nil)
	w["id"] = x.tool
	call := object{"tool": "looks", "args": object{}}
	all := map[string]sample{
		"listTools":      {"/api/tools", nil, false, reeve.Viewer},
		"createTool":     {"/api/tools", w, false, reeve.Member},
		"getTool":        {"/api/tools/" + x.tool, nil, true, reeve.Viewer},
		"updateTool":     {"/api/tools/" + x.tool, w, true, reeve.Member},
		"deleteTool":     {"/api/tools/" + x.tool, nil, true, reeve.Member},
		"listAgents":     {"/api/agents", nil, false, reeve.Viewer},
		"createAgent":    {"/api/agents", object{"name": "made-" + x.kind}, false, reeve.Member},
		"getAgent":       {agent, nil, true, reeve.Viewer},
		"updateAgent":    {agent, object{"kind": "reader"}, true, reeve.Member},
		"deleteAgent":    {agent, nil, true, reeve.Member},
		"listAgentTools": {agent + "/tools", nil, true, reeve.Viewer},
		"attachTool":     {agent + "/tools", object{"tool_id": "file_read"}, true, reeve.Member},
		"detachTool":     {agent + "/tools/looks", nil, true, reeve.Member},
		"listMessages":   {agent + "/messages", nil, true, reeve.Viewer},
		"callTool":       {agent + "/calls", call, true, reeve.Member},
		"callTools":      {agent + "/calls/batch", object{"calls": []any{call}}, true, reeve.Member},
		"previewCall":    {agent + "/calls/explain", call, true, reeve.Viewer},
		"explainCall":    {"/api/calls/" + x.call + "/explanation", nil, true, reeve.Viewer},
		"getOutput":      {"/api/outputs/" + x.hash, nil, true, reeve.Viewer},
		"listOperations": {"/api/operations", nil, false, reeve.Viewer},
		"getOperation":   {"/api/operations/" + x.operation, nil, true, reeve.Viewer},
		"resolveOperation": {"/api/operations/" + x.unknown + "/resolve", object{"resolution": "skip"}, true,
			reeve.Member},
		"undoOperation":      {"/api/operations/" + x.undoable + "/undo", nil, true, reeve.Member},
		"listJournalEffects": {"/api/journal/effects/" + x.operation, nil, true, reeve.Viewer},
		"getInbox":           {"/api/inbox", nil, false, reeve.Viewer},
		"listApprovals":      {"/api/approvals", nil, false, reeve.Viewer},
		"getApproval":        {"/api/approvals/" + x.approval, nil, true, reeve.Viewer},
		"decideApproval": {"/api/approvals/" + x.approval + "/decision", object{"decision": "approve"}, true,
			reeve.Member},
		"listProposals":   {"/api/proposals", nil, false, reeve.Viewer},
		"getProposal":     {"/api/proposals/" + x.proposal, nil, true, reeve.Viewer},
		"acceptProposal":  {"/api/proposals/" + x.proposal + "/accept", object{}, true, reeve.Member},
		"rejectProposal":  {"/api/proposals/" + x.refused + "/reject", object{"comment": "no"}, true, reeve.Member},
		"reopenProposal":  {"/api/proposals/" + x.refused + "/reopen", nil, true, reeve.Member},
		"listChangeSets":  {"/api/change-sets", nil, false, reeve.Viewer},
		"getChangeSet":    {"/api/change-sets/" + x.changeSet, nil, true, reeve.Viewer},
		"acceptChangeSet": {"/api/change-sets/" + x.changeSet + "/accept", object{}, true, reeve.Member},
		"rejectChangeSet": {"/api/change-sets/" + x.changeSet + "/reject", object{"comment": "no"}, true,
			reeve.Member},
		"stopAgents":   {"/api/stop", object{"agent": x.agent, "reason": "test"}, true, reeve.Member},
		"resumeAgents": {"/api/resume", object{"agent": x.agent}, true, reeve.Member},
		"listProfiles": {"/api/profiles", nil, false, reeve.Viewer},
		"putProfile": {"/api/profiles/" + x.kind, object{"capabilities": []string{"files.read"}}, false,
			reeve.Owner},
		"listBudgets": {"/api/budgets", nil, false, reeve.Viewer},
		"putBudget": {"/api/budgets/" + x.subject, object{"limit": object{"calls": 1}},
			strings.HasPrefix(x.subject, "agent:"), reeve.Owner},
		"deleteBudget":    {"/api/budgets/" + x.subject, nil, true, reeve.Owner},
		"listTokens":      {"/api/tokens", nil, false, reeve.Owner},
		"createToken":     {"/api/tokens", object{"name": "made", "role": "viewer"}, false, reeve.Owner},
		"revokeToken":     {"/api/tokens/" + x.token, nil, true, reeve.Owner},
		"listSecrets":     {"/api/secrets", nil, false, reeve.Owner},
		"putSecret":       {"/api/secrets/" + x.secret, object{"value": "beta value"}, false, reeve.Owner},
		"deleteSecret":    {"/api/secrets/" + x.secret, nil, true, reeve.Owner},
		"listWorkspaces":  {"/api/workspaces", nil, false, reeve.Viewer},
		"createWorkspace": {"/api/workspaces", object{"id": "made-" + x.kind}, false, reeve.Owner},
		"getStatus":       {"/api/status", nil, false, reeve.Viewer},
		"getHold":         {"/api/hold", nil, false, reeve.Viewer},
		"getDoctorReport": {"/api/doctor", nil, false, reeve.Viewer},
		"downloadBackup":  {"/api/backup", nil, false, reeve.Owner},
	}
	maps.Copy(all, x.journal.samples())
	maps.Copy(all, x.wakes.samples(x.agent))
	maps.Copy(all, x.talk.samples(x.agent, x.operation))
	maps.Copy(all, x.auto.samples(x.kind))
	maps.Copy(all, x.mail.samples())
	maps.Copy(all, x.branch.samples(x.kind))
	return all
}

// furnish gives the workspace default one thing of each kind.
func furnish(t *testing.T, h *reevetest.Host) things {
	t.Helper()
	x := things{tool: "alphas", secret: "ALPHA", kind: "alphakind"}
	x.agent = h.Agent("alpha", "sends", "danger", "loses", "looks", "shouts", "write_file").ID
	x.subject = "agent:" + x.agent
	define(t, h, object{"id": x.tool, "description": "What only alpha has, in many words."})
	h.Want(200, nil, "PUT", "/api/profiles/"+x.kind, object{"capabilities": []string{"alpha.cap"}})
	h.Want(200, nil, "PUT", "/api/budgets/"+x.subject, object{"limit": object{"calls": 1000}})
	h.Want(204, nil, "PUT", "/api/secrets/"+x.secret, object{"value": "alpha's own value"})
	x.token = decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens",
		object{"name": "alpha-token", "role": "viewer"})).ID

	done := h.Call(x.agent, "sends", object{"to": "alpha"}, "Idempotency-Key", "k")
	x.operation, x.undoable, x.call = done.OperationID, done.OperationID, done.CallID
	x.approval = h.Call(x.agent, "danger", object{}).ApprovalID
	x.unknown = h.Call(x.agent, "loses", object{}).OperationID
	h.Want(200, nil, "PATCH", "/api/agents/"+x.agent,
		object{"policy": object{"tools": object{"write_file": "propose"}}})
	propose := func(session string) reeve.Proposal { // each in a change set of its own
		write := object{"tool": "write_file", "session": session, "args": object{"path": "/" + session,
			"content": "alpha's"}}
		id := decode[reeve.Result](t, h.Want(202, nil, "POST", "/api/agents/"+x.agent+"/calls", write)).ProposalID
		return decode[reeve.Proposal](t, h.Want(200, nil, "GET", "/api/proposals/"+id, nil))
	}
	x.proposal, x.refused, x.changeSet = propose("a").ID, propose("b").ID, propose("c").SetID
	x.hash = h.Call(x.agent, "shouts", object{}).Hash
	x.journal = furnishJournal(h)
	x.wakes = furnishWakes(t, h, x.agent)
	x.talk = furnishTalk(t, h, x.agent)
	x.auto = furnishAutomation(t, h)
	x.mail = furnishMail(t, h)
	x.branch = furnishBranch(t, h)
	for what, id := range map[string]string{"operation": x.operation, "approval": x.approval, "unknown": x.unknown,
		"hash": x.hash, "proposal": x.proposal} {
		if id == "" {
			t.Fatalf("no %s was made", what)
		}
	}
	return x
}

// blot hides the names of things in a text.
func (x things) blot(s string) string {
	for _, id := range []string{x.proposal, x.refused, x.changeSet, x.subject, x.agent, x.tool, x.operation, x.unknown,
		x.approval, x.call, x.hash, x.token, x.secret, x.kind} {
		s = strings.ReplaceAll(s, id, "#")
	}
	return x.branch.blot(x.mail.blot(x.auto.blot(x.talk.blot(x.wakes.blot(x.journal.blot(s))))))
}

// request sends a sample.
func (s sample) request(h *reevetest.Host, method string, headers ...string) reevetest.Reply {
	return h.Do(method, s.path, s.body, headers...)
}

func TestI06_OtherWorkspacesAreInvisible(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		x := furnish(t, h)
		alpha, beta := as(token(t, h, reeve.Owner, "default")), token(t, h, reeve.Owner, "beta")
		in := as(beta, "beta")
		theirs, none := samples(x), samples(nowhere)
		before := picture(t, h, alpha...)
		for _, o := range document(t, h).operations() {
			if _, ok := theirs[o.id]; !ok {
				t.Errorf("no sample for %s %s (%s): add one to samples", o.method, o.path, o.id)
			}
		}
		operations := sampled(document(t, h).operations())
		for _, o := range operations { // what names a thing: it is not there, in the very words for one that never was
			s := theirs[o.id]
			// its token is of no use in the other workspace
			refused(t, s.request(h, o.method, as(beta)...), 403, reeve.Forbidden)
			refused(t, s.request(h, o.method, as(beta, "nowhere")...), 403, reeve.Forbidden)
			if !s.names {
				continue
			}
			p := refused(t, s.request(h, o.method, in...), 404, reeve.NotFound)
			q := refused(t, none[o.id].request(h, o.method, in...), 404, reeve.NotFound)
			if x.blot(p.Detail) != nowhere.blot(q.Detail) || p.Hint != q.Hint {
				t.Errorf("%s: %q is not as %q", o.id, p.Detail, q.Detail)
			}
		}
		for _, o := range operations { // the rest does what it does, in its own workspace
			s := theirs[o.id]
			if s.names {
				continue
			}
			r := s.request(h, o.method, in...)
			if o.id == "downloadBackup" || o.id == "createWorkspace" || o.id == "createProject" {
				refused(t, r, 403, reeve.Forbidden) // it concerns the whole server
				continue
			}
			if r.Status >= 300 {
				t.Errorf("%s in its own workspace: %d %s", o.id, r.Status, r.Body)
			}
			for _, word := range []string{x.agent, x.operation, x.unknown, x.approval, x.call, x.hash, x.token,
				x.proposal, x.refused, x.changeSet, "alpha's", "alpha-token", "alpha.cap", "only alpha",
				`"id":"default"`, `_id":"default"`, `["default"`, `"default"]`} {
				if strings.Contains(string(r.Body), word) {
					t.Errorf("%s shows %q: %s", o.id, word, r.Body)
				}
			}
		}
		unchanged(t, before, picture(t, h, alpha...))

		// The same key, run and session in both are two of each.
		h.Want(201, nil, "POST", "/api/agents", object{"name": "alpha"}, in...)
		for _, id := range []string{"sends", "danger", "looks"} {
			h.Want(201, nil, "POST", "/api/agents/alpha/tools", object{"tool_id": id}, in...)
		}
		mine := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/alpha/calls",
			object{"tool": "sends", "args": object{"to": "alpha"}}, append(in, "Idempotency-Key", "k")...))
		if mine.Replayed || mine.OperationID == x.operation {
			t.Errorf("a key of another workspace counted: %+v", mine)
		}
		h.Want(202, nil, "POST", "/api/agents/alpha/calls", object{"tool": "danger", "run": "nightly"})
		h.Want(200, nil, "POST", "/api/agents/alpha/calls", object{"tool": "sends", "args": object{}, "run": "nightly"},
			in...)
	})
}

func TestI06_Roles(t *testing.T) {
	t.Parallel()
	h := start(t, tricks()...)
	operations := sampled(document(t, h).operations())
	all := samples(nowhere)
	allowed := 0
	for _, role := range reeve.Roles() {
		mine := token(t, h, role)
		for _, o := range operations {
			s := all[o.id]
			if role == reeve.Viewer && s.role == reeve.Viewer && o.method != "GET" && o.id != "previewCall" {
				t.Errorf("%s %s: a viewer may change something", o.method, o.path)
			}
			r := s.request(h, o.method, as(mine)...)
			if !role.Allows(s.role) {
				if p := refused(t, r, 403, reeve.Forbidden); !strings.Contains(p.Hint, string(s.role)) {
					t.Errorf("%s as %s: hint %q", o.id, role, p.Hint)
				}
				if s.body != nil { // who may not is not told what a request should be like
					s.body = object{"no such field": []int{}}
					refused(t, s.request(h, o.method, as(mine)...), 403, reeve.Forbidden)
				}
				continue
			}
			// they concern the whole server
			if slices.Contains([]string{"downloadBackup", "createWorkspace", "createProject"}, o.id) {
				if p := refused(t, r, 403, reeve.Forbidden); !strings.Contains(p.Hint, "owner.token") {
					t.Errorf("%s as %s: hint %q", o.id, role, p.Hint)
				}
				continue
			}
			if allowed++; r.Status == 401 || r.Status == 403 || r.Status >= 500 {
				t.Errorf("%s as %s: %d %s", o.id, role, r.Status, r.Body)
			}
		}
	}
	if allowed < len(all) {
		t.Errorf("only %d requests were let through", allowed)
	}
}

func TestI06_InvalidTokens(t *testing.T) {
	t.Parallel()
	h := start(t)
	good := token(t, h, reeve.Member)
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", object{"name": "soon gone", "role": "member"})
	h.Want(200, nil, "GET", "/api/agents", nil, as(made.Token)...)
	h.Want(204, nil, "DELETE", "/api/tokens/"+made.ID, nil)
	refused(t, h.Do("DELETE", "/api/tokens/"+made.ID, nil), 404, reeve.NotFound)
	var brief api.NewToken
	h.Want(201, &brief, "POST", "/api/tokens", object{"name": "brief", "role": "member", "expires_at": reeve.Now().
		Add(200 * time.Millisecond)})
	zoned := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "zoned", "role": "member",
		"expires_at": "9998-12-31T23:59:59-23:59"}))
	if got := zoned.ExpiresAt.Format(time.RFC3339); got != "9999-01-01T23:58:59Z" {
		t.Errorf("it expires at %s", got)
	}
	h.Want(200, nil, "GET", "/api/agents", nil, as(zoned.Token)...)
	for h.Do("GET", "/api/agents", nil, as(brief.Token)...).Status == 200 { // until it has expired
	}
	bad := map[string]string{"revoked": made.Token, "expired": brief.Token, "nothing": "x", "prefix only": "reeve_",
		"no secret": "reeve_" + made.ID, "empty secret": "reeve_" + made.ID + "_",
		"wrong secret": good[:len(good)-1] + "!", "another's secret": "reeve_" + made.ID +
			good[strings.LastIndex(good, "_"):],
		"upper case": strings.ToUpper(good), "with a NUL escape": good + "%00", "an id": made.ID,
		"sql": "reeve_' OR 1=1 --_x", "long": "reeve_" + strings.Repeat("a", 20000)}
	for name, text := range bad {
		for _, method := range []string{"GET", "POST"} {
			r := h.Do(method, "/api/agents", object{"name": "x"}, "Authorization", "Bearer "+text)
			if p := refused(t, r, 401, reeve.Unauthenticated); strings.Contains(string(r.Body), text) &&
				len(text) > 10 {
				t.Errorf("%s: the token is in the answer: %+v", name, p)
			}
		}
	}
	for _, header := range []string{"", "Basic " + good, good, "bearer", "Bearer", "Bearer "} {
		refused(t, h.Do("GET", "/api/agents", nil, "Authorization", header), 401, reeve.Unauthenticated)
	}
	h.Want(200, nil, "GET", "/api/agents", nil, as(good)...)
	if b, _ := json.Marshal(decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil))); strings.Contains(
		string(b), good) || strings.Contains(string(b), "hash") {
		t.Errorf("the list of tokens shows too much: %s", b)
	}
	refusedAt(t, h.Do("POST", "/api/tokens", object{"name": "late", "role": "member",
		"expires_at": "2001-01-01T00:00:00Z"}), "/expires_at")
	before := len(decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens)
	// could not be shown again
	for _, at := range []string{"2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00-24:00", "2030-01-01T00:00:00+12:60",
		"9999-12-31T23:59:59-23:00", "9999-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
		"2030-01-01", ""} {
		refusedAt(t, h.Do("POST", "/api/tokens", object{"name": "odd", "role": "member", "expires_at": at}),
			"/expires_at")
	}
	if list := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens; len(list) != before {
		t.Errorf("there were %d tokens, and are %+v", before, list)
	}
	refused(t, h.Do("POST", "/api/tokens", object{"name": "far", "role": "member",
		"workspaces": []string{"elsewhere"}}), 403, reeve.Forbidden)
}

// A token of two workspaces is not one workspace's to end, and does not show it the other.
func TestI06_TokensOfSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	beta := token(t, h, reeve.Owner, "beta")
	both := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "both", "role": "member",
		"workspaces": []string{"default", "beta"}}))
	for _, v := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil, as(beta, "beta")...)).
		Tokens {
		if fmt.Sprint(v.Workspaces) != "[beta]" {
			t.Errorf("the token %s shows %v", v.Name, v.Workspaces)
		}
	}
	refused(t, h.Do("DELETE", "/api/tokens/"+both.ID, nil, as(beta, "beta")...), 403, reeve.Forbidden)
	h.Want(200, nil, "GET", "/api/agents", nil, as(both.Token, "beta")...)
	h.Want(200, nil, "GET", "/api/agents", nil, as(both.Token, "default")...)
	h.Want(204, nil, "DELETE", "/api/tokens/"+both.ID, nil)
	refused(t, h.Do("GET", "/api/agents", nil, as(both.Token, "beta")...), 401, reeve.Unauthenticated)
}
