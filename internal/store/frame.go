package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"reeve"
)

// FrameStep is the distance between the sequence numbers of two stored frames. The numbers in between are for token
// frames, which are not stored.
const FrameStep = 1_000_000

// AppendFrame stores a frame of a turn that is in progress. It does nothing if the turn has ended, or if a frame with
// the same key exists. It locks the conversation first, so that sequence numbers follow the order of commits.
func (t ChatTx) AppendFrame(ctx context.Context, conversation, key string, f reeve.Frame) error {
	return t.appendFrame(ctx, conversation, key, f,
		` AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = $3 AND r.state NOT IN ('running', 'parked'))`)
}

// AppendFinalFrame is like AppendFrame, but also stores frames of a turn that has ended: the end itself and the results
// of its calls.
func (t ChatTx) AppendFinalFrame(ctx context.Context, conversation, key string, f reeve.Frame) error {
	return t.appendFrame(ctx, conversation, key, f, "")
}

func (t ChatTx) appendFrame(ctx context.Context, conversation, key string, f reeve.Frame, condition string) error {
	f.Seq, f.ConversationID = 0, ""
	if err := t.LockConversation(ctx, conversation); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO frames (conversation_id, n, frame_key, turn_id, body, created_at)
		SELECT c.id, COALESCE((SELECT max(n) FROM frames WHERE conversation_id = $1), 0) + 1, $2, $3, $4, $5
		FROM conversations c WHERE c.id = $1`+condition+`
		ON CONFLICT (conversation_id, frame_key) DO NOTHING`, conversation, key, f.TurnID,
		reeve.SanitizeText(encodeJSON(f)), reeve.Millis(t.now))
}

// LockConversation keeps others from appending frames to a conversation until the transaction ends. A turn that has not
// ended therefore does not end meanwhile.
func (t ChatTx) LockConversation(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE conversations SET updated_at = $2 WHERE id = $1`, id, reeve.Millis(t.now))
}

// mediaKeyPrefix returns the prefix of the keys of frames that send media with this hash.
func mediaKeyPrefix(hash string) string { return "media:" + hash + ":" }

// SendMedia stores a frame that sends its attachment to a conversation.
func (t ChatTx) SendMedia(ctx context.Context, conversation, operation string, f reeve.Frame) error {
	f.Type = reeve.FrameMedia
	return t.AppendFrame(ctx, conversation, mediaKeyPrefix(f.Attachments[0].Hash)+operation, f)
}

// SentMedia returns the attachment with this hash that was last sent to a conversation, on its own or in a report.
func (s Chat) SentMedia(ctx context.Context, conversation, hash string) (reeve.Attachment, error) {
	list, err := queryAll(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND frame_key >= $2
		AND frame_key < $3
		ORDER BY frame_key DESC LIMIT 1`, conversation, mediaKeyPrefix(hash), mediaKeyPrefix(hash+"~"))
	if err != nil {
		return reeve.Attachment{}, err
	}
	if len(list) == 0 {
		return s.reportedMedia(ctx, conversation, hash)
	}
	return list[0].Attachments[0], nil
}

// ResultFrame returns the frame of a call's result and its key. ref is the model's id of the call.
func ResultFrame(ref, tool string, r reeve.Result) (key string, f reeve.Frame) {
	return "result:" + r.CallID, reeve.Frame{Type: reeve.FrameResult, MessageID: r.CallID, ToolCallID: ref, Tool: tool,
		Content: cmp.Or(r.Content, r.Message), IsError: r.IsError, Code: r.Code,
		OperationID: r.OperationID, Spent: &r.Spent}
}

// appendResult stores the frame of a call's result, unless the brain has stored it. It ignores calls that were not made
// by a turn's brain, because their start was never announced.
func (t ChatTx) appendResult(ctx context.Context, run reeve.Run, c Call) error {
	request, err := c.RequestInfo()
	if err != nil {
		return err
	}
	info, err := c.Result.ResultInfo()
	if err != nil {
		return err
	}
	if run.Reason != reeve.ReasonUser || request.Via != reeve.ViaRun || request.Ref == "" {
		return nil
	}
	key, f := ResultFrame(request.Ref, request.Tool, reeve.Result{CallID: c.Operation.CallID,
		OperationID: c.Operation.ID,
		Content:     c.Result.Content, IsError: info.Status == "error", Code: info.Code,
		Message: info.Message, Spent: info.Spent})
	f.TurnID, f.AgentID = run.ID, run.AgentID
	return t.AppendFinalFrame(ctx, run.SessionID, run.ID+":"+key, f)
}

// appendMissingResults stores the results of a turn's calls that arrived while its brain was not running. For a call
// whose start was announced, but which was not recorded before the turn ended, it stores an error result.
func (t ChatTx) appendMissingResults(ctx context.Context, run reeve.Run) error {
	announced, err := t.announcedCalls(ctx, run)
	if err != nil {
		return err
	}
	answers, err := queryAll(ctx, t.Snap, scanValue[string], `SELECT id FROM messages WHERE run_id = $2 AND run_id <> ''
		AND kind = 'thought'
		AND workspace_id || '' = $1 ORDER BY id`, run.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	made, err := queryAll(ctx, t.Snap, scanCall, `SELECT `+callColumns+` FROM calls WHERE run_id = $2 AND run_id <> ''
		AND workspace_id || '' = $1 ORDER BY id`, run.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	for _, c := range made {
		request, err := c.RequestInfo()
		if err != nil {
			return err
		}
		answer := "" // the model's message that contains the call
		if n, _ := slices.BinarySearch(answers, c.Operation.CallID); n > 0 {
			answer = answers[n-1]
		}
		announced = slices.DeleteFunc(announced, func(f reeve.Frame) bool {
			return f.MessageID == answer && f.ToolCallID == request.Ref
		})
		if c.Result != nil {
			if err := t.appendResult(ctx, run, c); err != nil {
				return err
			}
		}
	}
	return t.appendUnmadeCalls(ctx, run, announced)
}

// callKeyPrefix is the prefix of the keys of frames that announce the start of a call.
const callKeyPrefix = "call:"

// CallKey returns the key of the frame that announces the start of a call: the call with the model's id in the n-th
// message of the model.
func CallKey(n int, id string) string { return fmt.Sprint(callKeyPrefix, n, ":", id) }

// announcedCalls returns the frames that announced the start of a turn's calls. It returns none for a completed turn,
// because the client makes the remaining calls of such a turn.
func (s Chat) announcedCalls(ctx context.Context, run reeve.Run) ([]reeve.Frame, error) {
	if run.State == reeve.RunCompleted {
		return nil, nil
	}
	return queryAll(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND frame_key >= $2
		AND frame_key < $3`,
		run.SessionID, run.ID+":"+callKeyPrefix, run.ID+":"+callKeyPrefix+"~")
}

