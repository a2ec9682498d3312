package wake_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// eachEnd runs a test for each way in which an agent ends, on each engine.
func eachEnd(t *testing.T, f func(t *testing.T, engine, how string, end func(h *reevetest.Host, a reeve.Agent))) {
	for _, engine := range []string{"sqlite", "postgres"} {
		for how, end := range kit.RemoveAgentBy {
			t.Run(engine+", "+how, func(t *testing.T) { f(t, engine, how, end) })
		}
	}
}

// A proposal on behalf of a removed agent is closed, and the call can be proposed again.
func TestO20_ProposalForARemovedDelegatorEnds(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, how string, end func(*reevetest.Host, reeve.Agent)) {
		var ran kit.Counter
		h, boss := kit.RunBossAndHelper(t, engine, "propose", kit.Tool("act", reeve.Keyed, ran.Handle))
		stays := h.Call("helper", "act", kit.Object{"for": "nobody"}).ProposalID
		kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
		list := kit.ListProposals(h, "state=pending")
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		id := list[0].ID
		end(h, boss)
		if p := kit.GetProposal(h, id); p.State != reeve.ProposalStale ||
			p.Comment != "boss, on whose behalf this runs, was "+
				how || len(kit.GetInbox(h).Proposals) != 1 {
			t.Errorf("%+v", p)
		}
		for _, word := range []string{"accept", "reject"} {
			if _, problem, status := kit.DecideProposal(h, id, word, ""); status != http.StatusConflict ||
				problem.Code != reeve.Stale {
				t.Errorf("%s: %d %+v", word, status, problem)
			}
		}
		again := h.Call("helper", "act", kit.Object{}).ProposalID // which is on nobody's behalf
		for _, p := range []string{stays, again} {
			kit.DecideProposal(h, p, "accept", "")
			kit.Eventually(t, "it to be applied", func() bool {
				return kit.GetProposal(h, p).
					State == reeve.ProposalApplied
			})
		}
		if ran.Count() != 2 {
			t.Errorf("%d ran", ran.Count())
		}
	})
}

// A call that was approved and then held by the kill switch is refused when it continues, because its delegator is
// gone.
func TestO20_ApprovedCallForARemovedDelegatorIsRefused(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		for _, policy := range []string{"ask", "propose"} {
			var ran kit.Counter
			h, boss := kit.RunBossAndHelper(t, engine, policy, kit.Tool("act", reeve.Keyed, ran.Handle))
			turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
			op := ""
			if policy == "ask" {
				a := waiting(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "helper"})
				kit.Decide(h, a.ID, "approve")
				op = a.OperationID
			} else {
				kit.WaitForTurn(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "helper"})
				p, _, _ := kit.DecideProposal(h, kit.ListProposals(h, "state=pending")[0].ID, "accept", "")
				op = p.OperationID
			}
			end(h, boss)
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "helper"})
			refused(h, op)
			if ran.Count() != 0 {
				t.Errorf("%s: it was done", policy)
			}
		}
	})
}

// A person has a call of unknown outcome run again. It is refused, because its delegator is gone.
func TestO20_RepeatForARemovedDelegatorIsRefused(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		h, boss := kit.RunBossAndHelper(t, engine, "allow",
			kit.Tool("act", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
			}))
		turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
		kit.WaitForTurnWhere(h, turn.ID, func(api.TurnDetail) bool { return len(kit.GetInbox(h).Unknown) == 1 })
		op := kit.GetInbox(h).Unknown[0].ID
		end(h, boss)
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op+"/resolve", kit.Object{"resolution": "retry"})
		refused(h, op)
	})
}

