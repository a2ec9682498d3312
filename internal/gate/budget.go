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

// subjects is whose budgets a call draws on, in order: its run's, the agent's, the workspace's, and those of everybody on whose behalf
// it is made. Their parents are not among them.
func (p *pass) subjects() []string {
	list := []string{"agent:" + p.call.Agent, "workspace"}
	if p.call.Run != "" {
		list = append(list, "run:"+p.call.Run)
	}
	for _, b := range p.behalf { // what it spends, those spend who had it called
		if list = append(list, "agent:"+b.AgentID); b.RunID != "" {
			list = append(list, "run:"+b.RunID)
		}
	}
	slices.Sort(list)
	return list
}

// budgeted tells whether any budget can apply. Those of runs come and go without the workspace being touched.
func (p *pass) budgeted() bool {
	return p.view.workspace.budgets || p.g.RunBudgets && p.call.Run != ""
}

// maxParents bounds a chain of budgets, should it be a circle.
const maxParents = 64

// budgeter reads a budget, locked or not.
type budgeter func(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error)

// drawn lists the budgets a call draws on, with their parents, in the order of their subjects: whoever changes several of them does so in that one, and two calls never lock them crosswise.
func (p *pass) drawn(ctx context.Context, get budgeter) ([]reeve.Budget, error) {
	out, err := p.follow(ctx, get, p.subjects())
	slices.SortFunc(out, func(a, b reeve.Budget) int { return strings.Compare(a.Subject, b.Subject) })
	return out, err
}

// locked is drawn for a call that claims: it holds each of them. Which are parents is looked up before any is held; one that became a parent since is held last, out of order, by a call that is judged again.
func (p *pass) locked(ctx context.Context, tx *store.Tx) ([]reeve.Budget, error) {
	queue := p.subjects()
	if p.view.workspace.nested {
		found, err := p.drawn(ctx, tx.GetBudget)
		if err != nil {
			return nil, err
		}
		queue = named(found)
	}
	return p.follow(ctx, tx.LockBudget, queue)
}

// named gives the subjects of budgets.
func named(budgets []reeve.Budget) []string {
	out := make([]string, len(budgets))
	for i, b := range budgets {
		out[i] = b.Subject
	}
	return out
}

// follow reads budgets, and their parents as they are found.
func (p *pass) follow(ctx context.Context, get budgeter, queue []string) ([]reeve.Budget, error) {
	seen := map[string]bool{}
	var out []reeve.Budget
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
	return "the budget of " + e.budget.Subject + " has too few " + e.what + " left"
}

func (e *exhausted) refusal() error {
	return reeve.Errorf(reeve.BudgetExceeded, "%s", e.Error()).Hintf("an owner can raise it")
}

// check finds a budget that the call would overdraw: one that ends it before one that would ask. A person who was asked about
// a budget has let the call past those that ask, and past no other.
func (p *pass) check(budgets []reeve.Budget) error {
	var asks *exhausted
	for _, b := range budgets {
		what := over(b, p.cost())
		switch {
		case what == "":
		case !parks(b):
			return &exhausted{b, what}
		case asks == nil && !p.letPast():
			asks = &exhausted{b, what}
		}
	}
	if asks != nil {
		return asks
	}
	return nil
}

// parks tells whether a person is asked about what is over the budget.
func parks(b reeve.Budget) bool { return b.OnExceed == reeve.ParkOver }

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
		budgets, err := p.drawn(ctx, s.GetBudget)
		if err != nil {
			return err
		}
		return p.check(budgets)
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
	budgets, err := p.locked(ctx, tx)
	if err == nil {
		err = p.check(budgets)
	}
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
	err := p.g.DB.Update(ctx, func(tx *store.Tx) error { return p.reserveIn(ctx, tx) })
	if reeve.CodeOf(err) == reeve.UnknownOutcome { // it may be claimed, for a call that is not made
		p.letGo(ctx)
	}
	return err
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
	return tx.Spend(ctx, p.call.Workspace, named(budgets), p.held, a)
}
