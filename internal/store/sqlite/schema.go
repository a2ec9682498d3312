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

// CheckSchema compares a database with the schema that the migrations create for its version. It returns a description
// of the differences, or "" if there are none.
func CheckSchema(ctx context.Context, file string, version int64) (problem string, err error) {
	_, newest, err := store.Versions()
	if err != nil {
		return "", err
	}
	want, err := schemaParts(ctx, version)
	if err != nil {
		return "", err
	}
	last, err := schemaParts(ctx, newest)
	if err != nil {
		return "", err
	}
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return "", err
	}
	have, err := listParts(ctx, db)
	if err := store.UserError(errors.Join(toFault(err), db.Close())); err != nil {
		return "", err
	}
	list := func(of map[string]string, is func(name, as string) bool) string {
		return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(of)),
			func(name string) bool { return !is(name, of[name]) }), ", ")
	}
	has := func(in map[string]string, name string) bool { _, ok := in[name]; return ok }
	if early := list(last, func(name, _ string) bool { return has(have, name) && !has(want, name) }); early != "" {
		return fmt.Sprintf("its schema version is %d, but it has parts of later versions: %s", version, early), nil
	}
	lacks := list(want, func(name, _ string) bool {
		table, _, part := strings.Cut(name, ".")
		return !has(have, name) && (!part || has(have, table))
	})
	if lacks != "" {
		return "it lacks tables, columns, indexes, triggers or versions: " + lacks, nil
	}
	if other := list(want, func(name, as string) bool { return as != have[name] }); other != "" {
		return fmt.Sprintf("these parts differ from its schema version %d: %s", version, other), nil
	}
	return "", nil
}

// schemaParts returns the parts of a schema version, created in memory.
func schemaParts(ctx context.Context, version int64) (list map[string]string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each connection has its own database in memory
	if err := store.Schema(ctx, db, "sqlite", version); err != nil {
		return nil, err
	}
	return listParts(ctx, db)
}

// listParts returns the parts of a database with the SQL that created them: tables, their columns, indexes and triggers
// (as table.name), and the applied versions. The SQL of goose's table and of shadow tables of the full-text index is
// left empty, because other code creates them.
func listParts(ctx context.Context, db *sql.DB) (list map[string]string, err error) {
	rows, err := db.QueryContext(ctx, `WITH tables AS (SELECT t.name, t.type, m.sql FROM pragma_table_list t
		JOIN sqlite_master m ON m.type = 'table' AND m.name = t.name
			WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@')
		SELECT name, CASE WHEN type = 'shadow' OR name = 'goose_db_version' THEN '' ELSE sql END FROM tables
		UNION ALL SELECT m.tbl_name || '.' || m.name, m.sql FROM sqlite_master m WHERE m.type IN ('index', 'trigger')
		AND m.sql IS NOT NULL
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

// IsComplete reports whether a database file that is not open has the size that its header states. SQLite reads the
// missing end of a truncated last page as zeros.
func IsComplete(f *os.File) (bool, error) {
	head := make([]byte, 100)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return true, nil // not a database; Check reports that
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return info.Size() == headerDatabaseSize(head), nil
}