// A run whose row no longer names the run that began it makes no call, because its rights are unknown. Approved calls
// wait until the row is corrected.
func TestO20_RunWithoutItsDelegatorMakesNoCall(t *testing.T) {
	t.Parallel()
	for _, ancestors := range []string{"", "null", "[]",
		`[{"run_id":"run_other","agent_id":"agt_other","tools":null}]`} {
		t.Run("ancestors "+ancestors, func(t *testing.T) {
			var ran kit.Counter
			act := kit.Tool("act", reeve.Keyed, ran.Handle)
			cfg := kit.DelegationConfig(t, "sqlite")
			cfg.Dir = t.TempDir()
			h := reevetest.Run(t, cfg, act)
			boss := kit.NewPersona(h, "boss", nil, "delegate", "act")
			kit.NewPersona(h, "helper", kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "ask"}}}, "act")
			a := waiting(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
			kit.UpdateAgent(h, boss, kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "deny"}}})
			h.Stop()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), `UPDATE runs SET ancestors = $1 WHERE parent_id <> ''`,
				ancestors); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			h = reevetest.Run(t, cfg, act)
			kit.Decide(h, a.ID, "approve")
			h.Settle(t.Context())
			if op := kit.GetOperation(h, a.OperationID); op.State != reeve.Prepared || ran.Count() != 0 {
				t.Errorf("%d ran, %+v", ran.Count(), op)
			}
			if rows := kit.GetHealth(h, "rows"); rows.OK ||
				!strings.Contains(rows.Detail, "in table runs cannot be read: ancestors") {
				t.Errorf("the doctor says %+v", rows)
			}
		})
	}
}

// refused waits until an operation is denied because of whom it was for.
func refused(h *reevetest.Host, id string) {
	h.T.Helper()
	var op reeve.Operation
	kit.Eventually(h.T, "the operation to be refused",
		func() bool { op = kit.GetOperation(h, id); return op.State != reeve.Prepared })
	if op.State != reeve.DeniedOp || op.Code != reeve.Denied || op.ResultID == "" ||
		!strings.Contains(op.Message, "behalf") && !strings.Contains(op.Message, "run has ended") {
		h.T.Errorf("%+v", op)
	}
}

// An agent does not have the network access of its own tool settings on behalf of an agent that lacks it.
func TestO20_NoNetworkItsParentLacks(t *testing.T) {
	t.Parallel()
	const look = `{name: shell_exec, args: {command: "readlink /proc/self/ns/net"}}`
	h, _ := kit.RunWithRecordingModel(t, `- {when: {tool: delegate}, text: "asked"}
- {when: {tool: shell_exec}, text: "looked"}
- {when: {system: I am poor}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am granted}, calls: [{name: delegate, args: {agent: rich, input: "look"}}]}
- {when: {system: I am rich}, calls: [`+look+`]}
`)
	free := kit.Object{"kind": "engineer", "policy": kit.Object{"tools": kit.Object{"shell_exec": "allow"}}}
	kit.NewPersona(h, "rich", free, "shell_exec", kit.Object{"network": true})
	kit.NewPersona(h, "poor", free, "delegate", "shell_exec")
	kit.NewPersona(h, "granted", free, "delegate", "shell_exec", kit.Object{"network": true})
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	network := func(agent string) string {
		t.Helper()
		turn := kit.StartTurn(h, h.Talk(agent).ID, "go")
		kit.WaitForTurn(h, turn.ID)
		child := kit.ListChildren(h, turn.ID)
		if len(child) != 1 {
			t.Fatalf("%s led to %+v", agent, child)
		}
		_, said := kit.ListResults(h, child[0].ID, "shell_exec")
		if len(said) != 1 {
			t.Fatalf("%s: %q", agent, said)
		}
		return said[0]
	}
	if got := network("poor"); strings.Contains(got, here) || !strings.Contains(got, "net:[") {
		t.Errorf("on behalf of one without network it was in %s; the machine's is %s", got, here)
	}
	if got := network("granted"); !strings.Contains(got, here) {
		t.Errorf("on behalf of one with network it was in %s; the machine's is %s", got, here)
	}
}

// bossAndHelper is a boss that has a helper do what the helper's policy asks a person about, or proposes.
func bossAndHelper(t *testing.T, policy string) (h *reevetest.Host, boss reeve.Agent, ran *kit.Counter) {
	ran = &kit.Counter{}
	h, boss = kit.RunBossAndHelper(t, "sqlite", policy, kit.Tool("act", reeve.Keyed, ran.Handle))
	return h, boss, ran
}

