package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Missing names what a database of the newest schema has and this one has not: tables, and of those that it has columns and indexes (as table.column). It compares it with one that is made for this and thrown away.
func Missing(ctx context.Context, file string) (list []string, err error) {
	dir, err := os.MkdirTemp("", "reeve-schema-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	whole := filepath.Join(dir, "whole.db")
	e, err := Open(ctx, Config{File: whole})
	if err != nil {
		return nil, err
	}
	_, err = store.Open(ctx, e, make([]byte, 32))
	if err := errors.Join(err, e.Close()); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the backup cannot be checked, for which an empty database is made in %s: %w; nothing was changed", os.TempDir(), err).
			Hintf("check the free space there, and the limit on the size of files (ulimit -f); the backup itself may be sound")
	}
	want, err := parts(ctx, whole)
	if err != nil {
		return nil, err
	}
	have, err := parts(ctx, file)
	return slices.DeleteFunc(want, func(name string) bool {
		table, _, part := strings.Cut(name, ".")
		return slices.Contains(have, name) || part && !slices.Contains(have, table)
	}), err
}

// parts names the tables of a file that are not SQLite's own, and their columns and indexes after them, in order.
func parts(ctx context.Context, file string) (list []string, err error) {
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	defer func() { err = store.Explain(errors.Join(fault(err), db.Close())) }()
	var names string
	const ours = ` m.name NOT LIKE 'sqlite@_%' ESCAPE '@' AND m.type = `
	if err := db.QueryRowContext(ctx, `SELECT coalesce(group_concat(name), '') FROM (SELECT m.name FROM sqlite_master m WHERE`+ours+`'table'
		UNION ALL SELECT m.tbl_name || '.' || m.name FROM sqlite_master m WHERE`+ours+`'index'
		UNION ALL SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE`+ours+`'table')`).Scan(&names); err != nil {
		return nil, err
	}
	return slices.Sorted(strings.SplitSeq(names, ",")), nil
}

// Whole tells whether a database file that nobody has open is as long as its first page says. SQLite reads what is cut off of the last page as zeros.
func Whole(f *os.File) (bool, error) {
	head := make([]byte, 100)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return true, nil // Check says what it is
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	page, pages := int64(binary.BigEndian.Uint16(head[16:])), int64(binary.BigEndian.Uint32(head[28:]))
	if page == 1 { // which two bytes cannot say
		page = 65536
	}
	return info.Size() == page*pages, nil
}
