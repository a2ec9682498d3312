package httpapi

import (
	"context"
	"math"
	"slices"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// maxHeldWork is the most entries of each kind that showHold lists for a workspace.
const maxHeldWork = 200

// controlHandlers serves the kill switch and the hold of a server.
type controlHandlers struct {
	db        *store.DB
	gate      *gate.Gate
	scheduler *wake.Scheduler
}

// showHold lists the work that a held server would resume: in every workspace for a server token, otherwise in the
// caller's workspace.
func (h *controlHandlers) showHold(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.HoldReport], error) {
	out := &body[api.HoldReport]{Body: api.HoldReport{Work: []reeve.HeldWork{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		hold, err := snap.System().Hold(ctx)
		if err != nil || hold == nil {
			return err
		}
		out.Body.Held, out.Body.Hold, out.Body.Counts = true, hold, map[reeve.HeldKind]int{}
		workspaces := []string{who.Workspace}
		switch err := checkServerToken(ctx, snap, who); reeve.CodeOf(err) {
		case "":
			if workspaces, err = snap.Agents().WorkspaceIDs(ctx); err != nil {
				return err
			}
		case reeve.Forbidden:
		default:
			return err
		}
		for _, w := range workspaces {
			work, counts, err := snap.System().HeldWork(ctx, w, maxHeldWork)
			if err != nil {
				return err
			}
			list, err := h.redactHeldWork(ctx, snap, who, w, work)
			if err != nil {
				return err
			}
			out.Body.Work = append(out.Body.Work, list...)
			for kind, n := range counts {
				out.Body.Counts[kind] += n
				out.Body.More = out.Body.More || n > maxHeldWork
			}
		}
		return nil
	})
}

// maxHeldText is the length to which the description of held work is truncated.
const maxHeldText = 200

// redactHeldWork returns a workspace's held work as the caller may see it. It replaces the text of another user's work.
// For viewers it also redacts text that looks like a secret.
func (h *controlHandlers) redactHeldWork(ctx context.Context, snap *store.Snap, who reeve.Principal, workspace string,
	work []store.HeldItem) ([]reeve.HeldWork, error) {
	redact := func(text string) string { return text }
	if !who.Role.Allows(reeve.Member) && len(work) > 0 {
		redaction, err := h.gate.Redaction(ctx, snap, workspace)
		if err != nil {
			return nil, err
		}
		redact = redaction.ForObservers
	}
	list := make([]reeve.HeldWork, 0, len(work))
	for _, w := range work {
		isPrivate := !canSee(who, w.UserID)
		if !isPrivate {
			var err error
			if isPrivate, err = isSessionHidden(ctx, snap, who, w.SessionID); err != nil {
				return nil, err
			}
		}
		text := redact(w.Text)
		if isPrivate {
			text = "(hidden: belongs to another user)"
		}
		w.Description = reeve.Truncate(strings.TrimSpace(w.Description+" "+text), maxHeldText)
		list = append(list, w.HeldWork)
	}
	return list, nil
}

// resume releases the server if it is held. Otherwise it turns the kill switch off.
func (h *controlHandlers) resume(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.ResumeRequest
}) (*none, error) {
	released, err := h.release(ctx, who, in.Body)
	if err != nil || released {
		return nil, err
	}
	return nil, h.gate.Resume(ctx, who.Workspace, in.Body.Agent)
}

// release releases a held server. In the same transaction it cancels the skipped work and marks uncertain operations as
// unknown. It returns false if the server is not held.
func (h *controlHandlers) release(ctx context.Context, who reeve.Principal,
	r api.ResumeRequest) (released bool, err error) {
	var held bool
	if err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		held, err = snap.System().IsHeld(ctx)
		return err
	}); err != nil {
		return false, err
	}
	if !held && len(r.Skip) == 0 && !r.SkipAll {
		return false, nil
	}
	var cancelled []reeve.Run
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		cancelled, released = nil, false
		hold, err := tx.System().Hold(ctx)
		if err != nil {
			return err
		}
		if hold == nil {
			if len(r.Skip) > 0 || r.SkipAll {
				return reeve.Errorf(reeve.Conflict,
					"the server is not held, so there is nothing to skip; nothing was changed")
			}
			return nil
		}
		if r.Agent != "" {
			return hold.Err()
		}
		if !who.Role.Allows(reeve.Owner) {
			return reeve.Errorf(reeve.Forbidden, "the role %s may not release a held server", who.Role).
				Hintf("use the token in owner.token of the server's data directory")
		}
		if err := checkServerToken(ctx, &tx.Snap, who); err != nil {
			return err
		}
		skip, err := selectSkipped(ctx, &tx.Snap, r)
		if err != nil {
			return err
		}
		if err := h.gate.MarkUncertainUnknown(ctx, tx); err != nil {
			return err
		}
		if cancelled, err = h.scheduler.SkipHeldWork(ctx, tx, skip); err != nil {
			return err
		}
		released = true
		if err := tx.System().ReleaseHold(ctx); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil)
	})
	if err == nil && released {
		h.scheduler.AfterResume(cancelled)
		h.gate.AfterResume()
	}
	return released, err
}

// selectSkipped returns the held work that the request skips. It fails if an id is not held work that can be skipped.
func selectSkipped(ctx context.Context, snap *store.Snap, r api.ResumeRequest) (skip []reeve.HeldWork, err error) {
	if len(r.Skip) == 0 && !r.SkipAll {
		return nil, nil
	}
	workspaces, err := snap.Agents().WorkspaceIDs(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(r.Skip)
	for _, w := range workspaces {
		work, _, err := snap.System().HeldWork(ctx, w, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		for _, v := range work {
			if v.IsSkippable() && (r.SkipAll || slices.Contains(r.Skip, v.ID)) {
				skip = append(skip, v.HeldWork)
				left = slices.DeleteFunc(left, func(id string) bool { return id == v.ID })
			}
		}
	}
	if len(left) > 0 {
		return nil, reeve.Errorf(reeve.NotFound,
			"%s is not a held run, wake or overdue schedule; nothing was changed", left[0]).
			Hintf("list held work with reeve held; to keep an agent from running, use reeve stop --agent NAME")
	}
	return skip, nil
}

func (h *controlHandlers) stop(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.StopRequest
}) (*none, error) {
	agent, why := "", "everything in this workspace was stopped"
	if in.Body.Reason != "" {
		why += ": " + in.Body.Reason
	}
	if in.Body.Agent != "" { // before the switch is set, since the client may disconnect afterwards
		if err := h.db.View(ctx, func(snap *store.Snap) error {
			a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Body.Agent)
			agent, why = a.ID, "the agent "+a.Name+" was stopped"
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := h.gate.Stop(ctx, who.Workspace, agent, in.Body.Reason); err != nil {
		return nil, err
	}
	h.scheduler.Interrupt(who.Workspace, agent, reeve.Errorf(reeve.Stopped, "%s", why))
	return nil, nil
}
