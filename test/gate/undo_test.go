package gate_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An undo restores the permissions of files and folders, except setuid and setgid.
func TestO03_UndoRestoresPermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, "- {text: hello}\n")
	h.Agent("clerk", "file_write", "file_edit", "file_delete", "file_restore")
	shared := filepath.Join(dir, "workspaces", "default", "shared")
	made := map[string]fs.FileMode{"d/644": 0o644, "d/664": 0o664, "d/755": 0o755, "d/600": 0o600, "d/440": 0o440,
		"d/sub/751": 0o751, "d/sub/suid": 0o755 | fs.ModeSetuid,
		"d/sub": 0o555, "d": 0o775, "d/empty": 0o750}
	for name, mode := range made {
		if name = filepath.Join(shared, name); mode.Perm() == 0o555 || mode.Perm() == 0o775 || mode.Perm() == 0o750 {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(shared, "d/empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	chmod := func(name string, mode fs.FileMode) {
		if err := os.Chmod(filepath.Join(shared, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	see := func(when string) {
		t.Helper()
		for name, mode := range made {
			info, err := os.Lstat(filepath.Join(shared, name))
			if err != nil || info.Mode().Perm() != mode.Perm() {
				t.Fatalf("%s, %s: %v, %v, want %o", when, name, info, err, mode.Perm())
			}
		}
	}
	for name, mode := range made {
		chmod(name, mode)
	}
	chmod("d/sub", 0o755) // until nothing more is changed in it
	made["d/sub"] = 0o755
	see("at first")
	call := func(tool string, args any) *reeve.Undo {
		t.Helper()
		res := h.Call("clerk", tool, args)
		if res.IsError || res.Undo == nil {
			t.Fatalf("%s %v: %+v", tool, args, res)
		}
		return res.Undo
	}
	undo := func(u *reeve.Undo) *reeve.Undo { t.Helper(); return call(u.Tool, u.Args) }
	for name, mode := range made {
		path := "/shared/" + name
		u := call("file_delete", kit.Object{"path": path, "recursive": true})
		again := undo(u)
		see("after the deletion of " + name + " is undone")
		undo(undo(again))
		see("after that is undone and done again: " + name)
		if strings.HasSuffix(name, "empty") || name == "d" || name == "d/sub" {
			continue
		}
		u = call("file_write", kit.Object{"path": path, "content": fmt.Sprint("new ", mode), "overwrite": true})
		see("after " + name + " was written")
		if mode != 0o600 { // which needs no mention
			chmod(name, 0o640|mode.Perm()&0o111)
		}
		undo(u)
		see("after the write of " + name + " is undone")
		u = call("file_edit", kit.Object{"path": path, "old": "one", "new": "two"})
		undo(u)
		see("after the edit of " + name + " is undone")
	}
	info, err := os.Lstat(filepath.Join(shared, "d/sub/suid"))
	if err != nil || info.Mode()&fs.ModeSetuid != 0 {
		t.Errorf("it runs as its owner again: %v, %v", info.Mode(), err)
	}
	// A folder that is closed to its owner can be filled again.
	chmod("d/sub", 0o555)
	made["d/sub"] = 0o555
	u := call("file_delete", kit.Object{"path": "/shared/d", "recursive": true})
	undo(u)
	see("after the deletion of a closed folder is undone")
	chmod("d/sub", 0o755) // so that it can be removed
	// An undo that was recorded before says nothing of permissions, and does what it did.
	u = call("file_delete", kit.Object{"path": "/shared/d/644"})
	call(u.Tool, kit.Object{"path": "/shared/d/644", "hash": reeve.Hash([]byte("one")), "expect": "absent"})
	if info, err := os.Lstat(filepath.Join(shared, "d/644")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if r := h.Do("POST", "/api/agents/clerk/calls",
		kit.Object{"tool": "file_restore", "args": kit.Object{"path": "/shared/x", "hash": reeve.Hash([]byte("one")),
			"mode": "4755"}}); r.Status == 200 {
		t.Errorf("%s", r.Body)
	}
}

// undoAgent is an agent that writes a file and whose undos have a policy.
type undoAgent struct {
	*reevetest.Host
	agent reeve.Agent
}

func newUndoAgent(t *testing.T) *undoAgent {
	h := reevetest.Start(t)
	return &undoAgent{h, h.Agent("a", "file_write", "file_read", "file_restore")}
}

func (u *undoAgent) setPolicy(restore string) {
	u.T.Helper()
	u.Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_restore": restore}}})
}

func (u *undoAgent) write(content string) (operation string) {
	u.T.Helper()
	return u.Call("a", "file_write", kit.Object{"path": "/shared/x.txt", "content": content, "overwrite": true}).
		OperationID
}

func (u *undoAgent) undo(operation string) (res reeve.Result) {
	u.T.Helper()
	u.Do("POST", "/api/operations/"+operation+"/undo", nil).Decode(u.T, &res)
	return res
}

// decide accepts or rejects a proposal and waits until it is applied.
func (u *undoAgent) decide(proposal, word string) (p reeve.Proposal) {
	u.T.Helper()
	u.Want(http.StatusOK, nil, "POST", "/api/proposals/"+proposal+"/"+word, kit.Object{})
	u.RunUntilIdle(u.T.Context())
	u.Want(http.StatusOK, &p, "GET", "/api/proposals/"+proposal, nil)
	return p
}

func (u *undoAgent) checkContent(want string) {
	u.T.Helper()
	if b, err := os.ReadFile(filepath.Join(u.Dir(), "workspaces/default/shared/x.txt")); err != nil ||
		string(b) != want {
		u.T.Errorf("the file holds %q, and not %q: %v", b, want, err)
	}
}

// An undo that is only proposed reports what became of the proposal. If it was not applied, the undo can be requested
// again.
func TestO03_ProposedUndo(t *testing.T) {
	t.Parallel()
	u := newUndoAgent(t)
	u.setPolicy("propose")
	u.write("one")
	op := u.write("two")
	first := u.undo(op)
	if again := u.undo(op); first.State != reeve.ProposedOp || again.OperationID != first.OperationID ||
		strings.Contains(again.Content, "Since then") {
		t.Fatalf("it waits: %+v, %+v", first, again)
	}
	u.write("three")
	if p := u.decide(first.ProposalID, "accept"); p.State != reeve.ProposalStale {
		t.Fatalf("accepted when the file was another: %+v", p)
	}
	u.write("two")
	second := u.undo(op)
	if second.State != reeve.ProposedOp || second.Replayed || second.ProposalID == first.ProposalID {
		t.Fatalf("asked for again: %+v", second)
	}
	if p := u.decide(second.ProposalID, "reject"); p.State != reeve.ProposalRejected {
		t.Fatalf("rejected: %+v", p)
	}
	third := u.undo(op)
	if third.State != reeve.ProposedOp || third.Replayed || third.ProposalID == second.ProposalID {
		t.Errorf("after a rejection: %+v", third)
	}
	if p := u.decide(third.ProposalID, "accept"); p.State != reeve.ProposalApplied {
		t.Fatalf("accepted: %+v", p)
	}
	u.checkContent("one")
	// the same, which is done by now
	u.Want(http.StatusOK, nil, "POST", "/api/proposals/"+second.ProposalID+"/reopen", kit.Object{})
	if p := u.decide(second.ProposalID, "accept"); p.State != reeve.ProposalStale {
		t.Fatalf("reopened and accepted: %+v", p)
	}
	u.checkContent("one")
	if done := u.undo(op); !done.Replayed || done.ProposalID != third.ProposalID ||
		!strings.Contains(done.Content, "Since then: owner accepted it on ") ||
		!strings.Contains(done.Content, "applied as operation op_") {
		t.Errorf("it is done: %+v", done)
	}
	u.write("two")
	next := u.write("four")
	u.decide(u.undo(next).ProposalID, "reject")
	u.setPolicy("allow")
	if res := u.undo(next); res.State != reeve.Committed || res.Replayed {
		t.Errorf("rejected once, and allowed by now: %+v", res)
	}
	u.checkContent("two")
}

// Undoing a proposal is refused. The error says what became of it and which operation can be undone.
func TestO03_ProposalCannotBeUndone(t *testing.T) {
	t.Parallel()
	u := newUndoAgent(t)
	u.write("one")
	u.Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_write": "propose"}}})
	propose := func(content string) reeve.Result {
		t.Helper()
		return u.Call("a", "file_write", kit.Object{"path": "/shared/x.txt", "content": content, "overwrite": true})
	}
	told := func(operation string, words ...string) {
		t.Helper()
		var p api.Problem
		r := u.Do("POST", "/api/operations/"+operation+"/undo", nil)
		r.Decode(t, &p)
		for _, w := range words {
			if r.Status != http.StatusConflict || p.Code != reeve.Conflict || !strings.Contains(p.Detail+" / "+p.Hint,
				w) {
				t.Errorf("%q is not told: %s", w, r.Body)
			}
		}
	}
	no, yes := propose("no"), propose("two")
	told(no.OperationID, no.ProposalID, "waits for a person", "reeve proposals reject "+no.ProposalID)
	u.decide(no.ProposalID, "reject")
	told(no.OperationID, "owner rejected it", "nothing was applied")
	applied := u.decide(yes.ProposalID, "accept").OperationID
	told(yes.OperationID, yes.ProposalID, "owner accepted it", "reeve operations undo "+applied)
	u.checkContent("two")
	if res := u.undo(applied); res.State != reeve.Committed {
		t.Errorf("the operation that was named: %+v", res)
	}
	u.checkContent("one")
}

// A repeated key reports the state of the undo and requests no other.
func TestO03_UndoWithAKey(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		u := &undoAgent{h, h.Agent("a", "file_write", "file_read", "file_restore")}
		u.write("one")
		op := u.write("two")
		undo := func(key string, status int) (res reeve.Result) {
			t.Helper()
			r := u.Do("POST", "/api/operations/"+op+"/undo", nil, "Idempotency-Key", key)
			if r.Decode(t, &res); r.Status != status {
				t.Errorf("key %s: status %d, want %d: %s", key, r.Status, status, r.Body)
			}
			return res
		}
		u.setPolicy("ask")
		asked := undo("k1", http.StatusAccepted)
		if again := undo("k1", http.StatusAccepted); !again.Replayed || again.ApprovalID != asked.ApprovalID ||
			again.State != reeve.Parked {
			t.Errorf("while it waits: %+v", again)
		}
		u.Want(http.StatusOK, nil, "POST", "/api/approvals/"+asked.ApprovalID+"/decision",
			kit.Object{"decision": "deny", "comment": "keep it"})
		for range 2 {
			if again := undo("k1", http.StatusOK); again.OperationID != asked.OperationID ||
				again.State != reeve.DeniedOp || !again.IsError || again.Code != reeve.Denied ||
				!strings.Contains(again.Message, "keep it") {
				t.Errorf("after it was denied: %+v", again)
			}
		}
		next := undo("k2", http.StatusAccepted)
		if next.OperationID == asked.OperationID || next.ApprovalID == "" {
			t.Fatalf("with another key: %+v", next)
		}
		u.Want(http.StatusOK, nil, "POST", "/api/approvals/"+next.ApprovalID+"/decision",
			kit.Object{"decision": "deny"})
		u.setPolicy("propose")
		item := undo("k3", http.StatusAccepted)
		u.decide(item.ProposalID, "accept")
		u.checkContent("one")
		if again := undo("k3", http.StatusAccepted); again.ProposalID != item.ProposalID ||
			!strings.Contains(again.Content, "applied as operation op_") {
			t.Errorf("after it was applied: %+v", again)
		}
	})
}

// After an undo is undone, the first change is in effect again and can be undone again, also with proposals.
func TestO03_UndoneUndo(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allow", "propose"} {
		t.Run(policy, func(t *testing.T) {
			u := newUndoAgent(t)
			u.setPolicy(policy)
			take := func(operation, want string) string {
				t.Helper()
				res := u.undo(operation)
				if res.Replayed {
					t.Errorf("not made, but told again: %+v", res)
				}
				if res.ProposalID != "" {
					res.OperationID = u.decide(res.ProposalID, "accept").OperationID
				}
				u.checkContent(want)
				return res.OperationID
			}
			u.write("one")
			op := u.write("two")
			back := take(op, "one")
			forth := take(back, "two")
			again := take(op, "one")
			if res := u.undo(op); !res.Replayed {
				t.Errorf("made twice: %+v", res)
			}
			take(again, "two")
			if res := u.undo(back); !res.Replayed {
				t.Errorf("what it took back stands: %+v", res)
			}
			take(forth, "one")
		})
	}
}

// Ratings belong to a user. An undo changes the ratings of the user of the operation, whoever requests it.
func TestL17_UndoBelongsToItsUser(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	ann, bob := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "bob", "member")
	var gym reeve.Category
	h.Want(http.StatusCreated, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
	a := h.Agent("a", "create_or_update_rating")
	kit.UpdateAgent(h, a, kit.Object{"kind": "planner", "categories": []string{gym.ID}})
	var task reeve.Task
	h.Want(http.StatusCreated, &task, "POST", "/api/journal/tasks", kit.Object{"title": "Squat", "category_id": gym.ID})
	rate := func(energy int, note string) kit.Object {
		return kit.Object{"target_kind": "task", "target_id": task.ID, "scores": kit.Object{"energy": energy},
			"note": note}
	}
	h.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", rate(3, "mine"), ann...)
	op := h.Call(a.ID, "create_or_update_rating", rate(20, "hers"), ann...).OperationID
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op+"/undo", nil, bob...)
	var hers reeve.Rating
	h.Want(http.StatusOK, &hers, "GET", "/api/journal/ratings/task/"+task.ID, nil, ann...)
	if hers.Scores["energy"] != 3 || hers.Note != "mine" {
		t.Errorf("ann's is %+v", hers)
	}
	h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil, bob...)
	if r := h.Do("GET", "/api/agents/a/messages", nil, ann...); !strings.Contains(string(r.Body), "undo of "+op+
		", requested by bob") {
		t.Errorf("who asked is not told: %s", r.Body)
	}
}

