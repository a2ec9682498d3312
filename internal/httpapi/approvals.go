package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// maxInboxItems is the most entries of each kind in the inbox.
const maxInboxItems = 200

// approvalHandlers serves approvals and the inbox.
type approvalHandlers struct {
	db       *store.DB
	gate     *gate.Gate
	redactor viewRedactor
}

func (h *approvalHandlers) inbox(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.Inbox], error) {
	out := &body[api.Inbox]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = readInbox(ctx, snap, who); err == nil {
			err = h.redactor.redact(ctx, snap, who, out.Body.Approvals, out.Body.Proposals)
		}
		if err == nil {
			out.Body.Entries, err = listInboxEntries(ctx, snap, out.Body)
		}
		if err == nil {
			out.Body.Hold, err = snap.System().Hold(ctx)
		}
		if err != nil || len(out.Body.Unknown) == 0 {
			return err
		}
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		for i := 0; i < len(out.Body.Unknown) && err == nil; i++ {
			err = addArgs(ctx, snap, forCaller(redaction, who), &out.Body.Unknown[i])
		}
		return err
	})
}

// readInbox returns everything that waits for a person, up to maxInboxItems of each kind.
func readInbox(ctx context.Context, snap *store.Snap, who reeve.Principal) (in api.Inbox, err error) {
	const limit = maxInboxItems + 1 // one entry more than shown, to set More
	if in.Approvals, err = visibleLedger(snap, who).ListApprovals(ctx, who.Workspace, reeve.ApprovalPending, "",
		limit); err != nil {
		return in, err
	}
	if in.Unknown, err = visibleLedger(snap, who).ListUnknown(ctx, who.Workspace, limit); err != nil {
		return in, err
	}
	if in.Proposals, err = visibleLedger(snap, who).ListProposals(ctx, who.Workspace,
		store.ProposalFilter{State: reeve.ProposalPending, Limit: limit}); err != nil {
		return in, err
	}
	if in.Items, err = snap.Automations().WaitingItems(ctx, who.Workspace, limit); err != nil {
		return in, err
	}
	for i := range in.Items {
		if err = hideMessage(ctx, snap, who, in.Items[i].LastRun, &in.Items[i].Message); err != nil {
			return in, err
		}
	}
	if in.Questions, err = snap.Automations().ScriptJobsAwaitingAnswer(ctx, who.Workspace, visibleUser(who),
		limit); err != nil {
		return in, err
	}
	if in.Schedules, err = snap.Queue().ListFailedTimers(ctx, who.Workspace, visibleUser(who), limit); err != nil {
		return in, err
	}
	if in.Budgets, err = snap.Ledger().ListBudgets(ctx, who.Workspace); err != nil {
		return in, err
	}
	in.Budgets = slices.DeleteFunc(in.Budgets, func(b reeve.Budget) bool {
		return !b.IsExhausted() || strings.HasPrefix(b.Subject, "run:")
	})
	in.More = max(len(in.Approvals), len(in.Unknown), len(in.Proposals), len(in.Items), len(in.Questions),
		len(in.Schedules), len(in.Budgets)) > maxInboxItems
	in.Approvals, in.Unknown, in.Proposals = firstInbox(in.Approvals), firstInbox(in.Unknown), firstInbox(in.Proposals)
	in.Items, in.Questions = firstInbox(in.Items), firstInbox(in.Questions)
	in.Schedules, in.Budgets = firstInbox(in.Schedules), firstInbox(in.Budgets)
	in.Count = api.InboxCount{Approvals: len(in.Approvals), Unknown: len(in.Unknown), Proposals: len(in.Proposals),
		Items: len(in.Items), Questions: len(in.Questions), Schedules: len(in.Schedules), Budgets: len(in.Budgets),
		Total: in.Waiting(), More: in.More}
	return in, nil
}

