package wake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
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
	c := h.StartConversation("boss")
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
	forwarded := h.Connect(c.ID, 0) // the first conversation shows that an approval is needed
	if f := forwarded.ReadUntil(
		func(f reeve.Frame) bool { return f.Type == reeve.FrameApproval }); f.TurnID != turn.ID ||
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
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("a0").ID, "go").ID)
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
	turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
	var tree []reeve.Run
	// both delegations have begun, because delegations of one answer run in parallel
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		if tree = kit.ListChildren(h, turn.ID); len(tree) == 2 && d.State == reeve.RunParked {
			tree = append(tree, kit.ListChildren(h, tree[0].ID)...)
		}
		return len(tree) == 3
	})
	streams := []*reevetest.Socket{h.Connect(tree[1].SessionID, 0), h.Connect(tree[2].SessionID, 0)}
	for _, s := range streams {
		s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	began := time.Now()
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", kit.Object{})
	for i, s := range streams {
		if end := s.ReadTurns(1); end.State != reeve.RunCancelled || time.Since(began) > kit.StopTimeout {
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
	kit.NewPersona(h, "greedy", kit.Object{"config": kit.Object{"instructions": strings.Repeat("Read it all. ", 8000)}})
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
	c := h.StartConversation("boss")
	turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "go").ID)
	if b := budget(); b.Used.Tokens < 1000 || b.Used.Tokens != turn.Spent.Tokens || !b.Reserved.IsZero() {
		t.Errorf("%+v, the turn spent %+v", b, turn.Spent)
	}
	turn = kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "ask the greedy one").ID) // who needs more than its caller has
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
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
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
	c := h.StartConversation("boss")
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
			Model: &interruptedModel{model.Rehearsal(parsed), stopped}})
	}
	h := servers[0]
	kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "slow", nil)
	turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
	var child reeve.Run
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		list := kit.ListChildren(h, turn.ID)
		if len(list) == 1 && d.State == reeve.RunParked {
			child = list[0]
		}
		return child.ID != ""
	})
	s := h.Connect(child.SessionID, 0)
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	began := time.Now()
	servers[1].Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", kit.Object{})
	if end := s.ReadTurns(1); end.State != reeve.RunCancelled {
		t.Errorf("%+v", end)
	}
	select {
	case at := <-stopped:
		if took := at.Sub(began); took > time.Second {
			t.Errorf("the model was let go after %s", took)
		}
	case <-time.After(reevetest.Timeout):
		t.Error("the model goes on")
	}
	if infos, _ := kit.ListResults(h, turn.ID, "delegate"); len(infos) != 1 || infos[0].Code != reeve.Canceled {
		t.Errorf("%+v", infos)
	}
}

// interruptedModel is a model that reports when an answer was interrupted.
type interruptedModel struct {
	model.Model
	at chan time.Time
}

func (m *interruptedModel) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	a, err := m.Model.Answer(ctx, r, watch)
	if err != nil && ctx.Err() != nil {
		m.at <- time.Now()
	}
	return a, err
}
