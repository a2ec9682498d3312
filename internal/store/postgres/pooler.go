package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"reeve"
)

// A connection pooler such as PgBouncer in transaction mode gives each transaction another connection of PostgreSQL.
// What belongs to a session (prepared statements, SET, session locks) is lost or reaches other clients. So behind a
// pooler the engine uses none of it: statements are not prepared by name, and settings are made anew in each
// transaction.

// The planner settings of our connections. A prepared statement keeps its plan, and a plan made while a table was
// empty reads all of it when it is full. So plans use an index wherever there is one. Compiling plans takes longer
// than our statements do.
const (
	sessionSettings = "SET enable_seqscan = off; SET random_page_cost = 1; SET jit = off"
	localSettings   = "SELECT set_config('enable_seqscan', 'off', true), set_config('random_page_cost', '1', true), " +
		"set_config('jit', 'off', true)"
)

var errPooler = reeve.Errorf(reeve.Unavailable, "a connection pooler was put before PostgreSQL while the server ran").
	Hintf("start the server again; it then uses the pooler as it should")

// setUp prepares a new connection to PostgreSQL itself. It fails with errPooler if the connection leads to a pooler:
// those announce a process id of their own in place of the backend's.
func setUp(ctx context.Context, c *pgx.Conn) error {
	var backend uint32
	err := c.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&backend)
	if err != nil {
		return err
	}
	if backend != c.PgConn().PID() {
		return errPooler
	}
	_, err = c.Exec(ctx, sessionSettings)
	return err
}

// start gives the statements that start a transaction: begin, if it is given, and the settings that the connection
// lacks.
func (e *Engine) start(begin ...string) []string {
	if e.pooler {
		return append(begin, localSettings)
	}
	return begin
}

// allowsTransactions refuses a pooler in a mode that has no transactions of several statements.
func allowsTransactions(ctx context.Context, pool *pgxpool.Pool) error {
	tx, err := pool.Begin(ctx)
	if err == nil {
		err = tx.Rollback(ctx)
	}
	if err != nil {
		return reeve.Errorf(reeve.Unsupported, "the connection pooler before PostgreSQL allows no transactions: %w",
			err).
			Hintf("set pool_mode = transaction (or session) for this database in PgBouncer, or give PostgreSQL's own " +
				"address")
	}
	return nil
}
