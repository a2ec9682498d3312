package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
	"reeve/model"
)

const (
	comparedPerStep  = 50        // notes compared in one transaction
	maxCompared      = 500       // notes compared by one consolidation
	maxChanges       = 100       // changes proposed by one consolidation
	maxGroupRequests = 20        // model requests of one consolidation
	checkInterval    = time.Hour // time between checks whether the schedule is due
)

// KeeperKind is the kind of the agent that proposes changes of notes. A workspace can replace the agent with its own of
// this kind.
const KeeperKind = "memory_keeper"

// keeperTools are the tools of the keeper agent. By default its policy only proposes calls of them.
var keeperTools = []string{"memory_merge", "memory_delete"}

// KeeperGate makes the calls of consolidations, and calls models within budgets.
type KeeperGate interface {
	Gate
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
}

// ConsolidatorConfig configures a Consolidator.
type ConsolidatorConfig struct {
	DB    *store.DB
	Gate  KeeperGate
	Notes *Notes
	Log   *slog.Logger

	Model    model.Model
	HasModel func(name string) bool // reports whether the server has the model; an empty name is the default model

	Every time.Duration // time between scheduled consolidations of a user's notes. Default: none are scheduled
}

// Consolidator finds notes of a user that say nearly the same, contradict each other or belong together, and proposes
// to merge them. It changes no note itself: each change is a call of an agent, which the gate makes a proposal.
type Consolidator struct{ cfg ConsolidatorConfig }

// NewConsolidator returns a Consolidator. It is passive until Run, Step or Consolidate is called.
func NewConsolidator(cfg ConsolidatorConfig) *Consolidator { return &Consolidator{cfg} }

// Run consolidates notes by the schedule until ctx ends.
func (c *Consolidator) Run(ctx context.Context) error {
	for c.cfg.Every > 0 && ctx.Err() == nil {
		n, err := c.Step(ctx)
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("cannot consolidate notes", "error", err)
		}
		if n == 0 || err != nil {
			notify.Sleep(ctx, checkInterval)
		}
	}
	return nil
}

// Step consolidates the notes of the next user who is due. It returns the number of compared notes, which is 0 if no
// user is due.
func (c *Consolidator) Step(ctx context.Context) (int, error) {
	if c.cfg.Every <= 0 {
		return 0, nil
	}
	for owner := (store.NoteOwner{}); ; {
		ok, isClaimed := false, false
		err := c.cfg.DB.View(ctx, func(s *store.Snap) error {
			held, err := s.System().IsHeld(ctx)
			if err != nil || held {
				return err
			}
			owner, ok, err = s.Notes().NextUncomparedOwner(ctx, owner)
			return err
		})
		if err != nil || !ok {
			return 0, err
		}
		err = c.cfg.DB.Update(ctx, func(tx *store.Tx) (err error) {
			isClaimed, err = tx.Notes().ClaimConsolidation(ctx, owner, c.cfg.Every)
			return err
		})
		if err != nil {
			return 0, err
		}
		if isClaimed {
			out, err := c.Consolidate(ctx, owner.Workspace, owner.User)
			return out.Compared, err
		}
	}
}

// consolidation is one consolidation of a user's notes.
type consolidation struct {
	*Consolidator
	workspace, user string
	session         string // session id; proposals of one session form one change set
	agent           reeve.Agent
	model           string
	asksModel       bool
	requests        int // model requests so far
	out             reeve.NoteConsolidation
}

// Consolidate compares the notes that were written since the last consolidation with all other notes of the user, and
// proposes changes. The number of comparisons is limited; More reports whether some are left. If it is interrupted, the
// next call continues.
func (c *Consolidator) Consolidate(ctx context.Context, workspace, user string) (reeve.NoteConsolidation, error) {
	v := &consolidation{Consolidator: c, workspace: workspace, user: user,
		out: reeve.NoteConsolidation{Changes: []reeve.ConsolidatedChange{}}}
	if user == "" {
		return v.out, reeve.Errorf(reeve.Validation, "the caller is not a user, and notes belong to users").
			Hintf("use a token that belongs to a user")
	}
	if err := v.prepare(ctx); err != nil {
		return v.out, err
	}
	for {
		if err := v.callSuggested(ctx); err != nil {
			return v.out, err
		}
		isFull := v.out.Compared >= maxCompared || len(v.out.Changes) >= maxChanges || v.requests >= maxGroupRequests
		isDone, err := v.compareNext(ctx, isFull || v.out.Problem != "")
		if err != nil || isDone {
			return v.out, err
		}
	}
}

