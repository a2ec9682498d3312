package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// privateTools are the test tools as tools that work on private data.
func privateTools() []reeve.Tool {
	tools := testTools()
	for i := range tools {
		tools[i].Private = true
	}
	return tools
}

// createPrivateFixture makes calls of private tools for a user in a shared session. It sets only the ids of the fixture
// that belong to these calls, and the agent's.
func createPrivateFixture(t *testing.T, h *reevetest.Host, headers []string) fixture {
	t.Helper()
	x := missing
	x.agent = h.Agent("aide", "send", "erase", "lose_outcome", "fail", "long_output").ID
	call := func(tool string) reeve.Result {
		t.Helper()
		return decode[reeve.Result](t, h.Do("POST", "/api/agents/"+x.agent+"/calls", object{"tool": tool,
			"args": object{"to": "ann's note"}, "session": reeve.SharedSessionPrefix + "room", "reason": "ann's reason"},
			headers...))
	}
	done := call("send")
	x.operation, x.undoable, x.call = done.OperationID, done.OperationID, done.CallID
	x.approval, x.unknown, x.hash = call("erase").ApprovalID, call("lose_outcome").OperationID, call("long_output").Hash
	h.Want(200, nil, "PATCH", "/api/agents/"+x.agent, object{"policy": object{"tools": object{"fail": "propose",
		"send": "propose"}}})
	x.proposal, x.rejected = call("fail").ProposalID, call("send").ProposalID
	x.changeSet = decode[reeve.Proposal](t, h.Want(200, nil, "POST", "/api/proposals/"+x.rejected+"/reject",
		object{"comment": "no"}, headers...)).SetID
	for what, id := range map[string]string{"operation": x.operation, "approval": x.approval, "unknown": x.unknown,
		"hash": x.hash, "proposal": x.proposal, "rejected": x.rejected, "change set": x.changeSet} {
		if id == "" || strings.HasSuffix(id, "none") {
			t.Fatalf("no %s was created", what)
		}
	}
	return x
}

// privateIDs returns the ids that a fixture of createPrivateFixture has of private entries.
func (x fixture) privateIDs() []string {
	return []string{x.operation, x.unknown, x.approval, x.call, x.hash, x.proposal, x.rejected, x.changeSet}
}

