package store

import (
	"context"

	"reeve"
)

const proposalColumns = `id, workspace_id, set_id, ordinal, round, agent_id, run_id, thread_id, call_id, tool, args,
	args_hash, tool_version, settings,
	base, preview, reason, user_id, state, decided_by, comment, decided_at, reopened_by, reopened_at, operation_id,
	created_at, private_to`

// proposalState is the state of a proposal p: the person's decision and, once accepted, the outcome of its operation o.
// It is computed and not stored, so that it always agrees with the calls.
const proposalState = `CASE WHEN p.state <> 'accepted' THEN p.state WHEN o.state = 'committed' THEN 'applied' 
	WHEN o.state IN ('denied', 'failed') AND o.code = 'STALE' THEN 'stale' WHEN o.state IN ('denied', 'failed',
	'unknown') THEN o.state ELSE 'accepted' END`

const selectProposal = `SELECT p.id, p.workspace_id, p.set_id, p.ordinal, p.round, p.agent_id, p.run_id, p.thread_id,
	p.call_id, p.tool, p.args, p.args_hash,
	p.tool_version, p.settings, p.base, p.preview, p.reason, p.user_id, ` + proposalState + `, p.decided_by, p.comment,
	p.decided_at, p.reopened_by,
	p.reopened_at, p.operation_id, p.created_at, p.private_to, COALESCE(o.code, ''), COALESCE(o.message, '')
	FROM proposals p LEFT JOIN calls o ON o.operation_id = p.operation_id `

func scanProposal(r scanner) (p reeve.Proposal, err error) {
	defer wrapCorrupt("proposals", &p.ID, &err)
	var decided, reopened, created int64
	err = r.Scan(&p.ID, &p.WorkspaceID, &p.SetID, &p.Ordinal, &p.Round, &p.AgentID, &p.RunID, &p.ThreadID, &p.CallID,
		&p.Tool, &p.Args, &p.ArgsHash,
		&p.ToolVersion, &p.Settings, &p.Base, &p.Preview, &p.Reason, &p.UserID, &p.State, &p.DecidedBy, &p.Comment,
		&decided, &p.ReopenedBy,
		&reopened, &p.OperationID, &created, &p.PrivateTo, &p.Code, &p.Message)
	p.DecidedAt, p.ReopenedAt, p.CreatedAt = timeOrNil(decided), timeOrNil(reopened), reeve.FromMillis(created)
	return p, err
}