// A person decides late. A call on behalf of an agent that has lost the right, or is stopped, by then is not made.
func TestO20_DelegatorIsCheckedAtTheDecision(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]kit.Object{
		"dormant": {"lifecycle": "dormant"}, "denied": {"policy": kit.Object{"tools": kit.Object{"act": "deny"}}},
		"its tier denied": {"policy": kit.Object{"tiers": kit.Object{"side_effecting": "deny", "privileged": "deny"}}},
	} {
		t.Run("proposed, "+name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "propose")
			kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
			var box api.Inbox
			if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Proposals) != 1 {
				t.Fatalf("%+v", box)
			}
			kit.UpdateAgent(h, boss, change)
			h.Want(http.StatusOK, nil, "POST", "/api/proposals/"+box.Proposals[0].ID+"/accept", kit.Object{})
			kit.Eventually(t, "the proposal to end", func() bool {
				return kit.GetProposal(h, box.Proposals[0].ID).
					State == reeve.ProposalDenied
			})
			if ran.Count() != 0 {
				t.Errorf("it was done")
			}
		})
	}
	t.Run("asked, dormant", func(t *testing.T) {
		h, boss, ran := bossAndHelper(t, "ask")
		turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
		asked := waiting(h, turn.ID)
		kit.UpdateAgent(h, boss, kit.Object{"lifecycle": "dormant"})
		kit.Decide(h, asked.ID, "approve")
		kit.Eventually(t, "the call to be refused", func() bool {
			return kit.GetOperation(h, asked.OperationID).
				State == reeve.DeniedOp
		})
		if ran.Count() != 0 {
			t.Errorf("it was done")
		}
	})
}

// waiting waits until a call that a turn led to is parked, and gives its approval.
func waiting(h *reevetest.Host, turn string) (a reeve.Approval) {
	h.T.Helper()
	kit.WaitForTurnWhere(h, turn, func(api.TurnDetail) bool {
		list := kit.GetInbox(h).Approvals
		if len(list) == 1 {
			a = list[0]
		}
		return len(list) == 1
	})
	return a
}

// When an agent is removed, the runs that it had called end, and their approvals lapse.
func TestO20_ApprovalsOfAnEndedChildLapse(t *testing.T) {
	t.Parallel()
	for name, end := range kit.RemoveAgentBy {
		t.Run(name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "ask")
			asked := waiting(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
			stays := h.Call("helper", "act", kit.Object{}) // which nobody called it for
			end(h, boss)
			var was reeve.Approval
			h.Want(http.StatusOK, &was, "GET", "/api/approvals/"+asked.ID, nil)
			if list := kit.GetInbox(h).Approvals; len(list) != 1 || list[0].ID != stays.ApprovalID ||
				was.State != reeve.Lapsed || was.Comment == "" || kit.GetOperation(h, asked.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("the inbox has %+v; it was %+v", list, was)
			}
			kit.Decide(h, stays.ApprovalID, "approve")
			kit.Eventually(t, "the other to be done", func() bool { return ran.Count() == 1 })
		})
	}
}