// appendUnmadeCalls stores an error result for each announced call that was not recorded.
func (t ChatTx) appendUnmadeCalls(ctx context.Context, run reeve.Run, announced []reeve.Frame) error {
	slices.SortFunc(announced, func(a, b reeve.Frame) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, c := range announced {
		f := reeve.Frame{Type: reeve.FrameResult, TurnID: run.ID, AgentID: run.AgentID, ToolCallID: c.ToolCallID,
			Tool: c.Tool, Content: run.DescribeEnd() + " before its outcome came", IsError: true, Code: reeve.Canceled}
		if err := t.AppendFinalFrame(ctx, run.SessionID, fmt.Sprint(run.ID, ":unmade:", c.Seq), f); err != nil {
			return err
		}
	}
	return nil
}

// AppendEnd stores the missing results of a turn and then its end. It ignores runs that are not turns. A turn that its
// brain completed has no missing results unless calls are pending.
func (t ChatTx) AppendEnd(ctx context.Context, run reeve.Run) error {
	if run.Reason != reeve.ReasonUser || !run.State.IsFinal() {
		return nil
	}
	if run.State != reeve.RunCompleted || run.PendingCalls > 0 {
		if err := firstError(t.LockConversation(ctx, run.SessionID), t.appendMissingResults(ctx, run)); err != nil {
			return err
		}
	}
	return t.AppendFinalFrame(ctx, run.SessionID, "complete:"+run.ID, reeve.Frame{Type: reeve.FrameComplete,
		TurnID:  run.ID,
		AgentID: run.AgentID, State: run.State, Code: run.Code,
		Message: run.Message, Spent: &run.Spent})
}

const selectFrame = `SELECT conversation_id, n, body, created_at FROM frames `

func scanFrame(r scanner) (f reeve.Frame, err error) {
	var n, at int64
	var conversation, body string
	if err = r.Scan(&conversation, &n, &body, &at); err == nil {
		err = decodeJSON("body", body, &f)
	}
	if err != nil {
		return f, corruptError("frames", conversation+"/"+strconv.FormatInt(n, 10), err)
	}
	f.Seq = n * FrameStep
	when := reeve.FromMillis(at)
	f.At = &when
	return f, nil
}

// ListFrames returns the stored frames of a conversation after a sequence number, in order.
func (s Chat) ListFrames(ctx context.Context, conversation string, after int64, limit int) ([]reeve.Frame, error) {
	return queryAll(ctx, s.Snap, scanFrame, selectFrame+`WHERE conversation_id = $1 AND n > $2 ORDER BY n LIMIT $3`,
		conversation, after/FrameStep, limit)
}

// LastFrame returns the sequence number of the last stored frame, or 0 if there is none.
func (s Chat) LastFrame(ctx context.Context, conversation string) (int64, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT COALESCE(max(n), 0) FROM frames
		WHERE conversation_id = $1`,
		conversation)
	return n * FrameStep, err
}

// FrameNumber returns the sequence number of the frame with a key. It returns false if there is none.
func (s Chat) FrameNumber(ctx context.Context, conversation, key string) (int64, bool, error) {
	n, ok, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT n FROM frames WHERE conversation_id = $1
		AND frame_key = $2`,
		conversation, key)
	return n * FrameStep, ok, err
}

// LastFrames returns the sequence number of the last stored frame of each conversation, or 0 for one without frames.
func (s Chat) LastFrames(ctx context.Context, conversations []string) (map[string]int64, error) {
	type last struct {
		id string
		n  int64
	}
	list, err := queryIn(ctx, s.Snap, func(r scanner) (l last, err error) { return l, r.Scan(&l.id, &l.n) },
		`SELECT c.id, COALESCE((SELECT max(n) FROM frames f WHERE f.conversation_id = c.id), 0) FROM conversations c
			WHERE c.id IN (?)`, conversations)
	found := make(map[string]int64, len(list))
	for _, l := range list {
		found[l.id] = l.n * FrameStep
	}
	return found, err
}
