package store

import (
	"context"
	"database/sql"
	"errors"

	"reeve"
)

// Engine is a database. It knows nothing of Reeve's tables.
type Engine interface {
	// Name is "sqlite" or "postgres".
	Name() string
	// Update runs f in one write transaction and commits it. It may run f again after a conflict with another
	// transaction.
	Update(ctx context.Context, f func(Conn) error) error
	// View runs f on one consistent snapshot. A query that still runs when ctx ends is stopped.
	View(ctx context.Context, f func(Conn) error) error
	// LockClause is the clause that lets several processes claim rows of one table without waiting for each other, or
	// "".
	LockClause() string
	// ShareClause is the clause that keeps a row that was read from being changed until the transaction ends, or "".
	ShareClause() string
	// Migrator opens a database/sql handle for migrations, with the name goose knows the engine by.
	Migrator(ctx context.Context) (*sql.DB, string, error)
	// Fault names an error of that handle.
	Fault(error) error
	// Backup writes a consistent copy to a new file while others go on writing.
	Backup(ctx context.Context, file string) error
	// SingleProcess tells whether no other process can be using this database.
	SingleProcess() bool
	// Close ends it. No call may be under way, unless Alone is false: then those under way fail.
	Close() error
}

// Identified is an engine that knows which database it has open.
type Identified interface {
	// Identity names this database, as distinct from a copy of it: a copy that was restored has another one.
	Identity(ctx context.Context) (string, error)
	// CheckPresent refuses when the database's files are gone, replaced or cut off, although those that are open still
	// answer.
	CheckPresent() error
}

// Conn is a transaction as the engine gives it.
type Conn interface {
	// Exec runs a statement whose result nobody waits for; its failure may come from a later call or from the commit.
	// If refused is not nil it may replace a failure of this very statement by one that means more.
	Exec(ctx context.Context, refused func(Fault) error, query string, args ...any) error
	// Affect runs a statement and counts the rows it changed.
	Affect(ctx context.Context, query string, args ...any) (int64, error)
	// Query runs a statement that gives rows. They must be closed before the next call.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// QueueQuery runs a statement that gives rows which nobody waits for yet. They are read by this call, a later one
	// or the commit; perhaps again, if the commit is.
	QueueQuery(ctx context.Context, read func(Rows) error, query string, args ...any) error
	// Flush waits for what was asked.
	Flush(ctx context.Context) error
}

// Rows is the part of *sql.Rows that we use.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Fault is why an engine refused, by kind. Engines make it from error codes, never from text.
type Fault struct {
	Kind FaultKind
	Err  error
}

// FaultKind is a kind of refusal.
type FaultKind string

// The kinds of refusal.
const (
	FaultUnique   FaultKind = "unique"    // a row with that key is there
	FaultNotNull  FaultKind = "not null"  // a value that must be there is not
	FaultForeign  FaultKind = "foreign"   // what the row refers to is not there
	FaultBusy     FaultKind = "busy"      // somebody else holds the database
	FaultFull     FaultKind = "full"      // no room on disk
	FaultReadOnly FaultKind = "read only" // the file or server takes no writes
	FaultCorrupt  FaultKind = "corrupt"   // not a database, or a damaged one
	FaultDisk     FaultKind = "disk"      // reading or writing a file failed; what the file holds may be sound
	FaultGone     FaultKind = "gone"      // the database's file was moved away, replaced or cut off
	FaultDown     FaultKind = "down"      // cannot be reached
	FaultUnsure   FaultKind = "unsure"    // the commit was asked for, and nobody can tell whether it was made
	FaultLarge    FaultKind = "large"     // a value is longer than the engine takes
	FaultOther    FaultKind = "other"
)

func (f Fault) Error() string { return "database: " + string(f.Kind) + ": " + f.Err.Error() }

// Unwrap gives the engine's own error.
func (f Fault) Unwrap() error { return f.Err }

// keepFile is what to do when a disk fails: the database may well be sound.
const keepFile = "check the disk, quotas and limits on the size of files (the kernel's log, ulimit -f), and keep the " +
	"database file: " +
	"nothing says that it is damaged"

// diskError is the cause of a disk's failure in the engine's words.
func diskError(f Fault) string { return reeve.SanitizeText(f.Err.Error()) }

// IsTransient tells whether an error is the store's own, and not for long: it could not be reached, was busy, or went
// away. What was asked of it can be asked again.
func IsTransient(err error) bool {
	var f Fault
	return errors.As(err, &f) && (f.Kind == FaultBusy || f.Kind == FaultDown || f.Kind == FaultUnsure)
}

// UserError turns a fault into an error fit for people. Any other error stays as it is.
func UserError(err error) error {
	if err == nil {
		return nil
	}
	var f Fault
	var told *reeve.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled):
		return &reeve.Error{Code: reeve.Canceled, Op: "store", Message: "the caller went away; nothing was changed",
			Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &reeve.Error{Code: reeve.Timeout, Op: "store", Message: "the time allowed ran out; nothing was changed",
			Err: err}
	default:
		return err
	}
	say := func(code reeve.Code, message, hint string) error {
		return &reeve.Error{Code: code, Op: "store", Message: message, Hint: hint, Err: f}
	}
	switch f.Kind {
	case FaultUnique:
		return say(reeve.AlreadyExists, "it is there already", "")
	case FaultForeign:
		return say(reeve.NotFound, "what it refers to is not there", "")
	case FaultBusy:
		return say(reeve.Unavailable, "the database is busy",
			"try again; if it lasts, look for other processes that hold the database, or all of its connections")
	case FaultFull:
		return say(reeve.Unavailable, "the disk that holds the database is full; nothing was changed",
			"free some space and try again")
	case FaultReadOnly:
		return say(reeve.Unavailable, "the database cannot be written; nothing was changed",
			"check the permissions of the data directory and of the database user")
	case FaultCorrupt:
		return say(reeve.Unavailable, "the database file is damaged or is not a database",
			"stop the server, keep a copy of the file, and restore a backup with reeve restore")
	case FaultDisk:
		return say(reeve.Unavailable, "the disk that holds the database failed: "+diskError(f), keepFile)
	case FaultGone:
		return say(reeve.Unavailable, f.Err.Error()+"; nothing was changed",
			"stop the server, put the file back with its -wal beside it, or restore a backup with reeve restore, and "+
				"start it again")
	case FaultDown:
		return say(reeve.Unavailable, "the database cannot be reached",
			"check that it runs and that the address is right")
	case FaultUnsure:
		var cause Fault
		if errors.As(f.Err, &cause) && cause.Kind == FaultDisk {
			return say(reeve.UnknownOutcome, "the disk that holds the database failed during a commit: "+
				diskError(cause)+
				"; the change may or may not have been made",
				keepFile+"; then look whether the change was made before trying again")
		}
		return say(reeve.UnknownOutcome,
			"the database failed during a commit; the change may or may not have been made",
			"look whether it was made before trying again; the server's log says how the database failed")
	case FaultLarge:
		return say(reeve.TooLarge, "it is more than the database can hold in one place; nothing was changed", "")
	case FaultNotNull, FaultOther:
	}
	return &reeve.Error{Code: reeve.Internal, Op: "store", Message: "internal error", Err: f}
}
