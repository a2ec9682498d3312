package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		list = append(list, name)
	}
	return list, rows.Err()
}
