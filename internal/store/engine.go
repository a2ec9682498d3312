package store

import (
	"context"
	"database/sql"
	"errors"

	"reeve"
)

// Engine is a database. It does not know Reeve's tables.
type Engine interface {
	// Name returns "sqlite" or "postgres".
	Name() string
	// Update runs f in one write transaction and commits it. It may run f again after a conflict with another
	// transaction.
	Update(ctx context.Context, f func(Conn) error) error
	// View runs f on one consistent snapshot. It stops a running query when ctx is done.
	View(ctx context.Context, f func(Conn) error) error
	// LockClause returns the clause that locks selected rows and skips rows that other transactions have locked. It
	// returns "" if the engine does not need the clause.
	LockClause() string
	// ShareClause returns the clause that keeps others from changing selected rows until the transaction ends. It
	// returns "" if the engine does not need the clause.
	ShareClause() string
	// Migrator opens a database/sql handle for migrations. It also returns goose's name of the dialect.
	Migrator(ctx context.Context) (*sql.DB, string, error)
	// Fault converts an error of the migration handle to a Fault.
	Fault(error) error
	// Backup writes a consistent copy to a new file. Other transactions may write meanwhile.
	Backup(ctx context.Context, file string) error
	// SingleProcess reports whether no other process can use this database.
	SingleProcess() bool
	// Close closes the database. If SingleProcess is true, no call may be running. Otherwise running calls fail.
	Close() error
}

// Identified is an engine that can identify the database that it has open.
type Identified interface {
	// Identity returns the identity of this database. A copy or a restored backup has another identity.
	Identity(ctx context.Context) (string, error)
	// CheckPresent returns an error if the database's files were removed, replaced or truncated while they are open.
	CheckPresent() error
}

// Conn is an open transaction of an engine.
type Conn interface {
	// Exec runs a statement without waiting for its result. A later call or the commit may return its failure. If
	// mapFault is not nil, it may return an error that replaces the failure of this statement.
	Exec(ctx context.Context, mapFault func(Fault) error, query string, args ...any) error
	// ExecCount runs a statement and returns the number of rows that it changed.
	ExecCount(ctx context.Context, query string, args ...any) (int64, error)
	// Query runs a statement that returns rows. The caller closes the rows before the next call.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// QueueQuery runs a statement that returns rows, without waiting for them. It calls read during this call, a later
	// call or the commit. It may call read again if the commit is retried.
	QueueQuery(ctx context.Context, read func(Rows) error, query string, args ...any) error
	// Flush waits for all queued statements and queries.
	Flush(ctx context.Context) error
}

// Rows is the part of *sql.Rows that the store uses.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Fault is an engine's error, classified by kind. Engines derive the kind from error codes, never from texts.
type Fault struct {
	Kind FaultKind
	Err  error
}

// FaultKind classifies a Fault.
type FaultKind string

// The kinds of faults.
const (
	FaultUnique    FaultKind = "unique"    // a row with the same key exists
	FaultNotNull   FaultKind = "not null"  // a required value is missing
	FaultForeign   FaultKind = "foreign"   // the row refers to a row that does not exist
	FaultBusy      FaultKind = "busy"      // another process or transaction has locked the database
	FaultFull      FaultKind = "full"      // the disk is full
	FaultReadOnly  FaultKind = "read only" // the file or server does not accept writes
	FaultCorrupt   FaultKind = "corrupt"   // not a database, or a damaged one
	FaultDisk      FaultKind = "disk"      // reading or writing a file failed; its content may be intact
	FaultGone      FaultKind = "gone"      // the database's file was moved, replaced or truncated
	FaultDown      FaultKind = "down"      // the database cannot be reached
	FaultUncertain FaultKind = "unsure"    // the commit was sent and its outcome is unknown
	FaultLarge     FaultKind = "large"     // a value is longer than the engine allows
	FaultOther     FaultKind = "other"
)

func (f Fault) Error() string { return "database: " + string(f.Kind) + ": " + f.Err.Error() }

// Unwrap returns the engine's own error.
func (f Fault) Unwrap() error { return f.Err }

// hintKeepFile tells what to do after a disk error. The database file may be intact.
const hintKeepFile = "check the disk, quotas and file size limits (kernel log, ulimit -f), and keep the database " +
	"file; it is probably not damaged"

// diskError returns the engine's text of a disk error.
func diskError(f Fault) string { return reeve.SanitizeText(f.Err.Error()) }

// IsTransient reports whether err is a failure of the store that can pass: the database was busy or unreachable, or the
// outcome of a commit is unknown. The caller may retry.
func IsTransient(err error) bool {
	var f Fault
	return errors.As(err, &f) && (f.Kind == FaultBusy || f.Kind == FaultDown || f.Kind == FaultUncertain)
}

// UserError converts a Fault, or a context error, to a reeve.Error for people. It returns any other error unchanged.
func UserError(err error) error {
	if err == nil {
		return nil
	}
	var f Fault
	var known *reeve.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled):
		return &reeve.Error{Code: reeve.Canceled, Op: "store", Message: "request was cancelled; nothing was changed",
			Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &reeve.Error{Code: reeve.Timeout, Op: "store", Message: "request timed out; nothing was changed",
			Err: err}
	default:
		return err
	}
	newError := func(code reeve.Code, message, hint string) error {
		return &reeve.Error{Code: code, Op: "store", Message: message, Hint: hint, Err: f}
	}
	switch f.Kind {
	case FaultUnique:
		return newError(reeve.AlreadyExists, "already exists", "")
	case FaultForeign:
		return newError(reeve.NotFound, "refers to something that does not exist", "")
	case FaultBusy:
		return newError(reeve.Unavailable, "database is busy",
			"try again; if this continues, look for other processes that lock the database or use all of its "+
				"connections")
	case FaultFull:
		return newError(reeve.Unavailable, "disk of the database is full; nothing was changed",
			"free some space and try again")
	case FaultReadOnly:
		return newError(reeve.Unavailable, "database is read-only; nothing was changed",
			"check the permissions of the data directory and of the database user")
	case FaultCorrupt:
		return newError(reeve.Unavailable, "database file is damaged or is not a database",
			"stop the server, keep a copy of the file, then restore a backup with reeve restore")
	case FaultDisk:
		return newError(reeve.Unavailable, "disk of the database failed: "+diskError(f), hintKeepFile)
	case FaultGone:
		return newError(reeve.Unavailable, f.Err.Error()+"; nothing was changed",
			"stop the server, put the file back with its -wal file or restore a backup with reeve restore, then start "+
				"the server")
	case FaultDown:
		return newError(reeve.Unavailable, "database cannot be reached",
			"check that the database runs and that its address is correct")
	case FaultUncertain:
		var cause Fault
		if errors.As(f.Err, &cause) && cause.Kind == FaultDisk {
			return newError(reeve.UnknownOutcome, "disk of the database failed during a commit: "+
				diskError(cause)+
				"; the change may or may not have been made",
				hintKeepFile+"; then check whether the change was made before you try again")
		}
		return newError(reeve.UnknownOutcome,
			"database failed during a commit; the change may or may not have been made",
			"check whether the change was made before you try again; the server's log has the cause")
	case FaultLarge:
		return newError(reeve.TooLarge, "value is too large for the database; nothing was changed", "")
	case FaultNotNull, FaultOther:
	}
	return &reeve.Error{Code: reeve.Internal, Op: "store", Message: "internal error", Err: f}
}
