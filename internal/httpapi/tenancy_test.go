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

// fixture has the ids of one entry of each kind.
type fixture struct {
	agent, tool, operation, unknown, undoable, approval, call, hash, token, secret, kind, subject string
	journal                                                                                       journalFixture
	wakes                                                                                         wakeFixture
	proposal, rejected, changeSet                                                                 string
	conversation                                                                                  conversationFixture
	automation                                                                                    automationFixture
	mail                                                                                          mailFixture
	branch                                                                                        branchFixture
}

// missing has ids that do not exist.
var missing = fixture{agent: "nobody", tool: "nothing", operation: "op_none", unknown: "op_none", undoable: "op_none",
	approval: "apr_none", call: "msg_none",
	hash: strings.Repeat("0", 64), token: "tok_none", secret: "NONE", kind: "robot", subject: "agent:nobody",
	journal: missingJournal, wakes: missingWakes,
	proposal: "prop_none", rejected: "prop_none", changeSet: "cs_none", conversation: missingConversation,
	automation: missingAutomation, mail: missingMail,
	branch: missingBranch}

// sample is a valid request.
type sample struct {
	path       string
	body       any
	namesEntry bool       // the request names an entry, so it is not found in another workspace
	role       reeve.Role // the lowest role that may send the request
}

// filterSampled returns the operations that have a sample. TestI06_OtherWorkspacesAreInvisible fails for the others.
func filterSampled(operations []operation) []operation {
	have := samples(missing)
	return slices.DeleteFunc(operations, func(o operation) bool { _, ok := have[o.id]; return !ok })
}

