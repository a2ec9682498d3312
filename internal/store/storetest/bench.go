package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Benchmark measures the transaction that every call that changes something ends in: an action, an operation, a result.
func Benchmark(b *testing.B, open func(b *testing.B) *store.DB) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := open(b)
			setUp(b, db)
			ctx := b.Context()
			record := func() error {
				return db.Update(ctx, func(tx *store.Tx) error {
					call, thread := tx.NewID(reeve.PrefixMessage), tx.NewID("th")
					if err := tx.AppendAction(ctx, action(call, thread), store.Judged{Revision: 1}); err != nil {
						return err
					}
					if err := tx.InsertOperation(ctx, operation(tx.NewID(reeve.PrefixOperation), reeve.Committed)); err != nil {
						return err
					}
					return tx.AppendResult(ctx, result(tx.NewID(reeve.PrefixMessage), thread, call))
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