// A child has only the tools, scope, settings and policy that both agents have. The gate enforces it whatever the
// child's settings are, and the model is not offered other tools.
func TestO20_NoToolItsParentLacks(t *testing.T) {
	t.Parallel()
	var both, own kit.Counter
	shared, mine := kit.Tool("shared", reeve.Keyed, both.Handle), kit.Tool("mine", reeve.Keyed, own.Handle)
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, offers: mine}, text: "I was offered what my caller lacks."}
- {when: {system: I am helper, tool: mine}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: shared, args: {}}, {name: mine, args: {}}]}
`, shared, mine)
	kit.NewPersona(h, "boss", nil, "delegate", "shared")
	kit.NewPersona(h, "helper", nil, "shared", "mine")
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
	child := kit.ListChildren(h, turn.ID)[0]
	if child.Output != "Done." {
		t.Errorf("%+v", child)
	}
	if infos, _ := kit.ListResults(h, child.ID, "mine"); len(infos) != 1 || infos[0].Code != reeve.NotFound ||
		infos[0].Step.Name != "attachment" {
		t.Errorf("the tool that the parent lacks: %+v", infos)
	}
	if both.Count() != 1 || own.Count() != 0 {
		t.Errorf("shared ran %d times, mine %d times", both.Count(), own.Count())
	}
	// By itself, the helper has both.
	h.Call("helper", "mine", kit.Object{})
	if own.Count() != 1 {
		t.Error("the helper lost its own tool")
	}
}

// What the parent must ask for, may not touch or cannot do by its settings, the child must ask for, may not touch and
// cannot do either.
func TestO20_ScopePolicyAndSettingsOfTheParent(t *testing.T) {
	t.Parallel()
	var asked, touched, checked kit.Counter
	ask, touch, narrow := kit.Tool("ask", reeve.Keyed, asked.Handle), kit.Tool("touch", reeve.Keyed, touched.Handle),
		kit.Tool("narrow", reeve.Keyed, checked.Handle)
	var other atomic.Value // a category
	touch.Categories = func(context.Context, *reeve.Invocation) ([]string, error) {
		return []string{other.Load().(string)}, nil
	}
	narrow.ConfigSchema = json.RawMessage(kit.AnyObject)
	narrow.Check = func(_ context.Context, inv *reeve.Invocation) error {
		if !strings.Contains(string(inv.Config), "wide") {
			return reeve.Errorf(reeve.Denied, "only where the settings say wide")
		}
		return nil
	}
	capable := kit.Tool("capable", reeve.Keyed, checked.Handle)
	capable.Capability = "shell"
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: ask}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: touch, args: {}}, {name: narrow, args: {}}, {name: capable, args: {}}, {name: ask, args: {}}]}
`, ask, touch, narrow, capable)
	kit.NewCategory(h, "a")
	other.Store(kit.NewCategory(h, "b"))
	kit.NewPersona(h, "boss", kit.Object{"categories": []string{"a"},
		"policy": kit.Object{"tools": kit.Object{"ask": "ask"}}},
		"delegate",
		"ask", "touch", "narrow", "capable")
	kit.NewPersona(h, "helper", kit.Object{"kind": "engineer", "categories": []string{"a", "b"}}, "ask", "touch",
		"narrow",
		kit.Object{"mode": "wide"}, "capable")
	for _, id := range []string{"touch", "narrow", "capable"} { // by itself it can
		h.Call("helper", id, kit.Object{})
	}
	c := h.Talk("boss")
	turn := kit.StartTurn(h, c.ID, "go")
	var child reeve.Run
	kit.WaitForTurnWhere(h, turn.ID, func(api.TurnDetail) bool {
		list := kit.ListChildren(h, turn.ID)
		if len(list) == 1 {
			child = list[0]
		}
		return child.State == reeve.RunParked
	})
	for id, step := range map[string]string{"touch": "scope", "narrow": "security", "capable": "capability"} {
		if infos, _ := kit.ListResults(h, child.ID, id); len(infos) != 1 || infos[0].Status != "error" ||
			infos[0].Step.Name != step {
			t.Errorf("%s: %+v", id, infos)
		}
	}
	if asked.Count() != 0 || touched.Count() != 1 || checked.Count() != 2 {
		t.Errorf("asked %d, touched %d, checked %d", asked.Count(), touched.Count(), checked.Count())
	}
	var inbox struct {
		Approvals []reeve.Approval `json:"approvals"`
	}
	h.Want(http.StatusOK, &inbox, "GET", "/api/approvals", nil)
	if len(inbox.Approvals) != 1 || !strings.Contains(inbox.Approvals[0].Why, "on behalf of boss") {
		t.Fatalf("%+v", inbox)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox.Approvals[0].ID+"/decision",
		kit.Object{"decision": "approve"})
	forwarded := h.Connect(c.ID, 0) // whoever began it all is told that somebody waits
	if f := forwarded.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameApproval }); f.TurnID != turn.ID ||
		f.AgentID != child.AgentID || f.ApprovalID != inbox.Approvals[0].ID {
		t.Errorf("%+v", f)
	}
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "Back." || asked.Count() != 1 {
		t.Errorf("%+v, asked %d", d.Turn, asked.Count())
	}
}