// prepare finds or creates the agent, and reads its settings.
func (v *consolidation) prepare(ctx context.Context) error {
	err := v.cfg.DB.Update(ctx, func(tx *store.Tx) (err error) {
		v.session = "notes_" + tx.NewID(reeve.PrefixNote)
		v.agent, err = ensureKeeper(ctx, tx, v.workspace)
		return err
	})
	if err != nil {
		return err
	}
	config, err := reeve.ParseAgentConfig(v.agent.Config)
	if err != nil {
		return err
	}
	v.model = config.Model
	v.asksModel = v.cfg.Model != nil && v.cfg.HasModel(v.model)
	return nil
}

// ensureKeeper returns the agent that proposes changes of notes. It creates the agent the first time.
func ensureKeeper(ctx context.Context, tx *store.Tx, workspace string) (reeve.Agent, error) {
	a, ok, err := tx.Automations().FindAgentOfKind(ctx, workspace, KeeperKind)
	if err != nil || ok {
		return a, err
	}
	a = reeve.Agent{ID: tx.NewID(reeve.PrefixAgent), WorkspaceID: workspace, Name: KeeperKind, Kind: KeeperKind,
		Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, Categories: []string{}, Config: json.RawMessage(`{}`),
		CreatedAt: tx.Now(), Policy: reeve.Policy{Tools: map[string]reeve.PolicyAnswer{}}}
	for _, id := range keeperTools {
		a.Policy.Tools[id] = reeve.Propose
	}
	if _, err := tx.Agents().GetAgent(ctx, workspace, a.Name); err == nil {
		a.Name += "-" + a.ID // another agent has the name
	} else if reeve.CodeOf(err) != reeve.NotFound {
		return a, err
	}
	if err := tx.Agents().InsertAgent(ctx, a); err != nil {
		return a, err
	}
	if err := tx.Agents().StampAgent(ctx, a.ID); err != nil {
		return a, err
	}
	for _, id := range keeperTools {
		t, err := tx.Agents().GetTool(ctx, workspace, id)
		if err != nil {
			return a, err
		}
		if err := tx.Agents().Attach(ctx, a, t, nil); err != nil {
			return a, err
		}
	}
	return a, nil
}

// callSuggested makes the calls of all stored suggestions for the user through the gate. It deletes a suggestion after
// its call is recorded. If it is repeated, the call has the same operation id and changes nothing.
func (v *consolidation) callSuggested(ctx context.Context) error {
	for {
		var list []store.NoteSuggestion
		if err := v.cfg.DB.View(ctx, func(s *store.Snap) (err error) {
			list, err = s.Notes().ListSuggestions(ctx, v.workspace, v.user, maxChanges)
			return err
		}); err != nil || len(list) == 0 {
			return err
		}
		for _, s := range list {
			res, err := v.cfg.Gate.Call(ctx, reeve.Call{Workspace: v.workspace, Agent: v.agent.ID, Tool: s.Tool,
				Args: json.RawMessage(s.Args), Operation: s.ID, Session: v.session, User: v.user, Via: reeve.ViaGo,
				Reason: s.Reason})
			if err != nil && !isFinalRefusal(err) {
				return err
			}
			if err := v.cfg.DB.Update(ctx, func(tx *store.Tx) error {
				return tx.Notes().DeleteSuggestion(ctx, s.ID)
			}); err != nil {
				return err
			}
			v.report(s, res, err)
		}
	}
}

// isFinalRefusal reports whether the gate refused a call for a reason that a repeated call would meet again.
func isFinalRefusal(err error) bool {
	switch reeve.CodeOf(err) {
	case reeve.Denied, reeve.NotFound, reeve.Validation, reeve.Conflict, reeve.Stale, reeve.OutOfScope,
		reeve.Unsupported, reeve.ToolFailed, reeve.TooLarge:
		return true
	default:
		return false
	}
}

// report adds the result of a call to the result of the consolidation.
func (v *consolidation) report(s store.NoteSuggestion, res reeve.Result, refusal error) {
	change := reeve.ConsolidatedChange{Tool: s.Tool, Reason: s.Reason, OperationID: s.ID, State: res.State,
		ProposalID: res.ProposalID, Code: res.Code, Message: res.Message}
	if refusal != nil {
		e := reeve.AsError(refusal)
		change.Code, change.Message = e.Code, e.Message
	}
	if v.out.Changes = append(v.out.Changes, change); res.ProposalID != "" && !res.Replayed {
		v.out.ChangeSetID = reeve.ChangeSetKey(v.workspace, v.agent.ID, "session", v.session)
	}
}

