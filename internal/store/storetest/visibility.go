package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// visibility tests what is private to a user. Every list has the entries a, which is private to ann, and b.
var visibility = map[string]func(*testing.T, *store.DB){
	"private calls": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for _, id := range []string{"a", "b", "c"} {
			update(t, db, func(tx *store.Tx) error {
				was := privateOperation(id)
				must(t, insertOperation(ctx, tx, was))
				is := was
				is.State = reeve.Unknown
				return tx.Ledger().TransitionOperation(ctx, was, is, nil)
			})
		}
		for viewer, want := range byViewer("c b a", "c b") {
			list := func(f store.OperationFilter) string {
				f.Limit = 9
				return joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Operation, error) {
					return l.ListOperations(ctx, ws, f)
				}), func(o reeve.Operation) string { return o.ID })
			}
			equal(t, list(store.OperationFilter{}), want, "%s: operations", viewer)
			equal(t, list(store.OperationFilter{Agent: "agt_one"}), want, "%s: operations of an agent", viewer)
			equal(t, list(store.OperationFilter{Run: "run_1"}), want, "%s: operations of a run", viewer)
			unknown := viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Operation, error) {
				return l.ListUnknown(ctx, ws, 9)
			})
			equal(t, len(unknown), len(strings.Fields(want)), "%s: unknown operations", viewer)
		}
		for viewer, want := range byViewer("<m_a m_a<m_b m_b<m_c", "<m_b m_b<m_c") {
			show := func(m reeve.Message) string { return m.PrevID + "<" + m.ID }
			equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Message, error) {
				return l.ListMessages(ctx, ws, "th", "", 9)
			}), show), want, "%s: thread", viewer)
			equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Message, error) {
				return l.ListRunMessages(ctx, ws, "run_1", "", 9)
			}), show), want, "%s: thread of a run", viewer)
			page := viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Message, error) {
				return l.ListMessages(ctx, ws, "th", "", 2)
			})
			equal(t, len(page), 2, "%s: page", viewer)
		}
		for viewer, want := range byViewer("", reeve.NotFound) {
			equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
				_, err := l.GetOperation(ctx, ws, "a")
				return err
			})), want, "%s: operation", viewer)
			equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
				_, err := l.GetCall(ctx, ws, "m_a")
				return err
			})), want, "%s: call", viewer)
		}
	},

	"private approvals": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for _, id := range []string{"a", "b"} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().InsertApproval(ctx, reeve.Approval{ID: id, WorkspaceID: ws, OperationID: id,
					State: reeve.ApprovalPending, ExpiresAt: reeve.Now().Add(time.Hour), PrivateTo: owners[id]})
			})
		}
		for viewer, want := range byViewer("b a", "b") {
			for _, state := range []reeve.ApprovalState{"", reeve.ApprovalPending} {
				equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Approval, error) {
					return l.ListApprovals(ctx, ws, state, "z", 9)
				}), approvalID), want, "%s: approvals", viewer)
			}
		}
		for viewer, want := range byViewer("", reeve.NotFound) {
			equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
				_, err := l.GetApproval(ctx, ws, "a")
				return err
			})), want, "%s: approval", viewer)
		}
	},

	"private proposals": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		insert := func(id, set string, ordinal int, privateTo string) {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().InsertProposal(ctx, reeve.Proposal{ID: id, WorkspaceID: ws, SetID: set,
					Ordinal: ordinal, Round: 1, AgentID: "agt_one", Tool: "echo", ArgsHash: id,
					State: reeve.ProposalPending, PrivateTo: privateTo})
			})
		}
		insert("a", "cs_1", 1, "ann") // the first item of a set with an item that everyone sees
		insert("b", "cs_1", 2, "")
		insert("c", "cs_2", 1, "ann")
		for viewer, want := range byViewer("c b a", "b") {
			equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Proposal, error) {
				return l.ListProposals(ctx, ws, store.ProposalFilter{State: reeve.ProposalPending, Limit: 9})
			}), func(p reeve.Proposal) string { return p.ID }), want, "%s: proposals", viewer)
		}
		for viewer, want := range byViewer("a b", "b") {
			equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.Proposal, error) {
				return l.ListChangeSetItems(ctx, ws, "cs_1", true, 0, 9)
			}), func(p reeve.Proposal) string { return p.ID }), want, "%s: items", viewer)
		}
		for viewer, want := range byViewer("cs_2:1 cs_1:2", "cs_1:1") {
			for _, pending := range []bool{true, false} {
				equal(t, joinIDs(viewAs(t, db, viewer, func(l store.Ledger) ([]reeve.ChangeSet, error) {
					list, _, err := l.ListChangeSets(ctx, ws, store.ChangeSetFilter{Pending: pending, Limit: 9})
					return list, err
				}), func(c reeve.ChangeSet) string {
					return fmt.Sprintf("%s:%d", c.ID, c.Counts[reeve.ProposalPending])
				}), want, "%s: change sets", viewer)
			}
		}
		for viewer, want := range byViewer("", reeve.NotFound) {
			equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
				_, err := l.GetProposal(ctx, ws, "a")
				return err
			})), want, "%s: proposal", viewer)
			equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
				_, err := l.GetChangeSet(ctx, ws, "cs_2")
				return err
			})), want, "%s: change set", viewer)
		}
	},

	"private outputs": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		put := func(text, privateTo string) {
			update(t, db, func(tx *store.Tx) error {
				_, err := tx.Ledger().PutOutput(ctx, ws, privateTo, []byte(text))
				return err
			})
		}
		check := func(text string, other reeve.Code) {
			t.Helper()
			for viewer, want := range byViewer("", other) {
				equal(t, reeve.CodeOf(errorAs(t, db, viewer, func(l store.Ledger) error {
					_, err := l.GetPayload(ctx, ws, store.OutputPayload, reeve.Hash([]byte(text)), 0, -1)
					return err
				})), want, "%s: output %s", viewer, text)
			}
		}
		put("mine", "ann")
		put("mine", "ann")
		update(t, db, func(tx *store.Tx) error { // the same bytes in a file are no output
			_, err := tx.Ledger().PutPayload(ctx, ws, store.UndoPayload, []byte("mine"))
			return err
		})
		check("mine", reeve.NotFound)
		put("ours", "ann")
		put("ours", "")
		check("ours", "")
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Ledger().PutPayload(ctx, ws, store.UndoPayload, []byte("file"))
			return err
		})
		put("file", "ann")
		check("file", reeve.NotFound)
	},

	"private rows are announced without ids": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		db.Announced()
		update(t, db, func(tx *store.Tx) error {
			for _, id := range []string{"a", "b"} {
				o, by := privateOperation(id), owners[id]
				if err := insertOperation(ctx, tx, o); err != nil {
					return err
				}
				is := o
				is.State = reeve.Prepared
				must(t, tx.Ledger().TransitionOperation(ctx, o, is, nil))
				a := reeve.Approval{ID: id, WorkspaceID: ws, State: reeve.ApprovalPending, PrivateTo: by}
				must(t, tx.Ledger().InsertApproval(ctx, a))
				must(t, tx.Ledger().TransitionApproval(ctx, a, reeve.ApprovalPending))
				p := reeve.Proposal{ID: id, WorkspaceID: ws, SetID: id, Ordinal: 1, Round: 1, ArgsHash: id,
					State: reeve.ProposalPending, PrivateTo: by}
				must(t, tx.Ledger().InsertProposal(ctx, p))
				must(t, tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending))
			}
			return nil
		})
		seen := map[string]int{}
		list, _ := db.TakeAnnounced()
		for _, v := range list {
			seen[v.ID]++
		}
		if seen["a"] != 0 || seen["b"] != 3 { // an operation, an approval and a proposal
			t.Errorf("got %v", list)
		}
	},
}

