package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"reeve"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables up to date. A database written by a newer Reeve is refused untouched.
func migrate(ctx context.Context, e Engine) (err error) {
	handle, dialect, err := e.Migrator(ctx)
	if err != nil {
		return Explain(err)
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	files = spoken{files, e.Name()}
	var options []goose.ProviderOption
	if !e.Alone() {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 60)) // every second, for five minutes
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(goose.Dialect(dialect), handle, files, options...)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return Explain(e.Fault(err))
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; have > newest {
		return reeve.Errorf(reeve.Unsupported, "the database has schema version %d, and this Reeve knows only up to %d; nothing was changed",
			have, newest).Hintf("run the newer Reeve that wrote it, or restore a backup made before the upgrade")
	}
	if _, err := p.Up(ctx); err != nil {
		return Explain(e.Fault(err))
	}
	return nil
}
