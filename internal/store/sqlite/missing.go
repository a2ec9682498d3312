package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reeve/internal/store"
)

// Missing names the tables that a database of the newest schema has and this one has not, by comparing it with one that is made for this and thrown away.
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
		return nil, err
	}
	want, err := tables(ctx, whole)
	if err != nil {
		return nil, err
	}
	have, err := tables(ctx, file)
	return slices.DeleteFunc(want, func(name string) bool { return slices.Contains(have, name) }), err
}

// tables names those of a file that are not SQLite's own, in order.
func tables(ctx context.Context, file string) (list []string, err error) {
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	defer func() { err = store.Explain(errors.Join(fault(err), db.Close())) }()
	var names string
	if err := db.QueryRowContext(ctx, "SELECT coalesce(group_concat(name), '') FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'").Scan(&names); err != nil {
		return nil, err
	}
	return slices.Sorted(strings.SplitSeq(names, ",")), nil
}
