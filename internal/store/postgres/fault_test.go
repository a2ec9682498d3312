package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"reeve/internal/store"
)

// toFault classifies errors by SQLSTATE, so that problems of the server are not attributed to the caller.
func TestToFault(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]store.FaultKind{
		"23505": store.FaultUnique, "53100": store.FaultFull, "25006": store.FaultReadOnly, "XX001": store.FaultCorrupt,
		"42601": store.FaultOther, "": store.FaultOther, "40001": store.FaultBusy, "40P01": store.FaultBusy,
		"55P03": store.FaultBusy, "55006": store.FaultBusy, "57014": store.FaultBusy, "53300": store.FaultBusy,
		"57P01": store.FaultDown, "57P05": store.FaultDown, "53200": store.FaultDown, "58030": store.FaultDown,
		"08006": store.FaultDown,
	} {
		if f, ok := asFault(toFault(&pgconn.PgError{Code: code})); !ok || f.Kind != kind {
			t.Errorf("%s is %s, want %s", code, f.Kind, kind)
		}
	}
}