// samples returns one request for every operation of the API, by operation id. Add a sample for each new route, so that
// all sweeps cover it.
func samples(x fixture) map[string]sample {
	agent := "/api/agents/" + x.agent
	w := weatherTool(nil)
	w["id"] = x.tool
	call := object{"tool": "look", "args": object{}}
	all := map[string]sample{
		"listTools":      {"/api/tools", nil, false, reeve.Viewer},
		"createTool":     {"/api/tools", w, false, reeve.Member},
		"getTool":        {"/api/tools/" + x.tool, nil, true, reeve.Viewer},
		"exportTools":    {"/api/tools/export?format=openai", nil, false, reeve.Viewer},
		"updateTool":     {"/api/tools/" + x.tool, w, true, reeve.Member},
		"deleteTool":     {"/api/tools/" + x.tool, nil, true, reeve.Member},
		"listAgents":     {"/api/agents", nil, false, reeve.Viewer},
		"createAgent":    {"/api/agents", object{"name": "made-" + x.kind}, false, reeve.Member},
		"getAgent":       {agent, nil, true, reeve.Viewer},
		"updateAgent":    {agent, object{"kind": "reader"}, true, reeve.Member},
		"deleteAgent":    {agent, nil, true, reeve.Member},
		"listAgentTools": {agent + "/tools", nil, true, reeve.Viewer},
		"attachTool":     {agent + "/tools", object{"tool_id": "file_read"}, true, reeve.Member},
		"detachTool":     {agent + "/tools/look", nil, true, reeve.Member},
		"listMessages":   {agent + "/messages", nil, true, reeve.Viewer},
		"listSummaries":  {agent + "/summaries", nil, true, reeve.Viewer},
		"retrySummary":   {agent + "/summaries/run_none/retry", nil, true, reeve.Member},
		"putAgentWakePlan": {agent + "/wake-plan", object{"sleep_until": reeve.Now().Add(time.Hour)}, true,
			reeve.Member},
		"callTool":        {agent + "/calls", call, true, reeve.Member},
		"callTools":       {agent + "/calls/batch", object{"calls": []any{call}}, true, reeve.Member},
		"previewCall":     {agent + "/calls/explain", call, true, reeve.Viewer},
		"explainCall":     {"/api/calls/" + x.call + "/explanation", nil, true, reeve.Viewer},
		"getOutput":       {"/api/outputs/" + x.hash, nil, true, reeve.Viewer},
		"previewSchedule": {"/api/schedules/preview?cadence_type=interval&cadence_value=2h", nil, false, reeve.Viewer},
		"listOperations":  {"/api/operations", nil, false, reeve.Viewer},
		"getOperation":    {"/api/operations/" + x.operation, nil, true, reeve.Viewer},
		"resolveOperation": {"/api/operations/" + x.unknown + "/resolve", object{"resolution": "skip"}, true,
			reeve.Member},
		"undoOperation":      {"/api/operations/" + x.undoable + "/undo", nil, true, reeve.Member},
		"planUndo":           {"/api/operations/" + x.undoable + "/undo", nil, true, reeve.Member},
		"lookUpOperation":    {"/api/operations/" + x.unknown + "/lookup", nil, true, reeve.Member},
		"listJournalEffects": {"/api/journal/effects/" + x.operation, nil, true, reeve.Viewer},
		"getInbox":           {"/api/inbox", nil, false, reeve.Viewer},
		"countInbox":         {"/api/inbox/count", nil, false, reeve.Viewer},
		"listApprovals":      {"/api/approvals", nil, false, reeve.Viewer},
		"getApproval":        {"/api/approvals/" + x.approval, nil, true, reeve.Viewer},
		"getApprovalCard":    {"/api/approvals/" + x.approval + "/card", nil, true, reeve.Viewer},
		"revealApproval":     {"/api/approvals/" + x.approval + "/revealed", nil, true, reeve.Owner},
		"editApproval": {"/api/approvals/" + x.approval + "/edit", object{"args": object{"to": "alpha's new"}}, true,
			reeve.Member},
		"decideApprovals": {"/api/approvals/decisions", object{"decisions": []any{object{"id": "apr_none",
			"decision": "deny"}}}, false, reeve.Member},
		"decideApproval": {"/api/approvals/" + x.approval + "/decision", object{"decision": "approve"}, true,
			reeve.Member},
		"listProposals":   {"/api/proposals", nil, false, reeve.Viewer},
		"getProposal":     {"/api/proposals/" + x.proposal, nil, true, reeve.Viewer},
		"acceptProposal":  {"/api/proposals/" + x.proposal + "/accept", object{}, true, reeve.Member},
		"rejectProposal":  {"/api/proposals/" + x.rejected + "/reject", object{"comment": "no"}, true, reeve.Member},
		"reopenProposal":  {"/api/proposals/" + x.rejected + "/reopen", nil, true, reeve.Member},
		"listChangeSets":  {"/api/change-sets", nil, false, reeve.Viewer},
		"getChangeSet":    {"/api/change-sets/" + x.changeSet, nil, true, reeve.Viewer},
		"acceptChangeSet": {"/api/change-sets/" + x.changeSet + "/accept", object{}, true, reeve.Member},
		"rejectChangeSet": {"/api/change-sets/" + x.changeSet + "/reject", object{"comment": "no"}, true, reeve.Member},
		"stopAgents":      {"/api/stop", object{"agent": x.agent, "reason": "test"}, true, reeve.Member},
		"resumeAgents":    {"/api/resume", object{"agent": x.agent}, true, reeve.Member},
		"listProfiles":    {"/api/profiles", nil, false, reeve.Viewer},
		"putProfile":      {"/api/profiles/" + x.kind, object{"capabilities": []string{"files.read"}}, false, reeve.Owner},
		"listBudgets":     {"/api/budgets", nil, false, reeve.Viewer},
		"putBudget": {"/api/budgets/" + x.subject, object{"limit": object{"calls": 1}},
			strings.HasPrefix(x.subject, "agent:"), reeve.Owner},
		"deleteBudget":      {"/api/budgets/" + x.subject, nil, true, reeve.Owner},
		"listTokens":        {"/api/tokens", nil, false, reeve.Owner},
		"createToken":       {"/api/tokens", object{"name": "made", "role": "viewer"}, false, reeve.Owner},
		"updateToken":       {"/api/tokens/" + x.token, object{"role": "viewer"}, true, reeve.Owner},
		"revokeToken":       {"/api/tokens/" + x.token, nil, true, reeve.Owner},
		"listSecrets":       {"/api/secrets", nil, false, reeve.Owner},
		"putSecret":         {"/api/secrets/" + x.secret, object{"value": "beta value"}, false, reeve.Owner},
		"deleteSecret":      {"/api/secrets/" + x.secret, nil, true, reeve.Owner},
		"listWorkspaces":    {"/api/workspaces", nil, false, reeve.Viewer},
		"createWorkspace":   {"/api/workspaces", object{"id": "made-" + x.kind}, false, reeve.Owner},
		"streamChanges":     {"/api/events?follow=false", nil, false, reeve.Viewer},
		"createConsoleLink": {"/api/console/links", nil, false, reeve.Viewer},
		"getStatus":         {"/api/status", nil, false, reeve.Viewer},
		"getHold":           {"/api/hold", nil, false, reeve.Viewer},
		"getDoctorReport":   {"/api/doctor", nil, false, reeve.Viewer},
		"downloadBackup":    {"/api/backup", nil, false, reeve.Owner},
		"listChanges":       {"/api/changes", nil, false, reeve.Viewer},
		"getChange":         {"/api/changes/" + x.operation, nil, true, reeve.Viewer},
	}
	maps.Copy(all, x.journal.samples())
	maps.Copy(all, x.wakes.samples(x.agent))
	maps.Copy(all, x.conversation.samples(x.agent, x.operation))
	maps.Copy(all, x.automation.samples(x.kind))
	maps.Copy(all, x.mail.samples())
	maps.Copy(all, x.branch.samples(x.kind))
	return all
}