// An undo that was denied or never approved did nothing and can be requested again. An executed undo happens once.
func TestO03_DeniedUndoCanBeRequestedAgain(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_write", "file_read", "file_delete")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_delete": "ask"}}})
	op := h.Call(a.ID, "file_write", kit.Object{"path": "/shared/x.txt", "content": "1"}).OperationID
	undo := func() (res reeve.Result) {
		t.Helper()
		h.Do("POST", "/api/operations/"+op+"/undo", nil).Decode(t, &res)
		return res
	}
	first := undo()
	if again := undo(); first.State != reeve.Parked || again.OperationID != first.OperationID {
		t.Fatalf("it waits: %+v, %+v", first, again)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+first.ApprovalID+"/decision", kit.Object{"decision": "deny"})
	second := undo()
	if second.State != reeve.Parked || second.OperationID == first.OperationID || second.Replayed {
		t.Fatalf("asked again: %+v", second)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+second.ApprovalID+"/decision", kit.Object{"decision": "deny"})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_delete": "allow"}}})
	third := undo()
	if third.State != reeve.Committed || third.Replayed {
		t.Fatalf("allowed by now: %+v", third)
	}
	if again := undo(); again.OperationID != third.OperationID || !again.Replayed {
		t.Errorf("done twice: %+v", again)
	}
}

