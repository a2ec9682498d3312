package sqlite_test

import (
	"path/filepath"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T) *store.DB {
		return open(t, sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	})
}

func open(t testing.TB, cfg sqlite.Config) *store.DB {
	t.Helper()
	e, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), e, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func BenchmarkUpdate(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) *store.DB {
		return open(b, sqlite.Config{File: filepath.Join(b.TempDir(), "reeve.db")})
	})
}
