package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

// reservation is the claim of a call on the budgets that it draws on.
type reservation struct {
	*request
	cost                 reeve.Amount  // what the call may spend at the most
	timeout              time.Duration // of the tool
	ignoresAskingBudgets bool          // budgets that ask a person do not hold the call up
	reservationKey       string        // the id under which amounts are reserved; empty means that none are
	timeLeft             time.Duration // time that the budgets leave for the call; 0 means that no budget limits it
}

// newReservation returns the reservation of a call, which claims nothing yet.
func newReservation(d *Decision) *reservation {
	if d.entry == nil {
		return &reservation{request: d.request}
	}
	return &reservation{request: d.request, cost: d.tool().Cost, timeout: d.tool().
		Timeout(), ignoresAskingBudgets: d.ignoresAskingBudgets()}
}

// ignoresAskingBudgets reports whether budgets that ask a person do not hold the call up. Either a person was asked about
// a budget and let the call go, or the call is only proposed: a person decides on it anyway, and it draws on the budget
// when it is applied.
func (d *Decision) ignoresAskingBudgets() bool {
	return d.isProposal || d.approval != nil && d.resumed != nil && d.resumed.Code == reeve.BudgetExceeded
}

// subjects lists whose budgets a call draws on, sorted: its run's, its agent's, the workspace's, and those of its
// principals. Parents of budgets are not among them.
func (r *reservation) subjects() []string {
	list := []string{"agent:" + r.call.Agent, "workspace"}
	if r.call.Run != "" {
		list = append(list, "run:"+r.call.Run)
	}
	for _, p := range r.chain { // agents that had the call made pay for it too
		if list = append(list, "agent:"+p.AgentID); p.RunID != "" {
			list = append(list, "run:"+p.RunID)
		}
	}
	slices.Sort(list)
	return list
}

// applies reports whether any budget can apply. Budgets of runs come and go without a new revision of the workspace.
func (r *reservation) applies() bool {
	return r.view.workspace.hasBudgets || r.g.RunBudgets && r.call.Run != ""
}

// maxParents bounds a chain of budgets, in case it is a circle.
const maxParents = 64

// budgetReader reads a budget, locked or not.
type budgetReader func(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error)

// readBudgets lists the budgets a call draws on, with their parents, sorted by subject. All calls lock budgets in this
// order, so that no two wait for each other.
func (r *reservation) readBudgets(ctx context.Context, get budgetReader) ([]reeve.Budget, error) {
	out, err := r.readWithParents(ctx, get, r.subjects())
	slices.SortFunc(out, func(a, b reeve.Budget) int { return strings.Compare(a.Subject, b.Subject) })
	return out, err
}

// lockBudgets is budgets with a lock on each row. It finds the parents before it locks any. A budget that became a
// parent since is locked last, out of order; its revision check then fails and the call is decided again.
func (r *reservation) lockBudgets(ctx context.Context, tx *store.Tx) ([]reeve.Budget, error) {
	queue := r.subjects()
	if r.view.workspace.hasNestedBudgets {
		found, err := r.readBudgets(ctx, tx.Ledger().GetBudget)
		if err != nil {
			return nil, err
		}
		queue = subjectsOf(found)
	}
	return r.readWithParents(ctx, tx.Ledger().LockBudget, queue)
}

func subjectsOf(budgets []reeve.Budget) []string {
	out := make([]string, len(budgets))
	for i, b := range budgets {
		out[i] = b.Subject
	}
	return out
}

// readWithParents reads budgets, and their parents as it finds them.
func (r *reservation) readWithParents(ctx context.Context, get budgetReader, queue []string) ([]reeve.Budget, error) {
	seen := map[string]bool{}
	var out []reeve.Budget
	for i := 0; i < len(queue) && i < maxParents; i++ {
		if seen[queue[i]] {
			continue
		}
		seen[queue[i]] = true
		b, ok, err := get(ctx, r.call.Workspace, queue[i])
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, b)
			if b.Parent != "" {
				queue = append(queue, b.Parent)
			}
		}
	}
	return out, nil
}

// claimedAmount returns what the call claims. Of time it claims what is left, up to its timeout: an attempt is cut to that.
func (r *reservation) claimedAmount() reeve.Amount {
	a := r.cost
	a.Calls, a.Millis = 1, r.timeLimit(0).Milliseconds()
	return a
}

// timeLimit returns how long another attempt may take, after attempts that took some time already.
func (r *reservation) timeLimit(took time.Duration) time.Duration {
	if r.timeLeft > 0 {
		return min(r.timeout, max(r.timeLeft-took, time.Millisecond))
	}
	return r.timeout
}

// hasTime reports whether the budgets leave time for another attempt.
func (r *reservation) hasTime(took time.Duration) bool { return r.timeLeft == 0 || took < r.timeLeft }

// exhaustedResource names what a budget has too little of. Empty means that it has enough. Of time any rest is enough.
func exhaustedResource(b reeve.Budget, c reeve.Amount) string {
	short := func(limit, used, reserved, want int64) bool {
		return limit > 0 && reeve.SaturatingAdd(reeve.SaturatingAdd(used, reserved), want) > limit
	}
	switch {
	case short(b.Limit.Calls, b.Used.Calls, b.Reserved.Calls, c.Calls):
		return "calls"
	case short(b.Limit.Tokens, b.Used.Tokens, b.Reserved.Tokens, c.Tokens):
		return "tokens"
	case short(b.Limit.Micros, b.Used.Micros, b.Reserved.Micros, c.Micros):
		return "money"
	case short(b.Limit.Millis, b.Used.Millis, b.Reserved.Millis, 1):
		return "seconds"
	}
	return ""
}