// An undo whose approval expired can be requested again at once. A request with the old key reports that it expired.
func TestO03_ExpiredUndoCanBeRequestedAgain(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.ApprovalTTL = host.Duration(time.Second) // the minimum
	h := reevetest.StartWith(t, cfg)
	u := &undoAgent{h, h.Agent("a", "file_write", "file_read", "file_restore")}
	u.setPolicy("ask")
	u.write("1")
	op := u.write("2")
	undo := func(status int) (res reeve.Result) {
		t.Helper()
		r := u.Do("POST", "/api/operations/"+op+"/undo", nil, "Idempotency-Key", "k")
		if r.Decode(t, &res); r.Status != status {
			t.Errorf("status %d, want %d: %s", r.Status, status, r.Body)
		}
		return res
	}
	first := undo(http.StatusAccepted)
	kit.Eventually(t, "the approval's time to be over", func() bool {
		var v reeve.Approval
		u.Want(http.StatusOK, &v, "GET", "/api/approvals/"+first.ApprovalID, nil)
		return v.State == reeve.ApprovalExpired
	})
	if v := undo(http.StatusOK); v.OperationID != first.OperationID || v.State != reeve.DeniedOp ||
		v.Code != reeve.Denied || !strings.Contains(v.Message, "expired") {
		t.Errorf("with its key: %+v", v)
	}
	if v := u.undo(op); v.State != reeve.Parked || v.OperationID == first.OperationID {
		t.Errorf("it was not asked for anew: %+v", v)
	}
}

