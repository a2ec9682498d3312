package httpapi

import (
	"context"
	"regexp"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// budgetHandlers serves budgets.
type budgetHandlers struct {
	db *store.DB
}

func (h *budgetHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.BudgetList], error) {
	out := &body[api.BudgetList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Budgets, err = snap.Ledger().ListBudgets(ctx, who.Workspace)
		return err
	})
}

// SubjectPath is the input of routes with the subject of a budget in the path.
type SubjectPath struct {
	Scoped
	Subject string `path:"subject" maxLength:"200" doc:"Subject: agent:<id or name>, run:<id> or workspace"`
}

var subjectPattern = regexp.MustCompile(`^(workspace|(agent|run):[!-~]{1,128})$`)

func checkSubject(path, s string) error {
	if subjectPattern.MatchString(s) {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "the subject of the budget is not valid",
		Fields: []reeve.Field{{Path: path, Message: "is not a subject", Expected: "agent:<id>, run:<id> or workspace"}}}
}

func (h *budgetHandlers) put(ctx context.Context, who reeve.Principal, in *struct {
	SubjectPath
	Body api.BudgetRequest
}) (*body[reeve.Budget], error) {
	if err := checkSubject("path/subject", in.Subject); err != nil {
		return nil, err
	}
	if in.Body.Parent != "" {
		if err := checkSubject("/parent", in.Body.Parent); err != nil {
			return nil, err
		}
	}
	l := in.Body.Limit
	if l.Calls < 0 || l.Tokens < 0 || l.Micros < 0 || l.Millis < 0 {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "a limit is negative",
			Fields: []reeve.Field{{Path: "/limit", Message: "is negative",
				Expected: "a number above 0, or 0 for no limit"}}}
	}
	b := reeve.Budget{Subject: in.Subject, Parent: in.Body.Parent, Limit: l, OnExceed: in.Body.OnExceed}
	if b.OnExceed == "" {
		b.OnExceed = reeve.EndOverBudget
	}
	out := &body[reeve.Budget]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) (err error) {
		for _, s := range []*string{&b.Subject, &b.Parent} {
			if name, ok := cutAgentPrefix(*s); ok {
				a, err := tx.Agents().GetAgent(ctx, who.Workspace, name)
				if err != nil {
					return err
				}
				*s = "agent:" + a.ID
			}
		}
		if err := tx.Ledger().PutBudget(ctx, who.Workspace, b); err != nil {
			return err
		}
		out.Body, _, err = tx.Ledger().GetBudget(ctx, who.Workspace, b.Subject)
		return err
	})
}

func cutAgentPrefix(subject string) (string, bool) {
	const p = "agent:"
	if len(subject) > len(p) && subject[:len(p)] == p {
		return subject[len(p):], true
	}
	return "", false
}

func (h *budgetHandlers) remove(ctx context.Context, who reeve.Principal, in *SubjectPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		subject := in.Subject
		if name, ok := cutAgentPrefix(subject); ok {
			if a, err := tx.Agents().GetAgent(ctx, who.Workspace, name); err == nil {
				subject = "agent:" + a.ID
			}
		}
		return tx.Ledger().DeleteBudget(ctx, who.Workspace, subject)
	})
}
