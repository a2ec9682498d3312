package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

// reservation is what a call reserves of the budgets that apply to it.
type reservation struct {
	*request
	cost                 reeve.Amount     // the most that the call may cost
	model                *reeve.ModelCost // cost of a model request, from which cost is computed; nil for calls
	maxOutput            int64            // the cap of a model's answer that the budgets leave
	timeout              time.Duration    // the timeout of the tool
	ignoresAskingBudgets bool             // see Decision.ignoresAskingBudgets
	reservationKey       string           // the call id under which amounts are reserved; empty if nothing is reserved
	timeLeft             time.Duration    // time that the budgets leave for the call; 0 if no budget limits it
}

// newReservation returns the reservation of a call. It reserves nothing yet.
func newReservation(d *Decision) *reservation {
	if d.entry == nil {
		return &reservation{request: d.request}
	}
	return &reservation{request: d.request, cost: d.tool().Cost, timeout: d.tool().Timeout(),
		ignoresAskingBudgets: d.ignoresAskingBudgets()}
}

// ignoresAskingBudgets reports whether budgets that ask a person do not stop the call. A person may already have
// approved that the call exceeds a budget. A proposal is reserved when it is applied, and a person decides on it
// anyway.
func (d *Decision) ignoresAskingBudgets() bool {
	return d.isProposal || d.approval != nil && d.resumed != nil && d.resumed.Code == reeve.BudgetExceeded
}

// subjects lists the subjects whose budgets apply to the call, sorted: its run, its agent, the workspace, and the runs
// and agents of its principals. It does not list parents of budgets.
func (r *reservation) subjects() []string {
	list := []string{"agent:" + r.call.Agent, "workspace"}
	if r.call.Run != "" {
		list = append(list, "run:"+r.call.Run)
	}
	for _, p := range r.chain { // the call is charged to its principals too
		if list = append(list, "agent:"+p.AgentID); p.RunID != "" {
			list = append(list, "run:"+p.RunID)
		}
	}
	slices.Sort(list)
	return list
}

// applies reports whether any budget can apply. Budgets of runs do not change the revision of the workspace, so the
// view does not know about them.
func (r *reservation) applies() bool {
	return r.view.workspace.hasBudgets || r.g.RunBudgets && r.call.Run != ""
}

// maxParents limits how many budgets are read for one call, in case their parents form a cycle.
const maxParents = 64

// budgetReader reads a budget, with or without a row lock.
type budgetReader func(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error)

// readBudgets lists the budgets that apply to the call, with their parents, sorted by subject. All calls lock budgets
// in this order, which avoids deadlocks.
func (r *reservation) readBudgets(ctx context.Context, get budgetReader) ([]reeve.Budget, error) {
	out, err := r.readWithParents(ctx, get, r.subjects())
	slices.SortFunc(out, func(a, b reeve.Budget) int { return strings.Compare(a.Subject, b.Subject) })
	return out, err
}

// lockBudgets is like readBudgets but locks each row. It finds the parents before it locks any row. A budget that has
// become a parent since is locked last, out of order. In that case the revision check fails and the gate decides again.
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

// readWithParents reads the budgets of the subjects in queue and, transitively, their parents.
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

// claimedAmount returns the amount that the call reserves. It reserves the time that is left, up to the tool's timeout.
func (r *reservation) claimedAmount() reeve.Amount {
	a := r.cost
	a.Calls, a.Millis = 1, r.timeLimit(0).Milliseconds()
	return a
}

// timeLimit returns how long the next attempt may take after attempts that took elapsed.
func (r *reservation) timeLimit(elapsed time.Duration) time.Duration {
	if r.timeLeft > 0 {
		return min(r.timeout, max(r.timeLeft-elapsed, time.Millisecond))
	}
	return r.timeout
}

// hasTime reports whether the budgets leave time for another attempt after attempts that took elapsed.
func (r *reservation) hasTime(elapsed time.Duration) bool {
	return r.timeLeft == 0 || elapsed < r.timeLeft
}

// exhaustedResource returns the name of a resource of which the budget has less left than c, or an empty string if it
// has enough. For time, any remainder is enough.
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

// budgetExhausted is the error for a call that would exceed a budget.
type budgetExhausted struct {
	budget   reeve.Budget
	resource string
	wanted   reeve.Amount
}

func (e *budgetExhausted) Error() string {
	return "the budget of " + e.budget.Subject + " has too few " + e.resource + " left"
}

// describe is Error with the amounts. It is for people only: models must not learn the operator's limits.
func (e *budgetExhausted) describe() string {
	left := e.budget.Left()
	var amounts string
	switch e.resource {
	case "calls":
		amounts = fmt.Sprintf("%d wanted, %d left", e.wanted.Calls, max(0, left.Calls))
	case "tokens":
		amounts = fmt.Sprintf("%d wanted, %d left", e.wanted.Tokens, max(0, left.Tokens))
	case "money":
		amounts = fmt.Sprintf("%.6f wanted, %.6f left", float64(e.wanted.Micros)/1e6,
			float64(max(0, left.Micros))/1e6)
	default:
		return e.Error()
	}
	return e.Error() + " (" + amounts + ")"
}