// Undos of two people with equal arguments are two items, each for the operation of its person.
func TestL17_UndosOfTwoPeopleAreTwo(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, bob := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "bob", "member")
		a, task := newRater(h)
		pin := func(day string, who []string) string {
			t.Helper()
			return h.Call(a.ID, "pin_day_plan_tasks", kit.Object{"plan_date": day, "task_ids": []string{task}}, who...).
				OperationID
		}
		pinned := func(day string, who []string) int {
			t.Helper()
			var p reeve.DayPlan
			h.Want(http.StatusOK, &p, "GET", "/api/journal/plans/"+day, nil, who...)
			return len(p.Pinned)
		}
		undo := func(op string, who []string) (res reeve.Result) {
			t.Helper()
			h.Want(http.StatusAccepted, &res, "POST", "/api/operations/"+op+"/undo", nil, who...)
			return res
		}
		for word, left := range map[string]int{"accept": 0, "reject": 1} {
			kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{}})
			day := map[string]string{"accept": "2026-03-02", "reject": "2026-03-03"}[word]
			hers, his := pin(day, ann), pin(day, bob)
			kit.UpdateAgent(h, a, kit.Object{
				"policy": kit.Object{"tools": kit.Object{"pin_day_plan_tasks": "propose"}}})
			first, second := undo(hers, ann), undo(his, bob)
			if first.ProposalID == second.ProposalID {
				t.Fatalf("one item for two undos: %+v", second)
			}
			kit.DecideProposal(h, first.ProposalID, word, "")
			h.RunUntilIdle(t.Context())
			if again := undo(his, bob); pinned(day, ann) != left || pinned(day, bob) != 1 ||
				again.ProposalID != second.ProposalID || strings.Contains(again.Content, "Since then") {
				t.Errorf("%s hers: %d and %d pins, and he is told %+v", word, pinned(day, ann), pinned(day, bob), again)
			}
			kit.DecideProposal(h, second.ProposalID, "accept", "")
			h.RunUntilIdle(t.Context())
			if pinned(day, bob) != 0 || pinned(day, ann) != left {
				t.Errorf("his was accepted: %d and %d pins", pinned(day, ann), pinned(day, bob))
			}
		}
		kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{}})
		one := pin("2026-03-04", ann)
		h.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-03-04/pins", reeve.PinChange{Unpin: []string{task}},
			ann...)
		two := pin("2026-03-04", ann)
		kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tools": kit.Object{"pin_day_plan_tasks": "propose"}}})
		if first, second := undo(one, ann), undo(two, ann); first.ProposalID == second.ProposalID {
			t.Errorf("one item for undos of two operations: %+v", second)
		}
	})
}
