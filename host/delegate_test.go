package host_test

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
)

// persona makes an agent with instructions and tools. A tool may be followed by its settings.
func persona(h *reevetest.Host, name string, also object, tools ...any) reeve.Agent {
	h.T.Helper()
	body := object{"name": name, "config": object{"instructions": "I am " + name + "."}}
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
		attached := object{"tool_id": id}
		if i+1 < len(tools) {
			if config, ok := tools[i+1].(object); ok {
				attached["config"] = config
			}
		}
		h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", attached)
	}
	return a
}

// children lists the runs that a run's calls began, oldest first.
func children(h *reevetest.Host, parent string) (list []reeve.Run) {
	h.T.Helper()
	var page struct {
		Runs []reeve.Run `json:"runs"`
	}
	h.Want(http.StatusOK, &page, "GET", "/api/runs?limit=200", nil)
	for _, r := range page.Runs {
		if r.ParentID == parent {
			list = append([]reeve.Run{r}, list...)
		}
	}
	return list
}

// results gives what the calls of a tool came to in a turn.
func results(h *reevetest.Host, turn, tool string) (list []reeve.ResultInfo, said []string) {
	h.T.Helper()
	calls := map[string]bool{}
	for _, m := range detail(h, turn).Messages {
		switch m.Kind {
		case reeve.Action:
			calls[m.ID] = actionInfo(h.T, m).Tool == tool
		case reeve.ToolResult:
			var info reeve.ResultInfo
			if err := json.Unmarshal(m.Metadata, &info); err != nil {
				h.T.Fatal(err)
			}
			if calls[m.ActionID] {
				list, said = append(list, info), append(said, m.Content)
			}
		default:
		}
	}
	return list, said
}