// Private calls do not exist for other members, on any route: requests that name one fail exactly as for one that does
// not exist, and no answer shows one. Add a sample for each new route; see samples.
func TestN11_PrivateCallsAreHiddenFromOthers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, privateTools()...)
		ann := createUserToken(t, h, "ann", reeve.Member)
		x := createPrivateFixture(t, h, ann)
		none := missing
		none.agent = x.agent
		theirs, others := samples(x), samples(none)
		operations := filterSampled(loadOpenAPI(t, h).operations())
		names := func(o operation) bool {
			return slices.ContainsFunc(x.privateIDs(), func(id string) bool {
				return strings.Contains(theirs[o.id].path, id)
			})
		}
		tokens := map[reeve.Role][]string{}
		for _, role := range []reeve.Role{reeve.Member, reeve.Viewer} {
			tokens[role] = createUserToken(t, h, "ben", role)
		}
		room := "/api/agents/aide/messages?session=" + reeve.SharedSessionPrefix + "room"
		before := takeSnapshot(t, h)
		for role, ben := range tokens {
			checked := 0
			for _, o := range operations {
				s := theirs[o.id]
				if !names(o) || !role.Allows(s.role) {
					continue
				}
				checked++
				p := wantProblem(t, s.send(h, o.method, ben...), 404, reeve.NotFound)
				q := wantProblem(t, others[o.id].send(h, o.method, ben...), 404, reeve.NotFound)
				if x.mask(p.Detail) != none.mask(q.Detail) || p.Hint != q.Hint {
					t.Errorf("%s: detail %q differs from %q", o.id, p.Detail, q.Detail)
				}
			}
			if want := map[reeve.Role]int{reeve.Member: 21, reeve.Viewer: 9}[role]; checked < want {
				t.Errorf("only %d routes were checked as %s, want %d", checked, role, want)
			}
			paths := []string{room, "/api/operations?agent=aide&limit=1", "/api/proposals?state=rejected", "/api/change-sets?pending=true"}
			for _, o := range operations {
				if s := theirs[o.id]; o.method == "GET" && !names(o) && role.Allows(s.role) && o.id != "streamChanges" {
					paths = append(paths, s.path)
				}
			}
			for _, path := range paths {
				r := h.Do("GET", path, nil, ben...)
				for _, word := range append(x.privateIDs(), "ann's") {
					if strings.Contains(string(r.Body), word) {
						t.Errorf("%s %s shows %q: %s", role, path, word, r.Body)
					}
				}
			}
			if in := decode[api.InboxCount](t, h.Want(200, nil, "GET", "/api/inbox/count", nil, ben...)); in.Total != 0 {
				t.Errorf("%s: inbox counts %+v", role, in)
			}
		}
		r := decode[api.BatchDecisionList](t, h.Want(200, nil, "POST", "/api/approvals/decisions",
			object{"decisions": []any{object{"id": x.approval, "decision": "deny"}}}, tokens[reeve.Member]...))
		if f := r.Results[0].Failure; f == nil || f.Code != reeve.NotFound {
			t.Errorf("decision of another member: %+v", r.Results[0])
		}
		wantUnchanged(t, before, takeSnapshot(t, h))
		for headers, isError := range map[*[]string]bool{new(tokens[reeve.Member]): true, &ann: false} {
			read := h.Call(x.agent, "output_read", object{"hash": x.hash}, *headers...)
			if read.IsError != isError {
				t.Errorf("output_read: %+v", read)
			}
		}
		for _, headers := range [][]string{ann, nil} { // ann and owners see and decide
			for _, o := range operations {
				if s := theirs[o.id]; names(o) && o.method == "GET" && s.role != reeve.Owner {
					if r := s.send(h, o.method, headers...); r.Status != 200 && o.id != "getChange" {
						t.Errorf("%s: %d %s", o.id, r.Status, r.Body)
					}
				}
			}
			if r := h.Want(200, nil, "GET", room, nil, headers...); !strings.Contains(string(r.Body), "ann's note") {
				t.Errorf("thread: %s", r.Body)
			}
			if r := h.Want(200, nil, "GET", "/api/inbox", nil, headers...); !strings.Contains(string(r.Body), x.approval) ||
				!strings.Contains(string(r.Body), x.proposal) || !strings.Contains(string(r.Body), x.unknown) {
				t.Errorf("inbox: %s", r.Body)
			}
		}
		h.Want(200, nil, "POST", "/api/approvals/"+x.approval+"/decision", object{"decision": "deny"}, ann...)
		h.Want(200, nil, "POST", "/api/change-sets/"+x.changeSet+"/accept", object{}, ann...)
	})
}

// A change set of a shared session can have private items of several users. Each sees, counts and decides only their
// own.
func TestN11_AChangeSetShowsEachUserTheirItems(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, privateTools()...)
		h.Agent("aide", "send")
		h.Want(200, nil, "PATCH", "/api/agents/aide", object{"policy": object{"tools": object{"send": "propose"}}})
		ann, ben := createUserToken(t, h, "ann", reeve.Member), createUserToken(t, h, "ben", reeve.Member)
		propose := func(to string, headers []string) reeve.Proposal {
			res := decode[reeve.Result](t, h.Do("POST", "/api/agents/aide/calls", object{"tool": "send",
				"args": object{"to": to}, "session": reeve.SharedSessionPrefix + "room"}, headers...))
			return decode[reeve.Proposal](t, h.Want(200, nil, "GET", "/api/proposals/"+res.ProposalID, nil, headers...))
		}
		a, b := propose("ann's friend", ann), propose("ben's friend", ben)
		if a.SetID != b.SetID {
			t.Fatalf("sets %s and %s", a.SetID, b.SetID)
		}
		set := "/api/change-sets/" + a.SetID
		check := func(headers []string, want ...string) {
			t.Helper()
			s := decode[reeve.ChangeSet](t, h.Want(200, nil, "GET", set, nil, headers...))
			var got []string
			for _, item := range s.Items {
				got = append(got, item.ID)
			}
			list := decode[api.ChangeSetList](t, h.Want(200, nil, "GET", "/api/change-sets", nil, headers...))
			if !slices.Equal(got, want) || list.ChangeSets[0].Counts[reeve.ProposalPending] != len(want) {
				t.Errorf("items %v, want %v; %+v", got, want, list)
			}
		}
		check(ann, a.ID)
		check(ben, b.ID)
		check(nil, a.ID, b.ID)
		d := decode[reeve.SetDecision](t, h.Want(200, nil, "POST", set+"/reject", object{}, ben...))
		if len(d.Items) != 1 || d.Items[0].ID != b.ID {
			t.Errorf("%+v", d)
		}
		check(ann, a.ID)
	})
}
