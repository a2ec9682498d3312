package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

func wantCode(t *testing.T, err error, want reeve.Code) {
	t.Helper()
	if reeve.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// BeginTurn stores the message, the wake, the run and the frame in one transaction. A repeated key returns the same
// turn.
func TestService_BeginTurn(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := t.Context()
	c := w.openConversation()
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 20)...)
	request := reeve.TurnRequest{Content: "hello", Variables: map[string]string{"name": "{{x}}"},
		Tools: []string{"file_list"}, Model: "m",
		Attachments: []reeve.Attachment{{Name: "a.png", MediaType: "image/png", Data: png},
			{MediaType: "image/png", URL: "https://example.com/b.png"}}}
	_, _, err := w.BeginTurn(ctx, ada, c.ID, "k1", request)
	wantCode(t, err, reeve.Validation) // the tool does not exist yet
	w.must(w.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().PutTool(ctx,
			reeve.Tool{ID: "file_list", Parameters: []byte(`{"type":"object"}`)}.WithDefaults())
	}))
	turn, isNew, err := w.BeginTurn(ctx, ada, c.ID, "k1", request)
	w.must(err)
	if !isNew || turn.State != reeve.RunRunning || turn.ConversationID != c.ID || turn.Input != "hello" ||
		len(w.enqueued) != 1 || w.enqueued[0].ID != turn.ID {
		t.Fatalf("turn %+v, new %v, enqueued %d", turn, isNew, len(w.enqueued))
	}
	again, isNew, err := w.BeginTurn(ctx, ada, c.ID, "k1", request)
	w.must(err)
	if isNew || again.ID != turn.ID || len(w.enqueued) != 1 {
		t.Errorf("repeated: %+v, new %v", again, isNew)
	}
	other := request
	other.Model = "n"
	_, _, err = w.BeginTurn(ctx, ada, c.ID, "k1", other)
	wantCode(t, err, reeve.Conflict)

	w.must(w.DB.View(ctx, func(s *store.Snap) error {
		list, err := s.Ledger().ListMessages(ctx, home, c.ThreadID(), "", 10)
		w.must(err)
		var info reeve.MessageInfo
		w.must(json.Unmarshal(list[0].Metadata, &info))
		if len(list) != 1 || list[0].RunID != turn.ID || list[0].Kind != reeve.UserMessage || info.Type != "said" ||
			info.User != "ada" || info.Variables["name"] != "{{x}}" ||
			info.Tools[0] != "file_list" || info.Model != "m" || info.Attachments[0].Size != len(png) ||
			info.Attachments[1].URL == "" || info.Attachments[1].Size != 48 {
			t.Errorf("message %+v, info %+v", list[0], info)
		}
		got, err := s.Ledger().GetPayload(ctx, home, store.ConversationPayload, info.Attachments[0].Hash, 0, -1)
		w.must(err)
		if !bytes.Equal(got.Body, png) {
			t.Error("the content of the attachment is not stored")
		}
		wake, err := s.Queue().GetWake(ctx, w.enqueued[0].Key)
		w.must(err)
		if wake.State != reeve.WakeTaken || wake.RunID != turn.ID || wake.SessionID != c.ID {
			t.Errorf("wake %+v", wake)
		}
		now, err := s.Chat().GetConversation(ctx, home, "ada", c.ID)
		w.must(err)
		if now.Turns != 1 {
			t.Errorf("%d turns", now.Turns)
		}
		frames, err := s.Chat().ListFrames(ctx, c.ID, 0, 10)
		if len(frames) != 1 || frames[0].Type != reeve.FrameStarted || frames[0].Text != "hello" ||
			frames[0].TurnID != turn.ID {
			t.Errorf("frames %+v", frames)
		}
		return err
	}))
}

