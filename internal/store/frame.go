package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"reeve"
)

// FrameStep is the distance between the sequence numbers of two kept frames: room for the tokens between them, which
// are not kept.
const FrameStep = 1_000_000

// AppendFrame keeps what the clients of a conversation are to be told of a turn that is under way. Of one that is over
// they are told nothing more: it is left out. The same key again is told once. Nobody waits for its number: the
// conversation is held first, so numbers follow the order of commits.
func (t ChatTx) AppendFrame(ctx context.Context, conversation, key string, f reeve.Frame) error {
	return t.appendFrame(ctx, conversation, key, f,
		` AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = $3 AND r.state NOT IN ('running', 'parked'))`)
}

// AppendLast is AppendFrame for what belongs to the end of a turn: how it ended, and what its calls came to.
func (t ChatTx) AppendLast(ctx context.Context, conversation, key string, f reeve.Frame) error {
	return t.appendFrame(ctx, conversation, key, f, "")
}

func (t ChatTx) appendFrame(ctx context.Context, conversation, key string, f reeve.Frame, provided string) error {
	f.Seq, f.ConversationID = 0, ""
	if err := t.LockConversation(ctx, conversation); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO frames (conversation_id, n, frame_key, turn_id, body, created_at)
		SELECT c.id, COALESCE((SELECT max(n) FROM frames WHERE conversation_id = $1), 0) + 1, $2, $3, $4, $5 FROM conversations c WHERE c.id = $1`+provided+`
		ON CONFLICT (conversation_id, frame_key) DO NOTHING`, conversation, key, f.TurnID, reeve.SanitizeText(text(f)), reeve.Millis(t.now))
}

// LockConversation keeps all others from telling anything in a conversation until the transaction is over: a turn of it
// that has not ended does not end meanwhile.
func (t ChatTx) LockConversation(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE conversations SET updated_at = $2 WHERE id = $1`, id, reeve.Millis(t.now))
}

// mediaKey begins the keys of frames that send something with this hash.
func mediaKey(hash string) string { return "media:" + hash + ":" }

// SendMedia keeps a frame that sends what it has attached to a conversation.
func (t ChatTx) SendMedia(ctx context.Context, conversation, operation string, f reeve.Frame) error {
	f.Type = reeve.FrameMedia
	return t.AppendFrame(ctx, conversation, mediaKey(f.Attachments[0].Hash)+operation, f)
}

// SentMedia finds what was sent to a conversation by its hash, as it was named last.
func (s Chat) SentMedia(ctx context.Context, conversation, hash string) (reeve.Attachment, error) {
	list, err := all(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND frame_key >= $2 AND frame_key < $3
		ORDER BY frame_key DESC LIMIT 1`, conversation, mediaKey(hash), mediaKey(hash+"~"))
	if err != nil || len(list) == 0 {
		return reeve.Attachment{}, cmp.Or(err, notFound("media", hash))
	}
	return list[0].Attachments[0], nil
}

// ResultFrame is how clients are told what a call came to, and the key by which it is told once. The caller's own name
// of the call is ref.
func ResultFrame(ref, tool string, r reeve.Result) (key string, f reeve.Frame) {
	return "result:" + r.CallID, reeve.Frame{Type: reeve.FrameResult, MessageID: r.CallID, ToolCallID: ref, Tool: tool,
		Content: cmp.Or(r.Content, r.Message), IsError: r.IsError, Code: r.Code,
		OperationID: r.OperationID, Spent: &r.Spent}
}

// tellResult keeps what a call of a turn came to, unless its brain has told it. What others did in the turn was never
// told to begin.
func (t ChatTx) tellResult(ctx context.Context, run reeve.Run, c Call) error {
	asked, err := c.RequestInfo()
	if err != nil {
		return err
	}
	info, err := c.Result.ResultInfo()
	if err != nil {
		return err
	}
	if run.Reason != reeve.ReasonUser || asked.Via != reeve.ViaRun || asked.Ref == "" {
		return nil
	}
	key, f := ResultFrame(asked.Ref, asked.Tool, reeve.Result{CallID: c.Operation.CallID, OperationID: c.Operation.ID,
		Content: c.Result.Content, IsError: info.Status == "error", Code: info.Code,
		Message: info.Message, Spent: info.Spent})
	f.TurnID, f.AgentID = run.ID, run.AgentID
	return t.AppendLast(ctx, run.SessionID, run.ID+":"+key, f)
}

// tellResults tells those results of a turn that its brain has not: it was not there when they came, and does not come
// back. Of a call that was told to begin, and that nobody recorded before the turn was cancelled or failed, it tells
// so: none can be any more.
func (t ChatTx) tellResults(ctx context.Context, run reeve.Run) error {
	begun, err := t.begun(ctx, run)
	if err != nil {
		return err
	}
	answers, err := all(ctx, t.Snap, value[string], `SELECT id FROM messages WHERE run_id = $2 AND run_id <> '' AND kind = 'thought'
		AND workspace_id || '' = $1 ORDER BY id`, run.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	made, err := all(ctx, t.Snap, scanCall, `SELECT `+callColumns+` FROM calls WHERE run_id = $2 AND run_id <> ''
		AND workspace_id || '' = $1 ORDER BY id`, run.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	for _, c := range made {
		asked, err := c.RequestInfo()
		if err != nil {
			return err
		}
		answer := "" // of the model, that wanted the call
		if n, _ := slices.BinarySearch(answers, c.Operation.CallID); n > 0 {
			answer = answers[n-1]
		}
		begun = slices.DeleteFunc(begun, func(f reeve.Frame) bool {
			return f.MessageID == answer &&
				f.ToolCallID == asked.Ref
		})
		if c.Result != nil {
			if err := t.tellResult(ctx, run, c); err != nil {
				return err
			}
		}
	}
	return t.tellUnmade(ctx, run, begun)
}

// calls begins the keys of frames that tell of a call that it begins.
const calls = "call:"

// CallKey is the key by which clients are told once, of a turn, that a call begins: one of the n-th answer of its
// model, by the model's own id.
func CallKey(n int, id string) string { return fmt.Sprint(calls, n, ":", id) }

// begun lists the calls of a turn that its clients were told to begin. The client of one that is completed makes those
// itself that are left.
func (s Chat) begun(ctx context.Context, run reeve.Run) ([]reeve.Frame, error) {
	if run.State == reeve.RunCompleted {
		return nil, nil
	}
	return all(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND frame_key >= $2 AND frame_key < $3`,
		run.SessionID, run.ID+":"+calls, run.ID+":"+calls+"~")
}

