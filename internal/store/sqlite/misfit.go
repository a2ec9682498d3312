package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"reeve/internal/store"
)

// CheckSchema says what is wrong with a database that says to have a schema version, if anything is: the next start
// would go by what it says. It is compared with what the migrations make, in memory.
func CheckSchema(ctx context.Context, file string, version int64) (why string, err error) {
	_, newest, err := store.Versions()
	if err != nil {
		return "", err
	}
	want, err := schema(ctx, version)
	if err != nil {
		return "", err
	}
	last, err := schema(ctx, newest)
	if err != nil {
		return "", err
	}
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return "", err
	}
	have, err := parts(ctx, db)
	if err := store.UserError(errors.Join(fault(err), db.Close())); err != nil {
		return "", err
	}
	list := func(of map[string]string, is func(name, as string) bool) string {
		return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(of)),
			func(name string) bool { return !is(name, of[name]) }), ", ")
	}
	has := func(in map[string]string, name string) bool { _, ok := in[name]; return ok }
	if early := list(last, func(name, _ string) bool { return has(have, name) && !has(want, name) }); early != "" {
		return fmt.Sprintf("its schema version is %d, and it has what only later ones have: %s", version, early), nil
	}
	lacks := list(want, func(name, _ string) bool {
		table, _, part := strings.Cut(name, ".")
		return !has(have, name) && (!part || has(have, table))
	})
	if lacks != "" {
		return "it lacks tables, columns, indexes, triggers or versions: " + lacks, nil
	}
	if other := list(want, func(name, as string) bool { return as != have[name] }); other != "" {
		return fmt.Sprintf("these are not as in its schema version %d: %s", version, other), nil
	}
	return "", nil
}

// schema gives the parts of a schema version.
func schema(ctx context.Context, version int64) (list map[string]string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each has a memory of its own
	if err := store.Schema(ctx, db, "sqlite", version); err != nil {
		return nil, err
	}
	return parts(ctx, db)
}

// parts gives what a database is made of, and how it was made: tables that are not SQLite's own, their columns, indexes
// and triggers (as table.name), and the versions that it went through. Tables of goose and of the full-text index are
// made by those, in whatever words.
func parts(ctx context.Context, db *sql.DB) (list map[string]string, err error) {
	rows, err := db.QueryContext(ctx, `WITH tables AS (SELECT t.name, t.type, m.sql FROM pragma_table_list t JOIN sqlite_master m ON m.type = 'table' AND m.name = t.name
			WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@')
		SELECT name, CASE WHEN type = 'shadow' OR name = 'goose_db_version' THEN '' ELSE sql END FROM tables
		UNION ALL SELECT m.tbl_name || '.' || m.name, m.sql FROM sqlite_master m WHERE m.type IN ('index', 'trigger') AND m.sql IS NOT NULL
		UNION ALL SELECT t.name || '.' || c.name, '' FROM tables t, pragma_table_info(t.name) c
		UNION ALL SELECT 'goose_db_version.' || version_id, '' FROM goose_db_version`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = map[string]string{}
	for rows.Next() {
		var name, made string
		if err := rows.Scan(&name, &made); err != nil {
			return nil, err
		}
		list[name] = strings.Join(strings.Fields(made), " ")
	}
	return list, rows.Err()
}

// IsComplete tells whether a database file that nobody has open is as long as its first page says. SQLite reads what is
// cut off of the last page as zeros.
func IsComplete(f *os.File) (bool, error) {
	head := make([]byte, 100)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return true, nil // Check says what it is
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return info.Size() == sizeOf(head), nil
}
