package httpapi

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// mayWhileHeld matches what is let through while the server is held, although it is no GET: the word to go on, the kill switch, and
// calls, of which the gate lets those pass that change nothing.
var mayWhileHeld = regexp.MustCompile(`^/api/(resume|stop|agents/[^/]+/calls(/|$))`)

// whileHeld refuses what changes something while the server is held. It comes before an Idempotency-Key is taken.
func (s *server) whileHeld(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if reads || !strings.HasPrefix(r.URL.Path, "/api/") || mayWhileHeld.MatchString(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		var hold *reeve.Hold
		err := s.DB.View(r.Context(), func(snap *store.Snap) (err error) { hold, err = snap.Hold(r.Context()); return err })
		if err == nil && hold != nil {
			err = hold.Err()
		}
		if err != nil {
			s.write(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// heldShown is how much of each kind a report lists for a workspace.
const heldShown = 200

// held lists what the server would go on with: in every workspace for a token that is valid in all of them, else in one.
func (s *server) held(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.HoldReport], error) {
	out := &body[reeve.HoldReport]{Body: reeve.HoldReport{Work: []reeve.HeldWork{}}}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		hold, err := snap.Hold(ctx)
		if err != nil || hold == nil {
			return err
		}
		out.Body.Held, out.Body.Hold, out.Body.Counts = true, hold, map[reeve.HeldKind]int{}
		workspaces := []reeve.Workspace{{ID: who.Workspace}}
		switch err := serverWide(ctx, snap, who); reeve.CodeOf(err) {
		case "":
			if workspaces, err = snap.ListWorkspaces(ctx); err != nil {
				return err
			}
		case reeve.Forbidden:
		default:
			return err
		}
		for _, w := range workspaces {
			work, counts, err := snap.HeldWork(ctx, w.ID, heldShown)
			if err != nil {
				return err
			}
			shown, err := s.heldFor(ctx, snap, who, w.ID, work)
			if err != nil {
				return err
			}
			out.Body.Work = append(out.Body.Work, shown...)
			for kind, n := range counts {
				out.Body.Counts[kind] += n
				out.Body.More = out.Body.More || n > heldShown
			}
		}
		return nil
	})
}

// heldText is how many characters are shown of what held work is about.
const heldText = 200

// heldFor makes a workspace's held work fit for a caller. All of it is listed; what it is about is left out where the
// caller could not read it elsewhere, and those who may look but not decide are not shown what looks like a secret.
func (s *server) heldFor(ctx context.Context, snap *store.Snap, who reeve.Principal, workspace string,
	work []store.Held) ([]reeve.HeldWork, error) {
	hide := func(text string) string { return text }
	if !who.Role.Allows(reeve.Member) && len(work) > 0 {
		shown, err := s.Gate.Shown(ctx, snap, workspace)
		if err != nil {
			return nil, err
		}
		hide = shown.Overseen
	}
	list := make([]reeve.HeldWork, 0, len(work))
	for _, w := range work {
		private := !sees(who, w.UserID)
		if !private {
			var err error
			if private, err = hidden(ctx, snap, who, w.SessionID); err != nil {
				return nil, err
			}
		}
		text := hide(w.Text)
		if private {
			text = "(another user's; what it is about is not shown)"
		}
		w.What = reeve.Clip(strings.TrimSpace(w.What+" "+text), heldText)
		list = append(list, w.HeldWork)
	}
	return list, nil
}

// resume lets a held server go on, if it is held; otherwise it turns the kill switch off.
func (s *server) resume(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ResumeRequest
}) (*none, error) {
	released, err := s.release(ctx, who, in.Body)
	if err != nil || released {
		return nil, err
	}
	return nil, s.Gate.Resume(ctx, who.Workspace, in.Body.Agent)
}

// release lets a held server go on, in one transaction with all that does not go on or becomes unknown. False means that it is not
// held.
func (s *server) release(ctx context.Context, who reeve.Principal, r reeve.ResumeRequest) (released bool, err error) {
	var held bool
	if err := s.DB.View(ctx, func(snap *store.Snap) (err error) { held, err = snap.Held(ctx); return err }); err != nil {
		return false, err
	}
	if !held && len(r.Skip) == 0 && !r.SkipAll {
		return false, nil
	}
	var over []reeve.Run
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		over, released = nil, false
		hold, err := tx.Hold(ctx)
		if err != nil {
			return err
		}
		if hold == nil {
			if len(r.Skip) > 0 || r.SkipAll {
				return reeve.Errorf(reeve.Conflict, "the server is not held, so that there is nothing to skip; nothing was changed")
			}
			return nil
		}
		if r.Agent != "" {
			return hold.Err()
		}
		if !who.Role.Allows(reeve.Owner) {
			return reeve.Errorf(reeve.Forbidden, "a token with role %s cannot resume a server that is held", who.Role).
				Hintf("use the owner's token of the data directory")
		}
		if err := serverWide(ctx, &tx.Snap, who); err != nil {
			return err
		}
		skip, err := chosen(ctx, &tx.Snap, r)
		if err != nil {
			return err
		}
		if err := s.Gate.Doubt(ctx, tx); err != nil {
			return err
		}
		if over, err = s.Wake.Skip(ctx, tx, skip); err != nil {
			return err
		}
		released = true
		if err := tx.Release(ctx); err != nil {
			return err
		}
		return tx.Answer(ctx, nil)
	})
	if err == nil && released {
		s.Wake.Resumed(over)
		s.Gate.Resumed()
	}
	return released, err
}

// chosen gives what is not to go on, and refuses ids of what cannot be skipped.
func chosen(ctx context.Context, snap *store.Snap, r reeve.ResumeRequest) (skip []reeve.HeldWork, err error) {
	if len(r.Skip) == 0 && !r.SkipAll {
		return nil, nil
	}
	workspaces, err := snap.ListWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(r.Skip)
	for _, w := range workspaces {
		work, _, err := snap.HeldWork(ctx, w.ID, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		for _, v := range work {
			if v.Skippable() && (r.SkipAll || slices.Contains(r.Skip, v.ID)) {
				skip = append(skip, v.HeldWork)
				left = slices.DeleteFunc(left, func(id string) bool { return id == v.ID })
			}
		}
	}
	if len(left) > 0 {
		return nil, reeve.Errorf(reeve.NotFound, "%s is no run, wake or overdue schedule that would go on; nothing was changed", left[0]).
			Hintf("reeve held lists them; an agent is kept from running with reeve stop --agent NAME")
	}
	return skip, nil
}