func (t ChatTx) tellUnmade(ctx context.Context, run reeve.Run, begun []reeve.Frame) error {
	slices.SortFunc(begun, func(a, b reeve.Frame) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, c := range begun {
		f := reeve.Frame{Type: reeve.FrameResult, TurnID: run.ID, AgentID: run.AgentID, ToolCallID: c.ToolCallID,
			Tool: c.Tool, Content: run.DescribeEnd() + " before its outcome came", IsError: true, Code: reeve.Canceled}
		if err := t.AppendLast(ctx, run.SessionID, fmt.Sprint(run.ID, ":unmade:", c.Seq), f); err != nil {
			return err
		}
	}
	return nil
}

// AppendEnd keeps that a turn has ended, and how, behind what its calls came to. Of a run that is no turn nobody is
// told. One that its brain completed has told all, unless calls of it are pending.
func (t ChatTx) AppendEnd(ctx context.Context, run reeve.Run) error {
	if run.Reason != reeve.ReasonUser || !run.State.Final() {
		return nil
	}
	if run.State != reeve.RunCompleted || run.Pending > 0 {
		if err := first(t.LockConversation(ctx, run.SessionID), t.tellResults(ctx, run)); err != nil {
			return err
		}
	}
	return t.AppendLast(ctx, run.SessionID, "complete:"+run.ID, reeve.Frame{Type: reeve.FrameComplete, TurnID: run.ID,
		AgentID: run.AgentID, State: run.State, Code: run.Code,
		Message: run.Message, Spent: &run.Spent})
}

const selectFrame = `SELECT conversation_id, n, body, created_at FROM frames `

func scanFrame(r scanner) (f reeve.Frame, err error) {
	var n, at int64
	var conversation, body string
	if err = r.Scan(&conversation, &n, &body, &at); err == nil {
		err = decode("body", body, &f)
	}
	if err != nil {
		return f, corrupt("frames", conversation+"/"+strconv.FormatInt(n, 10), err)
	}
	f.Seq = n * FrameStep
	when := reeve.FromMillis(at)
	f.At = &when
	return f, nil
}

// ListFrames reads the kept frames of a conversation after a sequence number, in order.
func (s Chat) ListFrames(ctx context.Context, conversation string, after int64, limit int) ([]reeve.Frame, error) {
	return all(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND n > $2 ORDER BY n LIMIT $3`,
		conversation, after/FrameStep, limit)
}

// LastFrame is the sequence number of the last kept frame; 0 means that there is none.
func (s Chat) LastFrame(ctx context.Context, conversation string) (int64, error) {
	n, _, err := one(ctx, s.Snap, value[int64], `SELECT COALESCE(max(n), 0) FROM frames WHERE conversation_id = $1`,
		conversation)
	return n * FrameStep, err
}

// FrameNumber is the sequence number of the frame that was kept under a key; false means that there is none.
func (s Chat) FrameNumber(ctx context.Context, conversation, key string) (int64, bool, error) {
	n, ok, err := one(ctx, s.Snap, value[int64], `SELECT n FROM frames WHERE conversation_id = $1 AND frame_key = $2`,
		conversation, key)
	return n * FrameStep, ok, err
}

// LastFrames gives the sequence numbers of the last kept frames of conversations, 0 for one that has none.
func (s Chat) LastFrames(ctx context.Context, conversations []string) (map[string]int64, error) {
	type last struct {
		id string
		n  int64
	}
	list, err := among(ctx, s.Snap, func(r scanner) (l last, err error) { return l, r.Scan(&l.id, &l.n) },
		`SELECT c.id, COALESCE((SELECT max(n) FROM frames f WHERE f.conversation_id = c.id), 0) FROM conversations c WHERE c.id IN (?)`, conversations)
	found := make(map[string]int64, len(list))
	for _, l := range list {
		found[l.id] = l.n * FrameStep
	}
	return found, err
}