// TestW17_Delegate hands a task to another agent and looks at everything that comes of it.
func TestW17_Delegate(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {system: I am boss, said: go}, text: "I ask the writer.", calls: [{name: delegate, args: {agent: writer, input: "write a line about rain"}}]}
- {when: {system: I am boss, tool: delegate}, text: "The writer says: it pours."}
- {when: {system: I am writer, said: secret}, text: "I know what nobody told me."}
- {when: {system: I am writer, said: rain}, text: "It pours."}
`)
	persona(h, "boss", nil, "delegate")
	writer := persona(h, "writer", nil)
	c := h.StartConversation("boss")
	s := h.Connect(c.ID, -1)
	s.SendMessage("go, and the secret is 42")
	end := s.ReadTurns(1)
	if end.State != reeve.RunCompleted {
		t.Fatalf("%+v", end)
	}
	if got := kinds(s.Frames); got != "turn_started token message_complete tool_started tool_result token "+
		"message_complete turn_complete" {
		t.Errorf("frames: %s", got)
	}
	infos, said := results(h, end.TurnID, "delegate")
	if len(said) != 1 || said[0] != "It pours." || infos[0].Status != "success" {
		t.Fatalf("%q %+v", said, infos)
	}
	list := children(h, end.TurnID)
	if len(list) != 1 {
		t.Fatalf("%d children", len(list))
	}
	child := list[0]
	if child.AgentID != writer.ID || child.State != reeve.RunCompleted || child.Output != "It pours." ||
		child.Input != "write a line about rain" || child.SessionID == c.ID {
		t.Errorf("%+v", child)
	}
	if len(child.Ancestors) != 1 || child.Ancestors[0].RunID != end.TurnID {
		t.Errorf("ancestors: %+v", child.Ancestors)
	}
	var talk reeve.Conversation
	h.Want(http.StatusOK, &talk, "GET", "/api/conversations/"+child.SessionID, nil)
	if talk.Origin != "delegate" || talk.AgentID != writer.ID || talk.Turns != 1 {
		t.Errorf("%+v", talk)
	}
	d := detail(h, end.TurnID)
	if d.Output != "The writer says: it pours." || d.ModelRequests != 2 {
		t.Errorf("%+v", d.Turn)
	}
	if own := child.Spent.Tokens; own == 0 || d.Spent.Tokens <= own || infos[0].Spent.Tokens != own {
		t.Errorf("the child cost %d tokens, the call %d, the parent %d in all", own, infos[0].Spent.Tokens,
			d.Spent.Tokens)
	}
}

// TestW17_FailuresAreTyped has a delegation fail in every way there is. Each time the caller is told why, and goes on.
func TestW17_FailuresAreTyped(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "I go on."}
- {when: {system: I am boss, said: ask nobody}, calls: [{name: delegate, args: {agent: nobody, input: hello}}]}
- {when: {system: I am boss, said: ask stranger}, calls: [{name: delegate, args: {agent: stranger, input: hello}}]}
- {when: {system: I am boss, said: ask failing}, calls: [{name: delegate, args: {agent: failing, input: hello}}]}
- {when: {system: I am boss, said: ask poor}, calls: [{name: delegate, args: {agent: poor, input: hello}}]}
- {when: {system: I am boss, said: ask slow}, calls: [{name: delegate, args: {agent: slow, input: hello}}]}
- {when: {system: I am boss, said: ask again}, calls: [{name: delegate, args: {agent: again, input: hello}}]}
- {when: {system: I am boss, said: ask asleep}, calls: [{name: delegate, args: {agent: asleep, input: hello}}]}
- {when: {system: I am boss, said: ask empty}, calls: [{name: delegate, args: {agent: failing, input: ""}}]}
- {when: {system: I am again}, calls: [{name: delegate, args: {agent: boss, input: "and you?"}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 200)+`", pace: 100ms}
- {when: {system: I am failing}, fail: {status: 400, message: broken}}
`)
	for _, name := range []string{"stranger", "failing", "slow", "nobody"} {
		persona(h, name, nil)
	}
	persona(h, "again", nil, "delegate")
	poor := persona(h, "poor", nil)
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:"+poor.ID, object{"limit": object{"tokens": 1}})
	persona(h, "asleep", nil)
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/asleep", object{"lifecycle": "dormant"})
	persona(h, "boss", nil, "delegate",
		object{"agents": []string{"nobody", "failing", "poor", "slow", "again", "asleep"}, "timeout_s": 1})
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/nobody", nil)
	c := h.StartConversation("boss")
	for said, want := range map[string]reeve.Code{"nobody": reeve.NotFound, "stranger": reeve.Denied,
		"failing": reeve.ModelFailed, "poor": reeve.BudgetExceeded, "slow": reeve.Timeout,
		"asleep": reeve.Conflict, "empty": reeve.Validation} {
		turn := over(h, speak(h, c.ID, "ask "+said).ID)
		infos, _ := results(h, turn.ID, "delegate")
		if len(infos) != 1 || infos[0].Status != "error" || infos[0].Code != want {
			t.Errorf("%s: %+v, want %s", said, infos, want)
		}
		if turn.State != reeve.RunCompleted || turn.Output != "I go on." {
			t.Errorf("%s: the caller is %s: %q", said, turn.State, turn.Output)
		}
		for _, child := range children(h, turn.ID) {
			if !child.State.IsFinal() {
				t.Errorf("%s: its child is %s", said, child.State)
			}
		}
	}
	turn := over(h, speak(h, c.ID, "ask again").ID) // which asks back
	if _, said := results(h, turn.ID, "delegate"); len(said) != 1 || said[0] != "I go on." {
		t.Errorf("asked in a circle: %q", said)
	}
	back := children(h, turn.ID)
	infos, said := results(h, back[0].ID, "delegate")
	if len(infos) != 1 || infos[0].Code != reeve.Denied || !strings.Contains(said[0], "boss → again → boss") {
		t.Errorf("the circle: %+v %q", infos, said)
	}
}

// TestO20_NoToolItsParentLacks: a child has what both have, of tools, scope, settings and policy. The gate says so,
// whatever the child's own settings are; and the model is not even offered what it could not call.
func TestO20_NoToolItsParentLacks(t *testing.T) {
	t.Parallel()
	var both, own counter
	shared, mine := tool("shared", reeve.Keyed, both.handle), tool("mine", reeve.Keyed, own.handle)
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, offers: mine}, text: "I was offered what my caller lacks."}
- {when: {system: I am helper, tool: mine}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: shared, args: {}}, {name: mine, args: {}}]}
`, shared, mine)
	persona(h, "boss", nil, "delegate", "shared")
	persona(h, "helper", nil, "shared", "mine")
	turn := over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
	child := children(h, turn.ID)[0]
	if child.Output != "Done." {
		t.Errorf("%+v", child)
	}
	if infos, _ := results(h, child.ID, "mine"); len(infos) != 1 || infos[0].Code != reeve.NotFound ||
		infos[0].Step.Name != "attachment" {
		t.Errorf("the tool that the parent lacks: %+v", infos)
	}
	if both.count() != 1 || own.count() != 0 {
		t.Errorf("shared ran %d times, mine %d times", both.count(), own.count())
	}
	// By itself, the helper has both.
	h.Call("helper", "mine", object{})
	if own.count() != 1 {
		t.Error("the helper lost its own tool")
	}
}