// compareNext compares the next notes with the others and stores the suggestions. It reports whether the consolidation
// is done. If isFull is true, it compares nothing and only checks whether notes are left.
func (v *consolidation) compareNext(ctx context.Context, isFull bool) (isDone bool, err error) {
	var next []reeve.Note
	if err := v.cfg.DB.View(ctx, func(s *store.Snap) (err error) {
		next, err = s.Notes().ListUncompared(ctx, v.workspace, v.user, comparedPerStep)
		return err
	}); err != nil || len(next) == 0 || isFull {
		v.out.More = len(next) > 0
		return true, err
	}
	vectors := v.cfg.Notes.readVectors(ctx, v.workspace, v.user, next)
	var pairs []notePair
	if err := v.cfg.DB.View(ctx, func(s *store.Snap) error {
		for _, n := range next {
			found, err := v.cfg.Notes.findRelated(ctx, s, v.workspace, n, vectors[n.ID])
			if err != nil {
				return err
			}
			for _, p := range found {
				p.addMeaning(vectors)
				pairs = append(pairs, p)
			}
		}
		return nil
	}); err != nil {
		return false, err
	}
	left, err := v.suggest(ctx, pairs, next)
	v.out.Compared += len(next) - len(left)
	return false, err
}

// suggest stores suggestions for pairs of notes and marks the notes as compared. It returns the notes about which the
// model could not be asked. These are not marked and will be compared again.
func (v *consolidation) suggest(ctx context.Context, pairs []notePair, compared []reeve.Note) (left []reeve.Note,
	err error) {
	var found []store.NoteSuggestion
	var same []notePair // pairs whose notes are both trusted or both untrusted
	for _, p := range pairs {
		switch {
		case !p.isMixed():
			same = append(same, p)
		case p.isNearDuplicate():
			found = append(found, v.suggestDelete(p))
		}
	}
	duplicates := func(pairs []notePair) (out []notePair) {
		for _, p := range pairs {
			if p.isNearDuplicate() {
				out = append(out, p)
			}
		}
		return out
	}
	if !v.asksModel {
		for _, g := range groupNotes(duplicates(same)) {
			found = append(found, v.suggestMerge(g)...)
		}
		return nil, v.keep(ctx, found, compared)
	}
	asked := map[string]bool{}
	for _, g := range groupNotes(same) {
		if v.requests < maxGroupRequests && v.out.Problem == "" {
			v.requests++
			err := v.judge(ctx, g, compared)
			if err == nil {
				for _, n := range g.notes {
					asked[n.ID] = true
				}
				continue
			}
			if !isModelProblem(err) {
				return nil, err
			}
			v.out.Problem = "the request to the model failed: " + reeve.AsError(err).Message
		}
		if v.out.Problem != "" {
			for _, d := range groupNotes(duplicates(g.pairs)) {
				found = append(found, v.suggestMerge(d)...)
			}
		}
		left = append(left, g.notes...)
	}
	var done []reeve.Note
	unasked := map[string]bool{}
	for _, n := range left {
		unasked[n.ID] = true
	}
	left = nil
	for _, n := range compared {
		if unasked[n.ID] && !asked[n.ID] {
			left = append(left, n)
		} else {
			done = append(done, n)
		}
	}
	return left, v.keep(ctx, found, done)
}

// keep stores suggestions and marks notes as compared, in one transaction.
func (v *consolidation) keep(ctx context.Context, found []store.NoteSuggestion, compared []reeve.Note) error {
	return v.cfg.DB.Update(ctx, func(tx *store.Tx) error { return keepIn(ctx, tx, found, compared) })
}

func keepIn(ctx context.Context, tx *store.Tx, found []store.NoteSuggestion, compared []reeve.Note) error {
	for _, s := range found {
		if err := tx.Notes().InsertSuggestion(ctx, s); err != nil {
			return err
		}
	}
	return tx.Notes().MarkCompared(ctx, compared)
}

// isModelProblem reports whether a consolidation can continue without the model after this error.
func isModelProblem(err error) bool {
	switch reeve.CodeOf(err) {
	case reeve.ModelFailed, reeve.Unavailable, reeve.RateLimited, reeve.Timeout, reeve.BudgetExceeded, reeve.NotFound,
		reeve.Unsupported, reeve.Validation, reeve.Unauthenticated, reeve.TooLarge:
		return true
	default:
		return false
	}
}

// newer orders notes by the time since which they are valid, newest first.
func newer(a, b reeve.Note) int {
	return cmp.Or(b.ValidFrom.Compare(a.ValidFrom), cmp.Compare(b.ID, a.ID))
}