// The operator limits how deep agents call agents.
func TestO20_DepthIsLimited(t *testing.T) {
	t.Parallel()
	script := `- {when: {tool: delegate}, text: "Back: {{results}}"}
`
	for i := range 4 {
		script += fmt.Sprintf("- {when: {system: I am a%d}, calls: [{name: delegate, args: {agent: a%d, input: on}}]}\n", i, i+1)
	}
	cfg := host.Config{Dir: t.TempDir(), DelegationDepth: 2}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, script)
	h := reevetest.Run(t, cfg)
	for i := range 5 {
		kit.NewPersona(h, fmt.Sprint("a", i), nil, "delegate")
	}
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("a0").ID, "go").ID)
	depth := 0
	for id := turn.ID; ; depth++ {
		list := kit.ListChildren(h, id)
		if len(list) == 0 {
			if infos, said := kit.ListResults(h, id, "delegate"); len(infos) != 1 || infos[0].Code != reeve.Denied ||
				!strings.Contains(said[0], "2 deep") {
				t.Errorf("%+v %q", infos, said)
			}
			break
		}
		id = list[0].ID
	}
	if depth != 2 || turn.State != reeve.RunCompleted {
		t.Errorf("%d deep, %s", depth, turn.State)
	}
}

// A turn is cancelled while its child and the child's child answer. All end within a second, and the history of the
// parent has its result.
func TestO20_ChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: go}}, {name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 500)+`", pace: 50ms}
`)
	kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "middle", nil, "delegate")
	kit.NewPersona(h, "slow", nil)
	turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
	var tree []reeve.Run
	// both slow ones have begun: calls that follow each other go on together
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		if tree = kit.ListChildren(h, turn.ID); len(tree) == 2 && d.State == reeve.RunParked {
			tree = append(tree, kit.ListChildren(h, tree[0].ID)...)
		}
		return len(tree) == 3
	})
	streams := []*reevetest.Socket{h.Connect(tree[1].SessionID, 0), h.Connect(tree[2].SessionID, 0)}
	for _, s := range streams {
		s.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	began := time.Now()
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", kit.Object{})
	for i, s := range streams {
		if end := s.Done(1); end.State != reeve.RunCancelled || time.Since(began) > kit.StopTimeout {
			t.Errorf("stream %d: %+v after %s", i, end, time.Since(began))
		}
	}
	for _, run := range tree {
		var now reeve.Run
		if h.Want(http.StatusOK, &now, "GET", "/api/runs/"+run.ID, nil); now.State != reeve.RunCancelled {
			t.Errorf("%s is %s", now.ID, now.State)
		}
	}
	for _, id := range []string{turn.ID, tree[0].ID} {
		infos, _ := kit.ListResults(h, id, "delegate")
		for _, info := range infos {
			if info.Code != reeve.Canceled {
				t.Errorf("%+v", info)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[id == turn.ID]; len(infos) != want {
			t.Errorf("%d results of %d", len(infos), want)
		}
	}
}

// The budgets of the parent pay for a child. If nothing is left, the child gets nothing.
func TestO20_ChildSpendsItsParentsBudget(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate, system: I am boss}, text: "Back."}
- {when: {system: I am boss, said: greedy}, calls: [{name: delegate, args: {agent: greedy, input: go}}]}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper}, text: "Done.", usage: {input: 700, output: 300}}
`)
	boss := kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "helper", nil)
	kit.NewPersona(h, "greedy", kit.Object{"config": kit.Object{"max_tokens": 50000}})
	budget := func() (b reeve.Budget) {
		var list struct {
			Budgets []reeve.Budget `json:"budgets"`
		}
		h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil)
		for _, b = range list.Budgets {
			if b.Subject == "agent:"+boss.ID {
				return b
			}
		}
		t.Fatalf("%+v", list)
		return b
	}
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:"+boss.ID, kit.Object{"limit": kit.Object{"tokens": 20000}})
	c := h.Talk("boss")
	turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "go").ID)
	if b := budget(); b.Used.Tokens < 1000 || b.Used.Tokens != turn.Spent.Tokens || !b.Reserved.IsZero() {
		t.Errorf("%+v, the turn spent %+v", b, turn.Spent)
	}
	turn = kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "ask the greedy one").ID) // who may use more than its caller has
	child := kit.ListChildren(h, turn.ID)
	if len(child) != 1 || child[0].Code != reeve.BudgetExceeded {
		t.Fatalf("%+v", child)
	}
	if infos, _ := kit.ListResults(h, turn.ID, "delegate"); len(infos) != 1 || infos[0].Code != reeve.BudgetExceeded {
		t.Errorf("%+v", infos)
	}
}

// An agent without the tool cannot delegate.
func TestO20_NoRightToDelegate(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {offers: delegate}, text: "I was offered it."}
- {when: {tool: delegate}, text: "I could not."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
`)
	kit.NewPersona(h, "boss", nil)
	kit.NewPersona(h, "helper", nil)
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
	if infos, _ := kit.ListResults(h, turn.ID, "delegate"); turn.Output != "I could not." || len(infos) != 1 ||
		infos[0].Code != reeve.NotFound || len(kit.ListChildren(h, turn.ID)) != 0 {
		t.Errorf("%+v %+v", turn.Turn, infos)
	}
}