// TestO20_ScopePolicyAndSettingsOfTheParent: what the parent must ask a person for, may not touch, or is not let do by
// its settings, its child must ask for, may not touch, and cannot do either.
func TestO20_ScopePolicyAndSettingsOfTheParent(t *testing.T) {
	t.Parallel()
	var asked, touched, checked counter
	ask, touch, narrow := tool("ask", reeve.Keyed, asked.handle), tool("touch", reeve.Keyed, touched.handle),
		tool("narrow", reeve.Keyed, checked.handle)
	var other atomic.Value // a category
	touch.Categories = func(context.Context, *reeve.Invocation) ([]string, error) {
		return []string{other.Load().(string)}, nil
	}
	narrow.ConfigSchema = json.RawMessage(anything)
	narrow.Check = func(_ context.Context, inv *reeve.Invocation) error {
		if !strings.Contains(string(inv.Config), "wide") {
			return reeve.Errorf(reeve.Denied, "only where the settings say wide")
		}
		return nil
	}
	capable := tool("capable", reeve.Keyed, checked.handle)
	capable.Capability = "shell"
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: ask}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: touch, args: {}}, {name: narrow, args: {}}, {name: capable, args: {}}, {name: ask, args: {}}]}
`, ask, touch, narrow, capable)
	category(h, "a")
	other.Store(category(h, "b"))
	persona(h, "boss", object{"categories": []string{"a"}, "policy": object{"tools": object{"ask": "ask"}}}, "delegate",
		"ask", "touch", "narrow", "capable")
	persona(h, "helper", object{"kind": "engineer", "categories": []string{"a", "b"}}, "ask", "touch", "narrow",
		object{"mode": "wide"}, "capable")
	for _, id := range []string{"touch", "narrow", "capable"} { // by itself it can
		h.Call("helper", id, object{})
	}
	c := h.StartConversation("boss")
	turn := speak(h, c.ID, "go")
	var child reeve.Run
	until(h, turn.ID, func(api.TurnDetail) bool {
		list := children(h, turn.ID)
		if len(list) == 1 {
			child = list[0]
		}
		return child.State == reeve.RunParked
	})
	for id, step := range map[string]string{"touch": "scope", "narrow": "security", "capable": "capability"} {
		if infos, _ := results(h, child.ID, id); len(infos) != 1 || infos[0].Status != "error" ||
			infos[0].Step.Name != step {
			t.Errorf("%s: %+v", id, infos)
		}
	}
	if asked.count() != 0 || touched.count() != 1 || checked.count() != 2 {
		t.Errorf("asked %d, touched %d, checked %d", asked.count(), touched.count(), checked.count())
	}
	var inbox struct {
		Approvals []reeve.Approval `json:"approvals"`
	}
	h.Want(http.StatusOK, &inbox, "GET", "/api/approvals", nil)
	if len(inbox.Approvals) != 1 || !strings.Contains(inbox.Approvals[0].Why, "on behalf of boss") {
		t.Fatalf("%+v", inbox)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox.Approvals[0].ID+"/decision",
		object{"decision": "approve"})
	forwarded := h.Connect(c.ID, 0) // whoever began it all is told that somebody waits
	if f := forwarded.ReadUntil(
		func(f reeve.Frame) bool { return f.Type == reeve.FrameApproval }); f.TurnID != turn.ID ||
		f.AgentID != child.AgentID || f.ApprovalID != inbox.Approvals[0].ID {
		t.Errorf("%+v", f)
	}
	if d := over(h, turn.ID); d.Output != "Back." || asked.count() != 1 {
		t.Errorf("%+v, asked %d", d.Turn, asked.count())
	}
}

// TestO20_DepthIsLimited: the operator says how deep agents may call agents.
func TestO20_DepthIsLimited(t *testing.T) {
	t.Parallel()
	script := `- {when: {tool: delegate}, text: "Back: {{results}}"}