func (e *budgetExhausted) refusal() error {
	return reeve.Errorf(reeve.BudgetExceeded, "%s", e.Error()).Hintf("an owner can raise the budget")
}

// checkBudgets returns an error if the call would exceed a budget. A budget that refuses takes precedence over one that
// asks a person.
func (r *reservation) checkBudgets(budgets []reeve.Budget) error {
	var asks *budgetExhausted
	for _, b := range budgets {
		what := exhaustedResource(b, r.claimedAmount())
		switch {
		case what == "":
		case !asksPerson(b):
			return &budgetExhausted{b, what, r.claimedAmount()}
		case asks == nil && !r.ignoresAskingBudgets:
			asks = &budgetExhausted{b, what, r.claimedAmount()}
		}
	}
	if asks != nil {
		return asks
	}
	return nil
}

// asksPerson reports whether a person decides on a call that would exceed the budget.
func asksPerson(b reeve.Budget) bool { return b.OnExceed == reeve.ParkOverBudget }

// checkBudget checks whether the budgets have enough left. Nothing is reserved yet; claimInTx checks again.
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
		return "the budgets have enough left", err
	}
	if !asksPerson(short.budget) || !d.tool().Effect.Mutates() {
		return "", short.refusal()
	}
	why := short.describe()
	if d.overBudget = true; d.waitReason != "" {
		d.waitReason += ", and "
	}
	d.waitReason += why
	return why, nil
}

// claimInTx reserves the cost of the call in the transaction that admits it. It fails if another call has used up a
// budget.
func (r *reservation) claimInTx(ctx context.Context, tx *store.Tx, key string) error {
	if !r.applies() {
		return nil
	}
	budgets, err := r.lockBudgets(ctx, tx)
	if err == nil {
		r.fitOutput(budgets)
		err = r.checkBudgets(budgets)
	}
	if err != nil {
		return err
	}
	r.timeLeft = 0
	for _, b := range budgets {
		if left := b.Limit.Millis - b.Used.Millis - b.Reserved.Millis; b.Limit.Millis > 0 && left > 0 {
			// a longer time has no effect and could overflow a Duration
			left = min(left, r.timeout.Milliseconds())
			if left := time.Duration(left) * time.Millisecond; r.timeLeft == 0 || left < r.timeLeft {
				r.timeLeft = left
			}
		}
	}
	return r.reserve(ctx, tx, key, budgets)
}

// fitOutput lowers the cap of a model's answer to what the budgets leave, and computes the cost of the request.
func (r *reservation) fitOutput(budgets []reeve.Budget) {
	if r.model == nil {
		return
	}
	r.maxOutput = r.model.Output
	for _, b := range budgets {
		r.maxOutput = min(r.maxOutput, r.model.FitOutput(b))
	}
	r.cost = r.model.Amount(r.maxOutput)
	r.cost.Millis = 0 // the time is limited by timeout
}

// renewInTx reserves again for a call that is still in progress, even if a budget has too little left.
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
		if err := tx.Ledger().Reserve(ctx, r.call.Workspace, b.Subject, key, r.g.processID,
			r.claimedAmount()); err != nil {
			return err
		}
	}
	return nil
}

// claim reserves the cost of a read, which has no transaction before it runs.
func (r *reservation) claim(ctx context.Context) error {
	if !r.applies() {
		return nil
	}
	err := r.g.DB.Update(ctx, func(tx *store.Tx) error { return r.claimInTx(ctx, tx, r.draftID) })
	if reeve.CodeOf(err) == reeve.UnknownOutcome { // the reservation may exist, although the call is not made
		r.release(ctx)
	}
	return err
}

// release cancels the reservation of a read that is not recorded.
func (r *reservation) release(ctx context.Context) {
	if r.reservationKey == "" {
		return
	}
	detached := context.WithoutCancel(ctx)
	err := r.g.DB.Update(detached, func(tx *store.Tx) error { return r.spendInTx(detached, tx, reeve.Amount{}) })
	if err != nil {
		r.g.Log.Warn("could not release a budget reservation; it stays until the next start", "call", r.reservationKey,
			"error", err)
	}
}

// spendInTx replaces the reservation by the amount that was spent.
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

// staleIfExhausted converts a budgetExhausted error into ErrStaleDecision, so that the gate decides again. It returns
// other errors unchanged.
func staleIfExhausted(err error) error {
	if errors.As(err, new(*budgetExhausted)) {
		return store.ErrStaleDecision{}
	}
	return err
}