// listInboxEntries returns the entries of an inbox in one form, the oldest first.
func listInboxEntries(ctx context.Context, snap *store.Snap, in api.Inbox) ([]api.InboxEntry, error) {
	list := make([]api.InboxEntry, 0, in.Waiting())
	add := func(kind, id, title, agent, set string, since time.Time) {
		list = append(list, api.InboxEntry{Kind: kind, ID: id, Title: title, AgentID: agent, SetID: set, Since: &since})
	}
	for _, v := range in.Approvals {
		add("approval", v.ID, v.Tool, v.AgentID, "", v.CreatedAt)
	}
	for _, v := range in.Unknown {
		add("unknown", v.ID, v.Tool, v.AgentID, "", v.CreatedAt)
	}
	for _, v := range in.Proposals {
		add("proposal", v.ID, v.Tool, v.AgentID, v.SetID, v.CreatedAt)
	}
	for _, v := range in.Items {
		add("item", v.ID, v.Title, v.AgentID, "", v.UpdatedAt)
	}
	for _, v := range in.Questions {
		add("question", v.ID, v.Question, v.AgentID, "", v.CreatedAt)
	}
	for _, v := range in.Schedules {
		add("schedule", v.ID, v.Name, v.AgentID, "", v.UpdatedAt)
	}
	slices.SortStableFunc(list, func(a, b api.InboxEntry) int { return a.Since.Compare(*b.Since) })
	for _, v := range in.Budgets {
		agent, _ := strings.CutPrefix(v.Subject, "agent:")
		if agent == v.Subject {
			agent = ""
		}
		list = append(list, api.InboxEntry{Kind: "budget", ID: v.Subject, Title: "budget exhausted", AgentID: agent})
	}
	ids := make([]string, 0, len(list))
	for _, v := range list {
		ids = append(ids, v.AgentID)
	}
	names, err := snap.Agents().AgentNames(ctx, ids)
	for i := range list {
		list[i].AgentName = names[list[i].AgentID]
	}
	return list, err
}

func (h *approvalHandlers) countInbox(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.InboxCount],
	error) {
	out := &body[api.InboxCount]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		in, err := readInbox(ctx, snap, who)
		out.Body = in.Count
		return err
	})
}

// firstInbox returns the first maxInboxItems entries of a list.
func firstInbox[T any](list []T) []T { return list[:min(len(list), maxInboxItems)] }

func (h *approvalHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	State reeve.ApprovalState `query:"state" enum:"pending,approved,denied,expired,lapsed,replaced"`
}) (*body[api.ApprovalList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ApprovalList]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body.Approvals, err = visibleLedger(snap, who).ListApprovals(ctx, who.Workspace, in.State, in.Cursor,
			in.Limit); err != nil {
			return err
		}
		return h.redactor.redact(ctx, snap, who, out.Body.Approvals, nil)
	})
	if n := len(out.Body.Approvals); n == in.Limit {
		out.Body.Next = out.Body.Approvals[n-1].ID
	}
	return out, err
}

func (h *approvalHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Approval], error) {
	out := &body[reeve.Approval]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		a, err := visibleLedger(snap, who).GetApproval(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body = a.AsOf(snap.Now())
		return h.redactor.redactOne(ctx, snap, who, &out.Body, nil)
	})
}

func (h *approvalHandlers) decide(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.DecisionRequest
}) (*body[reeve.Approval], error) {
	a, err := h.decideOne(ctx, who, in.ID, in.Body)
	return &body[reeve.Approval]{a}, err
}

// decideOne decides on an approval and returns it redacted for the caller.
func (h *approvalHandlers) decideOne(ctx context.Context, who reeve.Principal, id string,
	d api.DecisionRequest) (reeve.Approval, error) {
	a, err := decideApproval(ctx, h.db, h.gate, who, id, d)
	if err == nil {
		err = h.redactor.decided(ctx, who, &a, nil)
	}
	return a, err
}

// decideApproval decides on an approval that the caller sees.
func decideApproval(ctx context.Context, db *store.DB, g *gate.Gate, who reeve.Principal, id string,
	d api.DecisionRequest) (reeve.Approval, error) {
	if err := checkApproval(ctx, db, who, id); err != nil {
		return reeve.Approval{}, err
	}
	return g.Inbox.DecideApproval(ctx, who.Workspace, id, d.Decision == "approve", who.User, d.Comment, d.Shown)
}

func (h *approvalHandlers) edit(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.EditRequest
}) (*body[reeve.Approval], error) {
	if err := checkApproval(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	a, err := h.gate.Inbox.EditApproval(ctx, who.Workspace, in.ID, gate.Edit{Args: in.Body.Args, By: who.User,
		Comment: in.Body.Comment, Shown: in.Body.Shown})
	if err == nil {
		err = h.redactor.decided(ctx, who, &a, nil)
	}
	return &body[reeve.Approval]{a}, err
}

func (h *approvalHandlers) reveal(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.RevealedCall],
	error) {
	args, preview, err := h.gate.Reveal(ctx, who.Workspace, in.ID)
	return &body[api.RevealedCall]{api.RevealedCall{Args: args, Preview: preview}}, err
}