// owners has the user to whom the entries of visibility are private.
var owners = map[string]string{"a": "ann"}

// privateOperation returns a dispatched operation of run_1 in the thread th.
func privateOperation(id string) reeve.Operation {
	o := newOperation(id, reeve.Dispatched)
	o.CallID, o.ThreadID, o.RunID, o.PrivateTo = "m_"+id, "th", "run_1", owners[id]
	return o
}

// byViewer returns what each viewer sees: ann and an owner the first, others the second. An owner is "everyone".
func byViewer[T any](ann, others T) map[string]T {
	return map[string]T{"everyone": ann, "ann": ann, "ben": others, "": others}
}

// errorAs returns the error of f, which reads as a viewer.
func errorAs(t testing.TB, db *store.DB, viewer string, f func(store.Ledger) error) error {
	return db.View(t.Context(), func(s *store.Snap) error {
		if viewer == "everyone" {
			return f(s.Ledger())
		}
		return f(s.Ledger().VisibleTo(&viewer))
	})
}

// viewAs returns the result of f, which reads as a viewer.
func viewAs[T any](t testing.TB, db *store.DB, viewer string, f func(store.Ledger) (T, error)) T {
	t.Helper()
	var v T
	must(t, errorAs(t, db, viewer, func(l store.Ledger) (err error) {
		v, err = f(l)
		return err
	}))
	return v
}
