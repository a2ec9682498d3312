package httpapi

import (
	"context"
	"io"
	"regexp"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

func (s *server) listBudgets(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.BudgetList], error) {
	out := &body[reeve.BudgetList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Budgets, err = snap.ListBudgets(ctx, who.Workspace)
		return err
	})
}

// SubjectPath names the subject of a budget.
type SubjectPath struct {
	Scoped
	Subject string `path:"subject" maxLength:"200" doc:"agent:<id>, run:<id>, or workspace"`
}

var subject = regexp.MustCompile(`^(workspace|(agent|run):[!-~]{1,128})$`)

func checkSubject(path, s string) error {
	if subject.MatchString(s) {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "that is not the subject of a budget",
		Fields: []reeve.Field{{Path: path, Message: "is not a subject", Expected: "agent:<id>, run:<id>, or workspace"}}}
}

func (s *server) putBudget(ctx context.Context, who reeve.Principal, in *struct {
	SubjectPath
	Body reeve.BudgetRequest
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
		return nil, &reeve.Error{Code: reeve.Validation, Message: "a limit is below 0", Fields: []reeve.Field{{Path: "/limit", Message: "is negative", Expected: "0 for none, or more"}}}
	}
	b := reeve.Budget{Subject: in.Subject, Parent: in.Body.Parent, Limit: l, OnExceed: in.Body.OnExceed}
	if b.OnExceed == "" {
		b.OnExceed = reeve.EndOver
	}
	out := &body[reeve.Budget]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) (err error) {
		for _, s := range []*string{&b.Subject, &b.Parent} {
			if name, ok := cutAgent(*s); ok {
				a, err := tx.GetAgent(ctx, who.Workspace, name)
				if err != nil {
					return err
				}
				*s = "agent:" + a.ID
			}
		}
		if err := tx.PutBudget(ctx, who.Workspace, b); err != nil {
			return err
		}
		out.Body, _, err = tx.GetBudget(ctx, who.Workspace, b.Subject)
		return err
	})
}

func cutAgent(subject string) (string, bool) {
	const p = "agent:"
	if len(subject) > len(p) && subject[:len(p)] == p {
		return subject[len(p):], true
	}
	return "", false
}

func (s *server) deleteBudget(ctx context.Context, who reeve.Principal, in *SubjectPath) (*none, error) {
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error {
		subject := in.Subject
		if name, ok := cutAgent(subject); ok {
			if a, err := tx.GetAgent(ctx, who.Workspace, name); err == nil {
				subject = "agent:" + a.ID
			}
		}
		return tx.DeleteBudget(ctx, who.Workspace, subject)
	})
}

func (s *server) status(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.Status], error) {
	out := &body[reeve.Status]{Body: reeve.Status{Version: s.Version, Engine: s.DB.Engine(), Role: who.Role, User: who.User, StartedAt: s.StartedAt}}
	tools, err := s.Gate.Catalogue.Tools(ctx, who.Workspace, "")
	if err != nil {
		return nil, err
	}
	out.Body.Broken = brokenTools(tools)
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body.Workspace, err = snap.GetWorkspace(ctx, who.Workspace); err != nil {
			return err
		}
		if out.Body.Hold, err = snap.Hold(ctx); err != nil {
			return err
		}
		if out.Body.Node, err = snap.Node(ctx); err != nil {
			return err
		}
		in, err := waiting(ctx, snap, who)
		out.Body.Waiting, out.Body.More = in.Waiting(), in.More
		return err
	})
}

// serverWide lets only server tokens through: what concerns the whole server is no single workspace's business.
func serverWide(ctx context.Context, snap *store.Snap, who reeve.Principal) error {
	mine, _, err := snap.GetCredential(ctx, who.TokenID)
	if err != nil {
		return err
	}
	if !mine.Server {
		return reeve.Errorf(reeve.Forbidden, "this concerns the whole server, and takes a server token").
			Hintf("use the token in owner.token of the server's data directory")
	}
	return nil
}

// backup copies the whole database, so it takes a server token.
func (s *server) backup(ctx context.Context, who reeve.Principal, _ *Scoped) (*huma.StreamResponse, error) {
	if err := s.DB.View(ctx, func(snap *store.Snap) error { return serverWide(ctx, snap, who) }); err != nil {
		return nil, err
	}
	whole, err := s.Backup(ctx) // before the answer begins, so that a copy that cannot be made is answered by the reason
	if err != nil {
		s.Log.Error("a backup failed", "request", requestID(ctx), "error", err)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer whole.Close()
		c.SetHeader("Content-Type", "application/octet-stream")
		if _, err := io.Copy(c.BodyWriter(), whole); err != nil {
			s.Log.Error("a backup failed", "request", requestID(c.Context()), "error", err)
			panic(abort) // the client must not take a part for the whole
		}
	}}, nil
}