func TestService_BeginTurnPermissions(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := t.Context()
	c := w.openConversation()
	hello := reeve.TurnRequest{Content: "hello"}
	begin := func(p reeve.Principal) error {
		_, _, err := w.BeginTurn(ctx, p, c.ID, "", hello)
		return err
	}
	wantCode(t, begin(bob), reeve.NotFound)
	w.must(begin(eve))
	w.update(func(tx *store.Tx) error {
		_, err := tx.Chat().AddParticipant(ctx, c.ID, reeve.Participant{Kind: reeve.UserParticipant, ID: "bob"})
		return err
	})
	w.must(begin(bob))
	foreign := ada
	foreign.Workspace = "another"
	wantCode(t, begin(foreign), reeve.NotFound)

	change := func(f func(*reeve.Agent)) {
		w.update(func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, home, "bot")
			if err != nil {
				return err
			}
			f(&a)
			return tx.Agents().UpdateAgent(ctx, a)
		})
	}
	change(func(a *reeve.Agent) { a.Mode = reeve.Autonomous })
	wantCode(t, begin(ada), reeve.Conflict)
	change(func(a *reeve.Agent) { now := reeve.Now(); a.Mode, a.StoppedAt = reeve.Hybrid, &now })
	wantCode(t, begin(ada), reeve.Stopped)
	change(func(a *reeve.Agent) { a.Lifecycle, a.StoppedAt = reeve.AgentDormant, nil })
	wantCode(t, begin(ada), reeve.Conflict)
	change(func(a *reeve.Agent) { a.Lifecycle = reeve.AgentActive })
	w.must(begin(ada))
	w.update(func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, home, tx.Now(), "no") })
	wantCode(t, begin(ada), reeve.Stopped)
	w.update(func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, home, reeve.FromMillis(0), "") })
	w.must(begin(ada))
	state := func(tx *store.Tx, s string) error {
		return tx.Chat().ChangeConversation(ctx, c.ID, reeve.ConversationChange{State: s})
	}
	w.update(func(tx *store.Tx) error { return state(tx, reeve.ConversationCompleted) })
	wantCode(t, begin(ada), reeve.Conflict)
	w.update(func(tx *store.Tx) error {
		if err := state(tx, reeve.ConversationActive); err != nil {
			return err
		}
		return tx.Agents().DeleteAgent(ctx, home, "agt_bot")
	})
	wantCode(t, begin(ada), reeve.Conflict)
}

func TestService_InvalidTurnRequests(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	file := func(a reeve.Attachment) reeve.TurnRequest {
		return reeve.TurnRequest{Content: "look", Attachments: []reeve.Attachment{a}}
	}
	many := map[string]string{}
	for i := range maxVariables + 1 {
		many[strings.Repeat("v", i+1)] = ""
	}
	for name, c2 := range map[string]struct {
		request reeve.TurnRequest
		path    string
	}{
		"empty":          {reeve.TurnRequest{Content: " \n"}, "/content"},
		"too long":       {reeve.TurnRequest{Content: strings.Repeat("x", MaxContentBytes+1)}, "/content"},
		"many files":     {reeve.TurnRequest{Attachments: make([]reeve.Attachment, MaxAttachments+1)}, "/attachments"},
		"many variables": {reeve.TurnRequest{Content: "x", Variables: many}, "/variables"},
		"no type":        {file(reeve.Attachment{Data: []byte("x")}), "/attachments/0/media_type"},
		"unsupported type": {file(reeve.Attachment{MediaType: "application/x-sh", Data: []byte("x")}),
			"/attachments/0/media_type"},
		"no bytes": {file(reeve.Attachment{MediaType: "text/plain"}), "/attachments/0"},
		"bytes and url": {file(reeve.Attachment{MediaType: "text/plain", Data: []byte("x"), URL: "https://a/b"}),
			"/attachments/0"},
		"a hash": {file(reeve.Attachment{MediaType: "text/plain", Hash: "ab"}), "/attachments/0"},
		"a file url": {file(reeve.Attachment{MediaType: "text/plain", URL: "file:///etc/passwd"}),
			"/attachments/0/url"},
		"not a PNG": {file(reeve.Attachment{MediaType: "image/png", Data: []byte("GIF89a")}), "/attachments/0/data"},
		"not text":  {file(reeve.Attachment{MediaType: "text/plain", Data: []byte{0xff, 0xfe}}), "/attachments/0/data"},
		"a very long name": {file(reeve.Attachment{MediaType: "text/plain", Name: strings.Repeat("n", 256),
			Data: []byte("x")}), "/attachments/0/name"},
	} {
		_, _, err := w.BeginTurn(t.Context(), ada, c.ID, "", c2.request)
		e := reeve.AsError(err)
		if e.Code != reeve.Validation || len(e.Fields) != 1 || e.Fields[0].Path != c2.path ||
			e.Fields[0].Expected == "" {
			t.Errorf("%s: %v %+v", name, err, e.Fields)
		}
	}
	_, _, err := w.BeginTurn(t.Context(), ada, c.ID, "",
		file(reeve.Attachment{MediaType: "audio/wav", Data: make([]byte, MaxAttachmentBytes+1)}))
	wantCode(t, err, reeve.TooLarge)
	if len(w.enqueued) != 0 {
		t.Errorf("%d turns were started", len(w.enqueued))
	}
}