`
	for i := range 4 {
		script += fmt.Sprintf("- {when: {system: I am a%d}, calls: [{name: delegate, args: {agent: a%d, input: on}}]}\n", i, i+1)
	}
	cfg := host.Config{Dir: t.TempDir(), DelegationDepth: 2}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, script)
	h := reevetest.Run(t, cfg)
	for i := range 5 {
		persona(h, fmt.Sprint("a", i), nil, "delegate")
	}
	turn := over(h, speak(h, h.StartConversation("a0").ID, "go").ID)
	depth := 0
	for id := turn.ID; ; depth++ {
		list := children(h, id)
		if len(list) == 0 {
			if infos, said := results(h, id, "delegate"); len(infos) != 1 || infos[0].Code != reeve.Denied ||
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

// TestO20_DiesWithItsParent cancels a turn whose child, and the child's child, are in the middle of an answer. All end
// within a second, and the parent's history has its result.
func TestO20_DiesWithItsParent(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: go}}, {name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 500)+`", pace: 50ms}
`)
	persona(h, "boss", nil, "delegate")
	persona(h, "middle", nil, "delegate")
	persona(h, "slow", nil)
	turn := speak(h, h.StartConversation("boss").ID, "go")
	var tree []reeve.Run
	// both slow ones have begun: calls that follow each other go on together
	until(h, turn.ID, func(d api.TurnDetail) bool {
		if tree = children(h, turn.ID); len(tree) == 2 && d.State == reeve.RunParked {
			tree = append(tree, children(h, tree[0].ID)...)
		}
		return len(tree) == 3
	})
	streams := []*reevetest.Socket{h.Connect(tree[1].SessionID, 0), h.Connect(tree[2].SessionID, 0)}
	for _, s := range streams {
		s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	began := time.Now()
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", object{})
	for i, s := range streams {
		if end := s.ReadTurns(1); end.State != reeve.RunCancelled || time.Since(began) > soon {
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
		infos, _ := results(h, id, "delegate")
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

// TestO20_SpendsItsParentsBudget: what a child costs its parent's budgets pay, and a child whose parent has nothing
// left gets nothing.
func TestO20_SpendsItsParentsBudget(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate, system: I am boss}, text: "Back."}
- {when: {system: I am boss, said: greedy}, calls: [{name: delegate, args: {agent: greedy, input: go}}]}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper}, text: "Done.", usage: {input: 700, output: 300}}
`)
	boss := persona(h, "boss", nil, "delegate")
	persona(h, "helper", nil)
	persona(h, "greedy", object{"config": object{"max_tokens": 50000}})
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
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:"+boss.ID, object{"limit": object{"tokens": 20000}})
	c := h.StartConversation("boss")
	turn := over(h, speak(h, c.ID, "go").ID)
	if b := budget(); b.Used.Tokens < 1000 || b.Used.Tokens != turn.Spent.Tokens || !b.Reserved.IsZero() {
		t.Errorf("%+v, the turn spent %+v", b, turn.Spent)
	}
	turn = over(h, speak(h, c.ID, "ask the greedy one").ID) // who may use more than its caller has
	child := children(h, turn.ID)
	if len(child) != 1 || child[0].Code != reeve.BudgetExceeded {
		t.Fatalf("%+v", child)
	}
	if infos, _ := results(h, turn.ID, "delegate"); len(infos) != 1 || infos[0].Code != reeve.BudgetExceeded {
		t.Errorf("%+v", infos)
	}
}

