package chat_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestW05_ParallelTurns(t *testing.T) {
	t.Parallel()
	const n = 5
	var script strings.Builder
	for i := range n {
		fmt.Fprintf(&script, "- {when: 'ask %d', text: '%s', pace: 3ms}\n", i,
			strings.Repeat(fmt.Sprintf("this is %d and ", i), 12))
	}
	h := kit.RunScripted(t, script.String())
	c := h.StartConversation("bot")
	one, two := h.Connect(c.ID, -1), h.Connect(c.ID, -1)
	for i := range n {
		one.SendMessage(fmt.Sprint("ask ", i))
	}
	one.ReadTurns(n)
	two.ReadTurns(n)
	for _, s := range []*reevetest.Socket{one, two} {
		mixed, last := 0, ""
		for _, f := range s.Frames {
			if f.TurnID == "" || f.ConversationID != c.ID {
				t.Fatalf("a frame of no turn: %+v", f)
			}
			if f.Type == reeve.FrameToken && f.TurnID != last {
				mixed, last = mixed+1, f.TurnID
			}
		}
		if mixed <= n {
			t.Errorf("the turns did not run together: %d changes of turn", mixed)
		}
		for _, turn := range kit.ListTurns(h, c.ID) {
			i := strings.TrimPrefix(turn.Input, "ask ")
			text := s.TurnText(turn.ID)
			if turn.Output != text || strings.Count(text, "this is "+i+" and") != 12 ||
				strings.Count(text, "this is") != 12 {
				t.Errorf("%s: streamed %q, stored %q", turn.Input, text, turn.Output)
			}
		}
	}
}

func TestW04_ParallelTurnsWhileOneWaits(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	h := kit.RunScripted(t, farScript+"- {when: weather, text: 'It rains.'}\n", newFarTool(&sent))
	c := h.StartConversation("bot")
	first := kit.StartTurn(h, c.ID, "begin")
	kit.WaitForTurnWhere(h, first.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "the weather?").ID); d.Output != "It rains." {
		t.Errorf("%+v", d.Turn)
	}
	if d := kit.GetTurn(h, first.ID); d.State != reeve.RunParked {
		t.Errorf("the first turn is %+v", d.Turn)
	}
}
