package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// subjects is the chain of budgets a call draws on: its run's, the agent's, the workspace's, and those of everybody on whose behalf
// it is made. Parents are followed as they are found.
func (p *pass) subjects() []string {
	var list []string
	agents := []string{"agent:" + p.call.Agent}
	if p.call.Run != "" {
		list = append(list, "run:"+p.call.Run)
	}
	for _, b := range slices.Backward(p.behalf) { // what it spends, those spend who had it called
		if agents = append(agents, "agent:"+b.AgentID); b.RunID != "" {
			list = append(list, "run:"+b.RunID)
		}
	}
	slices.Sort(agents)
	return append(append(list, agents...), "workspace")
}

// budgeted tells whether any budget can apply. Those of runs come and go without the workspace being touched.
func (p *pass) budgeted() bool {
	return p.view.workspace.budgets || p.g.RunBudgets && p.call.Run != ""
}

// maxParents bounds a chain of budgets, should it be a circle.
const maxParents = 64

// budgeter reads a budget, locked or not.
type budgeter func(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error)

// drawn lists the budgets a call draws on, in a fixed order so that two calls never lock them crosswise.
func (p *pass) drawn(ctx context.Context, get budgeter) ([]reeve.Budget, error) {
	seen := map[string]bool{}
	var out []reeve.Budget
	queue := p.subjects()
	for i := 0; i < len(queue) && i < maxParents; i++ {
		if seen[queue[i]] {
			continue
		}
		seen[queue[i]] = true
		b, ok, err := get(ctx, p.call.Workspace, queue[i])
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

// cost is what the call may spend at the most. Of time it may spend what is left: its timeout is cut to that.
func (p *pass) cost() reeve.Amount {
	c := p.tool().Cost
	c.Calls, c.Millis = 1, p.limit().Milliseconds()
	return c
}

// limit is how long an attempt may take.
func (p *pass) limit() time.Duration {
	if p.allowed > 0 {
		return min(p.tool().Timeout(), max(p.allowed-p.took(), time.Millisecond))
	}
	return p.tool().Timeout()
}

// timeLeft tells whether budgets leave time for another attempt.
func (p *pass) timeLeft() bool { return p.allowed == 0 || p.took() < p.allowed }

// took is how long the attempts so far have taken.
func (p *pass) took() time.Duration { return time.Duration(p.spent.Millis) * time.Millisecond }

// over names what a budget has too little of; empty means it has enough. Of time any rest is enough.
func over(b reeve.Budget, c reeve.Amount) string {
	if b.Broken != "" {
		return "of everything"
	}
	short := func(limit, used, reserved, want int64) bool {
		return limit > 0 && reeve.Add(reeve.Add(used, reserved), want) > limit
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

// exhausted is a budget that a call would overdraw.
type exhausted struct {
	budget reeve.Budget
	what   string
}

func (e *exhausted) Error() string {
	if e.budget.Broken != "" {
		return "nobody can tell what is left of the budget of " + e.budget.Subject + ": " + e.budget.Broken
	}
	return "the budget of " + e.budget.Subject + " has too few " + e.what + " left"
}

func (e *exhausted) refusal() error {
	if e.budget.Broken != "" {
		return reeve.Errorf(reeve.BudgetExceeded, "%s", e.Error()).Hintf("an owner mends it by setting it again: reeve budgets set %s, or PUT /api/budgets/%s", e.budget.Subject, e.budget.Subject)
	}
	return reeve.Errorf(reeve.BudgetExceeded, "%s", e.Error()).Hintf("an owner can raise it")
}

// check finds a budget that the call would overdraw: one that ends it before one that would ask. A person who was asked about
// a budget has let the call past those that ask, and past no other.
func (p *pass) check(ctx context.Context, get budgeter) ([]reeve.Budget, error) {
	budgets, err := p.drawn(ctx, get)
	if err != nil {
		return nil, err
	}
	var asks *exhausted
	for _, b := range budgets {
		what := over(b, p.cost())
		switch {
		case what == "":
		case !parks(b):
			return budgets, &exhausted{b, what}
		case asks == nil && !p.letPast():
			asks = &exhausted{b, what}
		}
	}
	if asks != nil {
		return budgets, asks
	}
	return budgets, nil
}

// parks tells whether a person is asked about what is over the budget. Of one that is damaged there is nothing to ask.
func parks(b reeve.Budget) bool { return b.OnExceed == reeve.ParkOver && b.Broken == "" }

// letPast tells whether a person was asked about a budget, and let the call go. What is only proposed is not held up by one that
// would ask: a person decides on it anyway, and it draws on the budget when it is applied.
func (p *pass) letPast() bool {
	return p.proposes || p.approval != nil && p.resumed != nil && p.resumed.Code == reeve.BudgetExceeded
}

// budget asks whether enough is left. What it says is confirmed when the amount is reserved.
func (p *pass) budget(ctx context.Context) (string, error) {
	if !p.budgeted() || p.call.PreviewOnly {
		return "no budget applies", nil
	}
	var short *exhausted
	err := p.g.DB.View(ctx, func(s *store.Snap) error {
		_, err := p.check(ctx, s.GetBudget)
		return err
	})
	if !errors.As(err, &short) {
		return "enough is left", err
	}
	if !parks(short.budget) || !p.tool().Effect.Mutates() {
		return "", short.refusal()
	}
	why := short.Error()
	if p.short = true; p.waits != "" {
		p.waits += ", and "
	}
	p.waits += why
	return why, nil
}

// reserveIn claims what the call may spend, in the transaction that lets it go. It is over budget if another call was faster.
func (p *pass) reserveIn(ctx context.Context, tx *store.Tx) error {
	if !p.budgeted() {
		return nil
	}
	budgets, err := p.check(ctx, tx.LockBudget)
	if err != nil {
		return err
	}
	p.allowed = 0
	for _, b := range budgets {
		if left := b.Limit.Millis - b.Used.Millis - b.Reserved.Millis; b.Limit.Millis > 0 && left > 0 {
			left = min(left, p.tool().Timeout().Milliseconds()) // more makes no difference, and may be more than a duration holds
			if left := time.Duration(left) * time.Millisecond; p.allowed == 0 || left < p.allowed {
				p.allowed = left
			}
		}
	}
	return p.holdOn(ctx, tx, budgets)
}

// hold claims again for a call that is still under way, whatever is left.
func (p *pass) hold(ctx context.Context, tx *store.Tx) error {
	if !p.budgeted() {
		return nil
	}
	budgets, err := p.drawn(ctx, tx.GetBudget)
	if err != nil {
		return err
	}
	return p.holdOn(ctx, tx, budgets)
}

func (p *pass) holdOn(ctx context.Context, tx *store.Tx, budgets []reeve.Budget) error {
	p.held = p.id
	for _, b := range budgets {
		if err := tx.Reserve(ctx, p.call.Workspace, b.Subject, p.held, p.g.process, p.cost()); err != nil {
			return err
		}
	}
	return nil
}

// reserve claims for a read, which has no transaction before it runs.
func (p *pass) reserve(ctx context.Context) error {
	if !p.budgeted() {
		return nil
	}
	return p.g.DB.Update(ctx, func(tx *store.Tx) error { return p.reserveIn(ctx, tx) })
}

// letGo gives back what was claimed for a read that is not recorded after all.
func (p *pass) letGo(ctx context.Context) {
	if p.held == "" {
		return
	}
	keep := context.WithoutCancel(ctx)
	if err := p.g.DB.Update(keep, func(tx *store.Tx) error { return p.spend(keep, tx, reeve.Amount{}) }); err != nil {
		p.g.Log.Warn("a claim on a budget stays until the next start", "call", p.held, "error", err)
	}
}

// notReserved answers for a call that was overtaken on its way out: if a budget ran out meanwhile it is judged again.
func (p *pass) notReserved(err error) (reeve.Result, error) {
	if errors.As(err, new(*exhausted)) {
		return reeve.Result{}, store.Stale{}
	}
	return reeve.Result{}, err
}

// spend turns the claim into what was spent. A call that claimed nothing and spent nothing changes nothing.
func (p *pass) spend(ctx context.Context, tx *store.Tx, a reeve.Amount) error {
	if p.held == "" && (a.IsZero() || !p.budgeted()) {
		return nil
	}
	budgets, err := p.drawn(ctx, tx.GetBudget)
	if err != nil {
		return err
	}
	names := make([]string, len(budgets))
	for i, b := range budgets {
		names[i] = b.Subject
	}
	return tx.Spend(ctx, p.call.Workspace, names, p.held, a)
}