// TestO20_NoRightToDelegate: without the tool nobody can.
func TestO20_NoRightToDelegate(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {offers: delegate}, text: "I was offered it."}
- {when: {tool: delegate}, text: "I could not."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
`)
	persona(h, "boss", nil)
	persona(h, "helper", nil)
	turn := over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
	if infos, _ := results(h, turn.ID, "delegate"); turn.Output != "I could not." || len(infos) != 1 ||
		infos[0].Code != reeve.NotFound || len(children(h, turn.ID)) != 0 {
		t.Errorf("%+v %+v", turn.Turn, infos)
	}
}

// TestO20_ItsMediaReachTheUser: what a child, or its child, sends comes to the conversation that it all began in.
func TestO20_ItsMediaReachTheUser(t *testing.T) {
	t.Parallel()
	h := painter(t, `- {when: {tool: delegate}, text: "Here you are."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: "go"}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: artist, input: "a picture"}}]}
`)
	persona(h, "boss", nil, "delegate", "send_media")
	persona(h, "middle", nil, "delegate", "send_media")
	artist := persona(h, "artist", nil, "send_media")
	c := h.StartConversation("boss")
	turn := over(h, speak(h, c.ID, "go").ID)
	list := sent(h, c.ID)
	if len(list) != 1 || list[0].AgentID != artist.ID || list[0].TurnID != turn.ID ||
		list[0].Attachments[0].Name != "chart.png" {
		t.Fatalf("the conversation was sent %+v", list)
	}
	child := children(h, turn.ID)[0]
	if n := len(sent(h, child.SessionID)); n != 0 {
		t.Errorf("it was sent to the child's own conversation too: %d", n)
	}
}

// TestO20_DiesWithItsParentOnAnotherServer cancels a turn through a server that runs neither it nor its child. Brains
// learn of it from the rows, within a second; and an answer that is cancelled there stops streaming.
func TestO20_DiesWithItsParentOnAnotherServer(t *testing.T) {
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
	persona(h, "boss", nil, "delegate")
	persona(h, "slow", nil)
	turn := speak(h, h.StartConversation("boss").ID, "go")
	var child reeve.Run
	until(h, turn.ID, func(d api.TurnDetail) bool {
		list := children(h, turn.ID)
		if len(list) == 1 && d.State == reeve.RunParked {
			child = list[0]
		}
		return child.ID != ""
	})
	s := h.Connect(child.SessionID, 0)
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	began := time.Now()
	servers[1].Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", object{})
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
	if infos, _ := results(h, turn.ID, "delegate"); len(infos) != 1 || infos[0].Code != reeve.Canceled {
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

// TestW17_APersonsTimeDoesNotCount: a task whose time is up while it waits for an approval goes on waiting, and ends
// well once it is approved.
func TestW17_APersonsTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	var ran counter
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: ask}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: ask, args: {}}]}
`, tool("ask", reeve.Keyed, ran.handle))
	persona(h, "boss", nil, "delegate", object{"timeout_s": 1}, "ask")
	persona(h, "helper", object{"policy": object{"tools": object{"ask": "ask"}}}, "ask")
	turn := speak(h, h.StartConversation("boss").ID, "go")
	until(h, turn.ID, func(api.TurnDetail) bool { // it was looked at, and left
		for _, op := range operations(h) {
			if op.Tool == "delegate" && op.NextAttemptAt.After(*op.TimeoutAt) {
				return true
			}
		}
		return false
	})
	var inbox api.Inbox
	h.Want(http.StatusOK, &inbox, "GET", "/api/inbox", nil)
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox.Approvals[0].ID+"/decision",
		object{"decision": "approve"})
	if d := over(h, turn.ID); d.Output != "Back." || ran.count() != 1 {
		t.Errorf("%+v", d.Turn)
	}
}

// TestW17_TheOtherIsRemoved: whoever waits for an agent that is removed, or destroyed, is told.
func TestW17_TheOtherIsRemoved(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 500)+`", pace: 50ms}
`)
	persona(h, "boss", nil, "delegate")
	c := h.StartConversation("boss")
	for _, remove := range []func(id string){
		func(id string) {
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+id, object{"lifecycle": "destroyed", "name": "was-slow"})
		},
		func(id string) { h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+id, nil) },
	} {
		slow := persona(h, "slow", nil)
		turn := speak(h, c.ID, "go")
		until(h, turn.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
		remove(slow.ID)
		d := over(h, turn.ID)
		if infos, _ := results(h, turn.ID, "delegate"); d.Output != "Back." || len(infos) != 1 ||
			infos[0].Code != reeve.Canceled {
			t.Errorf("%+v %+v", d.Turn, infos)
		}
	}
}