// createFixture creates one entry of each kind in the default workspace.
func createFixture(t *testing.T, h *reevetest.Host) fixture {
	t.Helper()
	x := fixture{tool: "alphas", secret: "ALPHA", kind: "alphakind"}
	x.agent = h.Agent("alpha", "send", "erase", "lose_outcome", "look", "long_output", "write_file").ID
	x.subject = "agent:" + x.agent
	defineTool(t, h, object{"id": x.tool, "description": "A tool that only alpha has, with a long description."})
	h.Want(200, nil, "PUT", "/api/profiles/"+x.kind, object{"capabilities": []string{"alpha.cap"}})
	h.Want(200, nil, "PUT", "/api/budgets/"+x.subject, object{"limit": object{"calls": 1000}})
	h.Want(204, nil, "PUT", "/api/secrets/"+x.secret, object{"value": "alpha's own value"})
	x.token = decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens",
		object{"name": "alpha-token", "role": "viewer"})).ID

	done := h.Call(x.agent, "send", object{"to": "alpha"}, "Idempotency-Key", "k")
	x.operation, x.undoable, x.call = done.OperationID, done.OperationID, done.CallID
	x.approval = h.Call(x.agent, "erase", object{}).ApprovalID
	x.unknown = h.Call(x.agent, "lose_outcome", object{}).OperationID
	h.Want(200, nil, "PATCH", "/api/agents/"+x.agent,
		object{"policy": object{"tools": object{"write_file": "propose"}}})
	propose := func(session string) reeve.Proposal { // each session has its own change set
		write := object{"tool": "write_file", "session": session, "args": object{"path": "/" + session,
			"content": "alpha's"}}
		id := decode[reeve.Result](t, h.Want(202, nil, "POST", "/api/agents/"+x.agent+"/calls", write)).ProposalID
		return decode[reeve.Proposal](t, h.Want(200, nil, "GET", "/api/proposals/"+id, nil))
	}
	x.proposal, x.rejected, x.changeSet = propose("a").ID, propose("b").ID, propose("c").SetID
	x.hash = h.Call(x.agent, "long_output", object{}).Hash
	x.journal = createJournalFixture(h)
	x.wakes = createWakeFixture(t, h, x.agent)
	x.conversation = createConversationFixture(t, h, x.agent)
	x.automation = createAutomationFixture(t, h)
	x.mail = createMailFixture(t, h)
	x.branch = createBranchFixture(t, h)
	for what, id := range map[string]string{"operation": x.operation, "approval": x.approval, "unknown": x.unknown,
		"hash": x.hash, "proposal": x.proposal} {
		if id == "" {
			t.Fatalf("no %s was created", what)
		}
	}
	return x
}

// mask replaces the ids of the fixture in a text.
func (x fixture) mask(s string) string {
	for _, id := range []string{x.proposal, x.rejected, x.changeSet, x.subject, x.agent, x.tool, x.operation, x.unknown,
		x.approval, x.call, x.hash, x.token, x.secret, x.kind} {
		s = strings.ReplaceAll(s, id, "#")
	}
	return x.branch.mask(x.mail.mask(x.automation.mask(x.conversation.mask(x.wakes.mask(x.journal.mask(s))))))
}

// send sends the request.
func (s sample) send(h *reevetest.Host, method string, headers ...string) reevetest.Reply {
	return h.Do(method, s.path, s.body, headers...)
}