// budgetExhausted is the error for a budget that a call would overdraw.
type budgetExhausted struct {
	budget   reeve.Budget
	resource string
}

func (e *budgetExhausted) Error() string {
	return "the budget of " + e.budget.Subject + " has too few " + e.resource + " left"
}

func (e *budgetExhausted) refusal() error {
	return reeve.Errorf(reeve.BudgetExceeded, "%s", e.Error()).Hintf("an owner can raise it")
}

// checkBudgets returns an error for a budget that the call would overdraw. A budget that refuses counts before one that asks.
func (r *reservation) checkBudgets(budgets []reeve.Budget) error {
	var asks *budgetExhausted
	for _, b := range budgets {
		what := exhaustedResource(b, r.claimedAmount())
		switch {
		case what == "":
		case !asksPerson(b):
			return &budgetExhausted{b, what}
		case asks == nil && !r.ignoresAskingBudgets:
			asks = &budgetExhausted{b, what}
		}
	}
	if asks != nil {
		return asks
	}
	return nil
}

// asksPerson reports whether a person is asked about a call that would overdraw the budget.
func asksPerson(b reeve.Budget) bool { return b.OnExceed == reeve.ParkOver }

// checkBudget checks whether enough is left. The reservation, when the call is let go, confirms it.
func (d *decider) checkBudget(ctx context.Context) (string, error) {
	r := newReservation(d.Decision)
	if !r.applies() || d.call.PreviewOnly {
		return "no budget applies", nil
	}
	var short *budgetExhausted
	err := d.g.DB.View(ctx, func(s *store.Snap) error {
		budgets, err := r.readBudgets(ctx, s.Ledger().GetBudget)
		if err != nil {
			return err
		}
		return r.checkBudgets(budgets)
	})
	if !errors.As(err, &short) {
		return "enough is left", err
	}
	if !asksPerson(short.budget) || !d.tool().Effect.Mutates() {
		return "", short.refusal()
	}
	why := short.Error()
	if d.overBudget = true; d.waitReason != "" {
		d.waitReason += ", and "
	}
	d.waitReason += why
	return why, nil
}

// claimInTx claims what the call may spend, in the transaction that lets it go. It fails if another call was faster.
func (r *reservation) claimInTx(ctx context.Context, tx *store.Tx, key string) error {
	if !r.applies() {
		return nil
	}
	budgets, err := r.lockBudgets(ctx, tx)
	if err == nil {
		err = r.checkBudgets(budgets)
	}
	if err != nil {
		return err
	}
	r.timeLeft = 0
	for _, b := range budgets {
		if left := b.Limit.Millis - b.Used.Millis - b.Reserved.Millis; b.Limit.Millis > 0 && left > 0 {
			// more makes no difference, and may be more than a duration holds
			left = min(left, r.timeout.Milliseconds())
			if left := time.Duration(left) * time.Millisecond; r.timeLeft == 0 || left < r.timeLeft {
				r.timeLeft = left
			}
		}
	}
	return r.reserve(ctx, tx, key, budgets)
}

// renewInTx claims again for a call that is still under way, whatever is left.
func (r *reservation) renewInTx(ctx context.Context, tx *store.Tx, key string) error {
	if !r.applies() {
		return nil
	}
	budgets, err := r.readBudgets(ctx, tx.Ledger().GetBudget)
	if err != nil {
		return err
	}
	return r.reserve(ctx, tx, key, budgets)
}

func (r *reservation) reserve(ctx context.Context, tx *store.Tx, key string, budgets []reeve.Budget) error {
	r.reservationKey = key
	for _, b := range budgets {
		if err := tx.Ledger().Reserve(ctx, r.call.Workspace, b.Subject, key, r.g.processID, r.claimedAmount()); err != nil {
			return err
		}
	}
	return nil
}

// claim claims for a read, which has no transaction before it runs.
func (r *reservation) claim(ctx context.Context) error {
	if !r.applies() {
		return nil
	}
	err := r.g.DB.Update(ctx, func(tx *store.Tx) error { return r.claimInTx(ctx, tx, r.draftID) })
	if reeve.CodeOf(err) == reeve.UnknownOutcome { // the claim may be there, for a call that is not made
		r.release(ctx)
	}
	return err
}

// release gives back what was claimed for a read that is not recorded after all.
func (r *reservation) release(ctx context.Context) {
	if r.reservationKey == "" {
		return
	}
	detached := context.WithoutCancel(ctx)
	err := r.g.DB.Update(detached, func(tx *store.Tx) error { return r.spendInTx(detached, tx, reeve.Amount{}) })
	if err != nil {
		r.g.Log.Warn("a claim on a budget stays until the next start", "call", r.reservationKey, "error", err)
	}
}

// spendInTx turns the claim into what was spent. A call that claimed nothing and spent nothing changes nothing.
func (r *reservation) spendInTx(ctx context.Context, tx *store.Tx, a reeve.Amount) error {
	if r.reservationKey == "" && (a.IsZero() || !r.applies()) {
		return nil
	}
	budgets, err := r.readBudgets(ctx, tx.Ledger().GetBudget)
	if err != nil {
		return err
	}
	return tx.Ledger().Spend(ctx, r.call.Workspace, subjectsOf(budgets), r.reservationKey, a)
}

// staleIfExhausted returns the error of a call that could not be let go. If a budget ran out since the decision, the call is
// decided again.
func staleIfExhausted(err error) error {
	if errors.As(err, new(*budgetExhausted)) {
		return store.ErrStaleDecision{}
	}
	return err
}