// Media that a child or its child sends arrive in the conversation in which the work began.
func TestO20_MediaOfAChildReachTheUser(t *testing.T) {
	t.Parallel()
	h := kit.RunMediaAgent(t, `- {when: {tool: delegate}, text: "Here you are."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: "go"}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: artist, input: "a picture"}}]}
`)
	kit.NewPersona(h, "boss", nil, "delegate", "send_media")
	kit.NewPersona(h, "middle", nil, "delegate", "send_media")
	artist := kit.NewPersona(h, "artist", nil, "send_media")
	c := h.Talk("boss")
	turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "go").ID)
	list := kit.ListMediaFrames(h, c.ID)
	if len(list) != 1 || list[0].AgentID != artist.ID || list[0].TurnID != turn.ID ||
		list[0].Attachments[0].Name != "chart.png" {
		t.Fatalf("the conversation was sent %+v", list)
	}
	child := kit.ListChildren(h, turn.ID)[0]
	if n := len(kit.ListMediaFrames(h, child.SessionID)); n != 0 {
		t.Errorf("it was sent to the child's own conversation too: %d", n)
	}
}

// A turn is cancelled through a server that runs neither it nor its child. The brains read that from the rows within a
// second, and the answer stops streaming.
func TestO20_ChildEndsWithItsParentOnAnotherServer(t *testing.T) {
	url := storetest.PostgresURL(t)
	script := `- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am slow}, text: "` + strings.Repeat("word ", 500) + `", pace: 50ms}
`
	var servers [2]*reevetest.Host
	stopped := make(chan time.Time, 1)
	for i := range servers {
		parsed, err := model.ParseScript([]byte("answers:\n" + script))
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = reevetest.Run(t, host.Config{Dir: t.TempDir(), Database: url, SecretKey: strings.Repeat("ab", 32),
			Model: &interrupted{model.Rehearsal(parsed), stopped}})
	}
	h := servers[0]
	kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "slow", nil)
	turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
	var child reeve.Run
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		list := kit.ListChildren(h, turn.ID)
		if len(list) == 1 && d.State == reeve.RunParked {
			child = list[0]
		}
		return child.ID != ""
	})
	s := h.Connect(child.SessionID, 0)
	s.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	began := time.Now()
	servers[1].Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", kit.Object{})
	if end := s.Done(1); end.State != reeve.RunCancelled {
		t.Errorf("%+v", end)
	}
	select {
	case at := <-stopped:
		if took := at.Sub(began); took > time.Second {
			t.Errorf("the model was let go after %s", took)
		}
	case <-time.After(reevetest.Wait):
		t.Error("the model goes on")
	}
	if infos, _ := kit.ListResults(h, turn.ID, "delegate"); len(infos) != 1 || infos[0].Code != reeve.Canceled {
		t.Errorf("%+v", infos)
	}
}

// interrupted is a model that tells when an answer was broken off.
type interrupted struct {
	model.Model
	at chan time.Time
}

func (m *interrupted) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	a, err := m.Model.Answer(ctx, r, watch)
	if err != nil && ctx.Err() != nil {
		m.at <- time.Now()
	}
	return a, err
}