func TestI06_OtherWorkspacesAreInvisible(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		x := createFixture(t, h)
		alpha, beta := withToken(createToken(t, h, reeve.Owner, "default")), createToken(t, h, reeve.Owner, "beta")
		in := withToken(beta, "beta")
		theirs, none := samples(x), samples(missing)
		before := takeSnapshot(t, h, alpha...)
		for _, o := range loadOpenAPI(t, h).operations() {
			if _, ok := theirs[o.id]; !ok && o.path != "/api/session" { // which belongs to no workspace
				t.Errorf("no sample for %s %s (%s): add one to samples", o.method, o.path, o.id)
			}
		}
		operations := filterSampled(loadOpenAPI(t, h).operations())
		// A request for an entry of another workspace fails exactly as for one that does not exist.
		for _, o := range operations {
			s := theirs[o.id]
			// The token is not valid in the other workspace.
			wantProblem(t, s.send(h, o.method, withToken(beta)...), 403, reeve.Forbidden)
			wantProblem(t, s.send(h, o.method, withToken(beta, "nowhere")...), 403, reeve.Forbidden)
			if !s.namesEntry {
				continue
			}
			p := wantProblem(t, s.send(h, o.method, in...), 404, reeve.NotFound)
			q := wantProblem(t, none[o.id].send(h, o.method, in...), 404, reeve.NotFound)
			if x.mask(p.Detail) != missing.mask(q.Detail) || p.Hint != q.Hint {
				t.Errorf("%s: detail %q differs from %q", o.id, p.Detail, q.Detail)
			}
		}
		for _, o := range operations { // the other requests work in their own workspace
			s := theirs[o.id]
			if s.namesEntry {
				continue
			}
			r := s.send(h, o.method, in...)
			if o.id == "downloadBackup" || o.id == "createWorkspace" || o.id == "createProject" {
				wantProblem(t, r, 403, reeve.Forbidden) // needs a server token
				continue
			}
			if r.Status >= 300 {
				t.Errorf("%s in its own workspace: %d %s", o.id, r.Status, r.Body)
			}
			for _, word := range []string{x.agent, x.operation, x.unknown, x.approval, x.call, x.hash, x.token,
				x.proposal, x.rejected, x.changeSet, "alpha's", "alpha-token", "alpha.cap", "only alpha",
				`"id":"default"`, `_id":"default"`, `["default"`, `"default"]`} {
				if strings.Contains(string(r.Body), word) {
					t.Errorf("%s shows %q: %s", o.id, word, r.Body)
				}
			}
		}
		wantUnchanged(t, before, takeSnapshot(t, h, alpha...))

		// The same key, run and session in two workspaces are independent.
		h.Want(201, nil, "POST", "/api/agents", object{"name": "alpha"}, in...)
		for _, id := range []string{"send", "erase", "look"} {
			h.Want(201, nil, "POST", "/api/agents/alpha/tools", object{"tool_id": id}, in...)
		}
		mine := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/alpha/calls",
			object{"tool": "send", "args": object{"to": "alpha"}}, append(in, "Idempotency-Key", "k")...))
		if mine.Replayed || mine.OperationID == x.operation {
			t.Errorf("key of another workspace was used: %+v", mine)
		}
		h.Want(202, nil, "POST", "/api/agents/alpha/calls", object{"tool": "erase", "run": "nightly"})
		h.Want(200, nil, "POST", "/api/agents/alpha/calls", object{"tool": "send", "args": object{}, "run": "nightly"},
			in...)
	})
}