// InsertProposal inserts a proposal. It returns ErrStaleDecision if another proposal has the same ordinal in the set or
// the same round.
func (t LedgerTx) InsertProposal(ctx context.Context, p reeve.Proposal) error {
	t.tx.announceInbox(p.WorkspaceID, TopicProposals, announcedID(p.ID, p.PrivateTo), "")
	return t.tx.execMapFault(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return ErrStaleDecision{}
		}
		return nil
	}, `INSERT INTO proposals (`+proposalColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, '', '', 0, '', 0,
		'', $20, $21)`,
		p.ID, p.WorkspaceID, p.SetID, p.Ordinal, p.Round, p.AgentID, p.RunID, p.ThreadID, p.CallID, p.Tool,
		reeve.SanitizeText(p.Args), p.ArgsHash, p.ToolVersion, p.Settings,
		p.Base, reeve.SanitizeText(p.Preview), reeve.SanitizeText(p.Reason), p.UserID, string(p.State),
		reeve.Millis(t.now), p.PrivateTo)
}

// GetProposal returns a proposal of a workspace.
func (s Ledger) GetProposal(ctx context.Context, workspace, id string) (reeve.Proposal, error) {
	p, ok, err := queryOne(ctx, s.Snap, scanProposal, selectProposal+`WHERE p.workspace_id = $1 AND p.id = $2`,
		workspace,
		id)
	if err == nil && (!ok || !s.canSee(p.PrivateTo)) {
		return reeve.Proposal{}, notFound("proposal", id)
	}
	return p, err
}

// LastProposal returns the decisive proposal of a call with these arguments on behalf of a user, or of no user: a
// rejected one, else a pending one, else the newest. It returns false if there is none.
func (s Ledger) LastProposal(ctx context.Context, agent, tool, argsHash, user string) (reeve.Proposal, bool, error) {
	return queryOne(ctx, s.Snap, scanProposal, selectProposal+`WHERE p.agent_id = $1 AND p.tool = $2
		AND p.args_hash = $3 AND p.user_id = $4
		ORDER BY CASE p.state WHEN 'rejected' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, p.round DESC LIMIT 1`,
		agent, tool, argsHash, user)
}

// LastRound returns the highest round of an agent's proposals of a call with these arguments, for any user.
func (s Ledger) LastRound(ctx context.Context, agent, tool, argsHash string) (int, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int],
		`SELECT COALESCE(max(round), 0) FROM proposals WHERE agent_id = $1 AND tool = $2 AND args_hash = $3`, agent,
		tool, argsHash)
	return n, err
}

// LastOrdinal returns the highest ordinal in a change set, or 0 if it has no items.
func (s Ledger) LastOrdinal(ctx context.Context, set string) (int, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int], `SELECT COALESCE(max(ordinal), 0) FROM proposals
		WHERE set_id = $1`, set)
	return n, err
}

// TransitionProposal stores the decision on a proposal. It returns ErrStaleDecision if the proposal is no longer in the
// state from.
func (t LedgerTx) TransitionProposal(ctx context.Context, p reeve.Proposal, from reeve.ProposalState) error {
	t.tx.announceInbox(p.WorkspaceID, TopicProposals, announcedID(p.ID, p.PrivateTo), "")
	n, err := t.tx.execCount(ctx, `UPDATE proposals SET state = $3, decided_by = $4, comment = $5, decided_at = $6,
		reopened_by = $7, reopened_at = $8, operation_id = $9
		WHERE id = $1 AND state = $2`, p.ID, string(from), string(p.State), p.DecidedBy, reeve.SanitizeText(p.Comment),
		millisOrZero(p.DecidedAt), p.ReopenedBy, millisOrZero(p.ReopenedAt), p.OperationID)
	if err == nil && n == 0 {
		return ErrStaleDecision{}
	}
	return err
}

// ProposalFilter restricts a list of proposals. Empty fields do not restrict it.
type ProposalFilter struct {
	Agent  string
	Set    string
	State  reeve.ProposalState
	Before string // a proposal's id
	Limit  int
}

// ListProposals returns a page of proposals, newest first.
func (s Ledger) ListProposals(ctx context.Context, workspace string, f ProposalFilter) ([]reeve.Proposal, error) {
	where := `p.workspace_id = $1 AND ($3 = '' OR p.agent_id = $3) AND ($4 = '' OR ` + proposalState + ` = $4)` +
		indexCondition(f.Set, `p.set_id = `, `$5`) + indexCondition(f.Before, `p.id < `, `$6`)
	args := []any{workspace, f.Limit, f.Agent, string(f.State), f.Set, f.Before}
	if f.State == reeve.ProposalPending {
		where += ` AND p.state = 'pending'` // uses the index of pending proposals
	}
	where, args = s.onlyVisible(`p.private_to`, where, args)
	return queryAll(ctx, s.Snap, scanProposal, selectProposal+`WHERE `+where+` ORDER BY p.id DESC LIMIT $2`, args...)
}

// indexCondition returns a condition on a column that an index scan can start from, if value is not empty. Otherwise it
// returns a condition that only uses the parameter, because PostgreSQL refuses unused parameters.
func indexCondition(value, column, parameter string) string {
	if value == "" {
		return ` AND ` + parameter + ` = ''`
	}
	return ` AND ` + column + parameter
}

// ListChangeSetItems returns the items of a change set after an ordinal, in order. If pending is true, it returns only
// pending items.
func (s Ledger) ListChangeSetItems(ctx context.Context, workspace, set string, pending bool,
	after, limit int) ([]reeve.Proposal, error) {
	where, args := s.onlyVisible(`p.private_to`, `p.workspace_id = $1 AND p.set_id = $2 AND p.ordinal > $3`,
		[]any{workspace, set, after, limit})
	if pending {
		where += ` AND p.state = 'pending'`
	}
	return queryAll(ctx, s.Snap, scanProposal, selectProposal+`WHERE `+where+` ORDER BY p.ordinal LIMIT $4`, args...)
}

// ChangeSetFilter restricts a list of change sets. Empty fields do not restrict it.
type ChangeSetFilter struct {
	ID      string
	Agent   string
	Pending bool   // only sets with a pending item
	Before  string // the id of a set's first item
	Limit   int
}

// ListChangeSets returns a page of change sets, newest first, and the cursor after each. A change set has no row of its
// own. It is found by its first item, so that the cost of a page depends only on the sets in it.
func (s Ledger) ListChangeSets(ctx context.Context, workspace string,
	f ChangeSetFilter) (sets []reeve.ChangeSet, cursors []string, err error) {
	page := `SELECT p.id, p.set_id, p.agent_id, p.run_id, p.thread_id, p.created_at FROM proposals p
		WHERE p.workspace_id = $1 AND p.ordinal = 1
		AND ($3 = '' OR p.agent_id = $3)` + indexCondition(f.ID, `p.set_id = `, `$2`) + indexCondition(f.Before,
		`p.id < `, `$4`)
	args := []any{workspace, f.ID, f.Agent, f.Before, f.Limit}
	visible, _ := s.onlyVisible(`p.private_to`, ``, args)
	item, args := s.onlyVisible(`i.private_to`, `i.set_id = p.set_id`, args)
	if f.Pending {
		item += ` AND i.state = 'pending'`
	}
	if f.Pending || s.viewer != nil { // every set has an item
		page += ` AND EXISTS (SELECT 1 FROM proposals i WHERE ` + item + `)`
	}
	page += ` ORDER BY p.id DESC LIMIT $5`
	type count struct {
		set   reeve.ChangeSet
		first string
		state reeve.ProposalState
		n     int
	}
	counts, err := queryAll(ctx, s.Snap, func(r scanner) (c count, err error) {
		var created int64
		err = r.Scan(&c.first, &c.set.ID, &c.set.AgentID, &c.set.RunID, &c.set.ThreadID, &created, &c.state, &c.n)
		c.set.CreatedAt = reeve.FromMillis(created)
		return c, err
	}, `SELECT f.id, f.set_id, f.agent_id, f.run_id, f.thread_id, f.created_at, `+proposalState+` AS stands, count(*)
		FROM (`+page+`) f JOIN proposals p ON p.set_id = f.set_id`+visible+` LEFT JOIN calls o ON o.operation_id = p.operation_id
		GROUP BY f.id, f.set_id, f.agent_id, f.run_id, f.thread_id, f.created_at, stands ORDER BY f.id DESC`,
		args...)
	sets = []reeve.ChangeSet{}
	for _, c := range counts {
		if n := len(sets); n == 0 || sets[n-1].ID != c.set.ID {
			c.set.Counts = map[reeve.ProposalState]int{}
			sets, cursors = append(sets, c.set), append(cursors, c.first)
		}
		sets[len(sets)-1].Counts[c.state] = c.n
	}
	return sets, cursors, err
}

// GetChangeSet returns a change set of a workspace without its items.
func (s Ledger) GetChangeSet(ctx context.Context, workspace, id string) (reeve.ChangeSet, error) {
	sets, _, err := s.ListChangeSets(ctx, workspace, ChangeSetFilter{ID: id, Limit: 1})
	if err != nil {
		return reeve.ChangeSet{}, err
	}
	if len(sets) == 0 {
		return reeve.ChangeSet{}, notFound("change set", id)
	}
	return sets[0], nil
}
