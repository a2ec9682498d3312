package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Benchmark measures the transaction that records a completed call with an operation, with 1 and 8 callers.
func Benchmark(b *testing.B, open func(b *testing.B) *store.DB) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := open(b)
			setUp(b, db)
			ctx := b.Context()
			record := func() error {
				return db.Update(ctx, func(tx *store.Tx) error {
					c := completedCall(tx.NewID(reeve.PrefixMessage), tx.NewID("th"), tx.NewID(reeve.PrefixMessage))
					c.Operation.ID, c.Operation.State, c.Operation.Effect = tx.NewID(reeve.PrefixOperation),
						reeve.Committed, reeve.Local
					return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
				})
			}
			must(b, record())
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						if err := record(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