func TestI06_Roles(t *testing.T) {
	t.Parallel()
	h := startServer(t, testTools()...)
	operations := filterSampled(loadOpenAPI(t, h).operations())
	all := samples(missing)
	allowed := 0
	for _, role := range reeve.Roles() {
		mine := createToken(t, h, role)
		for _, o := range operations {
			s := all[o.id]
			if role == reeve.Viewer && s.role == reeve.Viewer && o.method != "GET" && o.id != "previewCall" &&
				o.id != "createConsoleLink" {
				t.Errorf("%s %s: a viewer may change something", o.method, o.path)
			}
			r := s.send(h, o.method, withToken(mine)...)
			if !role.Allows(s.role) {
				if p := wantProblem(t, r, 403, reeve.Forbidden); !strings.Contains(p.Hint, string(s.role)) {
					t.Errorf("%s as %s: hint %q", o.id, role, p.Hint)
				}
				if s.body != nil { // the role is checked before the body
					s.body = object{"no such field": []int{}}
					wantProblem(t, s.send(h, o.method, withToken(mine)...), 403, reeve.Forbidden)
				}
				continue
			}
			// These operations need a server token.
			if slices.Contains([]string{"downloadBackup", "createWorkspace", "createProject"}, o.id) {
				if p := wantProblem(t, r, 403, reeve.Forbidden); !strings.Contains(p.Hint, "owner.token") {
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
		t.Errorf("only %d requests were allowed", allowed)
	}
}

func TestI06_InvalidTokens(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	good := createToken(t, h, reeve.Member)
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", object{"name": "soon gone", "role": "member"})
	h.Want(200, nil, "GET", "/api/agents", nil, withToken(made.Token)...)
	h.Want(204, nil, "DELETE", "/api/tokens/"+made.ID, nil)
	wantProblem(t, h.Do("DELETE", "/api/tokens/"+made.ID, nil), 404, reeve.NotFound)
	var brief api.NewToken
	h.Want(201, &brief, "POST", "/api/tokens", object{"name": "brief", "role": "member",
		"expires_at": reeve.Now().Add(200 * time.Millisecond)})
	zoned := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "zoned", "role": "member",
		"expires_at": "9998-12-31T23:59:59-23:59"}))
	if got := zoned.ExpiresAt.Format(time.RFC3339); got != "9999-01-01T23:58:59Z" {
		t.Errorf("token expires at %s", got)
	}
	h.Want(200, nil, "GET", "/api/agents", nil, withToken(zoned.Token)...)
	for h.Do("GET", "/api/agents", nil, withToken(brief.Token)...).Status == 200 { // until the token has expired
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
			if p := wantProblem(t, r, 401, reeve.Unauthenticated); strings.Contains(string(r.Body), text) &&
				len(text) > 10 {
				t.Errorf("%s: response contains the token: %+v", name, p)
			}
		}
	}
	for _, header := range []string{"", "Basic " + good, good, "bearer", "Bearer", "Bearer "} {
		wantProblem(t, h.Do("GET", "/api/agents", nil, "Authorization", header), 401, reeve.Unauthenticated)
	}
	h.Want(200, nil, "GET", "/api/agents", nil, withToken(good)...)
	if b, _ := json.Marshal(decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil))); strings.Contains(
		string(b), good) || strings.Contains(string(b), "hash") {
		t.Errorf("list of tokens shows a token or hash: %s", b)
	}
	wantFieldError(t, h.Do("POST", "/api/tokens", object{"name": "late", "role": "member",
		"expires_at": "2001-01-01T00:00:00Z"}), "/expires_at")
	before := len(decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens)
	// These times cannot be formatted or are invalid.
	for _, at := range []string{"2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00-24:00", "2030-01-01T00:00:00+12:60",
		"9999-12-31T23:59:59-23:00", "9999-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
		"2030-01-01", ""} {
		wantFieldError(t, h.Do("POST", "/api/tokens", object{"name": "odd", "role": "member", "expires_at": at}),
			"/expires_at")
	}
	if list := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens; len(list) != before {
		t.Errorf("want %d tokens, got %+v", before, list)
	}
	wantProblem(t, h.Do("POST", "/api/tokens", object{"name": "far", "role": "member",
		"workspaces": []string{"elsewhere"}}), 403, reeve.Forbidden)
}

// The owner of one workspace cannot revoke a token of two workspaces, and does not see the other workspace.
func TestI06_TokensOfSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	beta := createToken(t, h, reeve.Owner, "beta")
	both := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "both", "role": "member",
		"workspaces": []string{"default", "beta"}}))
	visible := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil, withToken(beta, "beta")...))
	for _, v := range visible.Tokens {
		if fmt.Sprint(v.Workspaces) != "[beta]" {
			t.Errorf("token %s lists workspaces %v", v.Name, v.Workspaces)
		}
	}
	wantProblem(t, h.Do("DELETE", "/api/tokens/"+both.ID, nil, withToken(beta, "beta")...), 403, reeve.Forbidden)
	h.Want(200, nil, "GET", "/api/agents", nil, withToken(both.Token, "beta")...)
	h.Want(200, nil, "GET", "/api/agents", nil, withToken(both.Token, "default")...)
	h.Want(204, nil, "DELETE", "/api/tokens/"+both.ID, nil)
	wantProblem(t, h.Do("GET", "/api/agents", nil, withToken(both.Token, "beta")...), 401, reeve.Unauthenticated)
}
