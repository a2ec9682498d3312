package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"reeve"
)

// A connection pooler such as PgBouncer in transaction mode may run each transaction on another connection to
// PostgreSQL. The state of a session (prepared statements, SET, session locks) is lost or affects other clients. Behind
// a pooler the engine therefore does not name prepared statements, and applies its settings in each transaction.

// Planner settings of the engine's connections. A prepared statement keeps its plan, and a plan that was made for an
// empty table would scan the whole table after it has grown. The settings make plans use an index where there is one.
// JIT compilation would take longer than the statements themselves.
const (
	sessionSettings = "SET enable_seqscan = off; SET random_page_cost = 1; SET jit = off"
	localSettings   = "SELECT set_config('enable_seqscan', 'off', true), set_config('random_page_cost', '1', true), " +
		"set_config('jit', 'off', true)"
)

var errPooler = reeve.Errorf(reeve.Unavailable,
	"the database URL leads to a connection pooler since the server started").
	Hintf("restart the server, so that it detects the pooler")

// setUpConn applies the settings to a new connection. It returns errPooler if the connection leads to a pooler, which
// announces a different process id from that of the backend.
func setUpConn(ctx context.Context, c *pgx.Conn) error {
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

// startStatements returns the statements that start a transaction: begin, if given, and the settings behind a pooler.
func (e *Engine) startStatements(begin ...string) []string {
	if e.pooler {
		return append(begin, localSettings)
	}
	return begin
}

// checkTransactions returns an error if the pooler does not support transactions of several statements.
func checkTransactions(ctx context.Context, pool *pgxpool.Pool) error {
	tx, err := pool.Begin(ctx)
	if err == nil {
		err = tx.Rollback(ctx)
	}
	if err != nil {
		return reeve.Errorf(reeve.Unsupported, "connection pooler does not support transactions: %w",
			err).
			Hintf("set pool_mode = transaction (or session) for this database in PgBouncer, or use a direct URL of " +
				"PostgreSQL")
	}
	return nil
}