// decideAll decides each approval by itself, so that some decisions can fail.
func (h *approvalHandlers) decideAll(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.BatchDecisionRequest
}) (*body[api.BatchDecisionList], error) {
	out := &body[api.BatchDecisionList]{}
	for _, d := range in.Body.Decisions {
		r := api.BatchDecisionResult{ID: d.ID}
		a, err := h.decideOne(ctx, who, d.ID, d.DecisionRequest)
		if err == nil {
			r.Approval = &a
		} else {
			p := newProblem(ctx, err)
			r.Failure = &api.BatchFailure{Code: p.Code, Message: p.Detail, Hint: p.Hint}
		}
		out.Body.Results = append(out.Body.Results, r)
	}
	return out, nil
}

func (h *approvalHandlers) card(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.ApprovalCard],
	error) {
	out := &body[api.ApprovalCard]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		a, err := visibleLedger(snap, who).GetApproval(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		card := api.ApprovalCard{Approval: a.AsOf(snap.Now()), Shown: a.ShownHash()}
		if err := h.redactor.redactOne(ctx, snap, who, &card.Approval, nil); err != nil {
			return err
		}
		card.Hidden = card.Approval.Args != a.Args || card.Approval.Preview != a.Preview ||
			strings.Contains(a.Args, reeve.Redacted) || strings.Contains(a.Preview, reeve.Redacted)
		op, err := snap.Ledger().GetOperation(ctx, who.Workspace, a.OperationID)
		if err != nil {
			return err
		}
		card.RunID, card.Effect, card.Spent = op.RunID, op.Effect, op.Spent
		if isHidden, err := isRunHidden(ctx, snap, who, op.RunID); err != nil || isHidden {
			card.RunID = ""
			if err != nil {
				return err
			}
		}
		if last, found, err := snap.Ledger().LastApproval(ctx, a.OperationID); err != nil {
			return err
		} else if found && last.ID != a.ID {
			card.Replaced = last.ID
		}
		if err := h.addEdits(ctx, snap, who, &card, op.CallID); err != nil {
			return err
		}
		names, err := snap.Agents().AgentNames(ctx, []string{a.AgentID})
		if err != nil {
			return err
		}
		card.AgentName = names[a.AgentID]
		tool, err := snap.Agents().GetTool(ctx, who.Workspace, a.Tool)
		if err != nil && reeve.CodeOf(err) != reeve.NotFound { // the tool may have been deleted
			return err
		}
		card.Tier, card.CanUndo = tool.Tier, h.gate.Catalogue.CanUndo(tool)
		out.Body = card
		return nil
	})
	if err == nil && out.Body.Approval.State == reeve.ApprovalPending && who.Role.Allows(reeve.Member) {
		out.Body.Stale, err = h.gate.WhyStale(ctx, who.Workspace, in.ID)
	}
	return out, err
}

// addEdits adds what a person changed in the arguments: what was proposed at first, and the approval that took its
// place.
func (h *approvalHandlers) addEdits(ctx context.Context, snap *store.Snap, who reeve.Principal,
	card *api.ApprovalCard, call string) error {
	c, err := snap.Ledger().GetCall(ctx, who.Workspace, call)
	if err != nil {
		return err
	}
	info, err := c.RequestInfo()
	if err != nil {
		return err
	}
	card.CanEdit = card.Approval.State == reeve.ApprovalPending && info.Undoes == "" && info.Via != reeve.ViaScript
	if info.Replaces != "" {
		first, err := snap.Ledger().GetApproval(ctx, who.Workspace, info.Replaces)
		if err == nil {
			err = h.redactor.redactOne(ctx, snap, who, &first, nil)
		}
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return err
		}
		if err == nil {
			card.Proposed = &api.ProposedArgs{ApprovalID: first.ID, Args: first.Args}
		}
	}
	if card.Approval.State != reeve.ApprovalReplaced || c.Result == nil {
		return nil
	}
	result, err := c.Result.ResultInfo()
	if err != nil {
		return err
	}
	next, found, err := snap.Ledger().LastApproval(ctx, result.ReplacedBy)
	if found {
		card.Replaced = next.ID
	}
	return err
}