// The end of a turn is published once, with its error. A parked turn has not ended.
func TestService_TurnEnds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := t.Context()
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	for range 3 {
		_, _, err := w.BeginTurn(ctx, ada, c.ID, "", reeve.TurnRequest{Content: "hello"})
		w.must(err)
	}
	end := func(run reeve.Run, state reeve.RunState, why reeve.Code) {
		run.State, run.Code, run.Spent = state, why, reeve.Amount{Calls: 2}
		w.update(func(tx *store.Tx) error { return w.OnRunEnd(ctx, tx, run) })
		w.AfterRunEnd(run)
	}
	end(w.enqueued[0], reeve.RunParked, "")
	end(w.enqueued[0], reeve.RunCompleted, "")
	end(w.enqueued[0], reeve.RunCompleted, "")
	end(w.enqueued[1], reeve.RunFailed, reeve.ModelFailed)
	end(w.enqueued[2], reeve.RunCancelled, reeve.Canceled)
	other := w.enqueued[0]
	other.Reason = reeve.ReasonTimer
	end(other, reeve.RunFailed, reeve.Internal)
	list := w.read(r, func(f reeve.Frame) bool { return f.State == reeve.RunCancelled })
	var got []string
	for _, f := range list {
		got = append(got, string(f.Type)+" "+string(f.State)+" "+string(f.Code))
		if f.Type == reeve.FrameComplete && (f.Spent == nil || f.Spent.Calls != 2) || f.Type == reeve.FrameError &&
			f.Hint == "" {
			t.Errorf("%+v", f)
		}
	}
	if want := "turn_started  |turn_started  |turn_started  |turn_complete completed |error  " +
		"MODEL_FAILED|turn_complete failed MODEL_FAILED|turn_complete cancelled CANCELED"; strings.Join(got,
		"|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func TestService_Open(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := t.Context()
	c, err := w.Open(ctx, ada, "conv_mine", "playground", reeve.ConversationRequest{Agent: "bot", Title: "T",
		Participants: []string{"bob", "ada"}})
	w.must(err)
	if c.ID != "conv_mine" || c.UserID != "ada" || len(c.Participants) != 3 || c.State != reeve.ConversationActive ||
		c.Origin != "playground" {
		t.Errorf("%+v", c)
	}
	again, err := w.Open(ctx, bob, "conv_mine", "playground", reeve.ConversationRequest{Agent: "agt_bot"})
	w.must(err)
	if again.UserID != "ada" || again.Title != "T" {
		t.Errorf("%+v", again)
	}
	_, err = w.Open(ctx, ada, "", "chat", reeve.ConversationRequest{Agent: "nobody"})
	wantCode(t, err, reeve.NotFound)
	_, err = w.Open(ctx, ada, "", "chat", reeve.ConversationRequest{Agent: "bot", Participants: []string{" "}})
	wantCode(t, err, reeve.Validation)
}
