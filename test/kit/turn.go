package kit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// ListFrames returns the stored frames of a conversation.
func ListFrames(h *reevetest.Host, conversation string) []reeve.Frame {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/frames?limit=500", nil)
	return l.Frames
}

// ListMediaFrames returns the frames of a conversation that send media.
func ListMediaFrames(h *reevetest.Host, conversation string) (list []reeve.Frame) {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/frames", nil)
	for _, f := range l.Frames {
		if f.Type == reeve.FrameMedia {
			list = append(list, f)
		}
	}
	return list
}

// ListTurns returns the turns of a conversation.
func ListTurns(h *reevetest.Host, conversation string) []reeve.Turn {
	h.T.Helper()
	var l api.TurnList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/turns", nil)
	return l.Turns
}

// GetTurn returns a turn with its messages.
func GetTurn(h *reevetest.Host, turn string) (d api.TurnDetail) {
	h.T.Helper()
	h.Want(http.StatusOK, &d, "GET", "/api/turns/"+turn, nil)
	return d
}

// FrameTypes returns the types of frames as text. Equal types in a row count once.
func FrameTypes(list []reeve.Frame) string {
	var out []string
	for _, f := range list {
		if n := len(out); n == 0 || out[n-1] != string(f.Type) {
			out = append(out, string(f.Type))
		}
	}
	return strings.Join(out, " ")
}

// StartTurn begins a turn over REST.
func StartTurn(h *reevetest.Host, conversation, text string) (turn reeve.Turn) {
	h.T.Helper()
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+conversation+"/turns", Object{"content": text})
	return turn
}

// WaitForTurn waits until a turn has ended, and returns it.
func WaitForTurn(h *reevetest.Host, turn string) api.TurnDetail {
	h.T.Helper()
	return WaitForTurnWhere(h, turn, func(d api.TurnDetail) bool { return d.State.IsFinal() })
}

// WaitForTurnWhere waits until a condition holds for a turn, and returns it.
func WaitForTurnWhere(h *reevetest.Host, turn string, is func(api.TurnDetail) bool) api.TurnDetail {
	h.T.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		d := GetTurn(h, turn)
		if is(d) {
			return d
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("the turn is %+v", d.Turn)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// CheckTurn checks what holds for every recorded turn (W22): it has ended, every call has one result directly behind
// it, messages and frames are in order, and it began and ended once.
func CheckTurn(t *testing.T, h *reevetest.Host, d api.TurnDetail) {
	t.Helper()
	if !d.State.IsFinal() || d.FinishedAt == nil {
		t.Errorf("turn %s is %s", d.ID, d.State)
	}
	results := map[string]int{}
	last := ""
	for i, m := range d.Messages {
		switch {
		case m.Kind == reeve.ToolResult:
			results[m.ActionID]++
			if m.ActionID != last {
				t.Errorf("message %d is not behind its call", i)
			}
		case m.ID <= last:
			t.Errorf("message %d is out of order", i)
		default:
			last = m.ID
		}
	}
	for _, m := range d.Messages {
		if m.Kind == reeve.Action && results[m.ID] != 1 {
			t.Errorf("call %s has %d results", m.ID, results[m.ID])
		}
	}
	var frames struct {
		Frames []reeve.Frame `json:"frames"`
	}
	h.Want(http.StatusOK, &frames, "GET", "/api/conversations/"+d.ConversationID+"/frames", nil)
	seq, started, complete := int64(0), 0, 0
	for _, f := range frames.Frames {
		if f.Seq <= seq {
			t.Errorf("frame %d follows %d", f.Seq, seq)
		}
		seq = f.Seq
		if f.TurnID == d.ID && f.Type == reeve.FrameStarted {
			started++
		}
		if f.TurnID == d.ID && f.Type == reeve.FrameComplete {
			complete++
		}
	}
	if started != 1 || complete != 1 {
		t.Errorf("turn %s was told to begin %d times and to end %d times", d.ID, started, complete)
	}
}

// StartTurnWith begins a turn over REST with a request body.
func StartTurnWith(h *reevetest.Host, conversation string, body Object) (turn reeve.Turn) {
	h.T.Helper()
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+conversation+"/turns", body)
	return turn
}
