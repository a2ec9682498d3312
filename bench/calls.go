package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// dbosShare is the rate of DBOS Transact Go 1.2 with 1, 8 and 32 workflows in flight, as a share of the rate of bare
// transactions. The module proxy does not serve DBOS, so it cannot be measured in the same run. The shares were
// measured earlier against a bare transaction of four rows (effect, call and two messages) with equal durability.
var dbosShare = map[string][3]float64{
	onSQLite:   {3300. / 7300, 3200. / 12700, 1500. / 9300},
	onPostgres: {2100. / 5300, 5400. / 9600, 2100. / 7500},
}

// measureCalls measures gated calls with one durable effect each, and whether a long history slows down calls or the
// start of the server.
func measureCalls(ctx context.Context, c config, t *table) {
	for _, engine := range engines() {
		compareCalls(ctx, c, engine, t)
	}
	program := buildReeve(ctx, c)
	for _, engine := range engines() {
		compareHistory(ctx, c, program, engine, t)
	}
}

// compareCalls compares gated calls with River's steps, with bare transactions of the same rows, and with DBOS's share
// of these.
func compareCalls(ctx context.Context, c config, engine string, t *table) {
	w := newFixture(ctx, c, engine, "calls")
	defer w.close()
	for i, n := range []int{1, 8, 32} {
		river := startRiver(ctx, c, engine, n)
		got, err := alternate(ctx, c, w.gatedCalls(n), river.side, w.bareTransactions(ctx, n, 0),
			w.bareTransactions(ctx, n, 2))
		river.stop()
		check(err)
		name := fmt.Sprintf("%s, %d in flight", engine, n)
		if n == 1 {
			t.limit(engine+", one call", "ms", 1000/median(got[0]), 1)
		}
		t.compare(name, "calls/s", got[0], river.name+" steps", got[1], atLeast(1))
		t.compare(name, "calls/s", got[0], "bare transaction, same rows", got[2], atLeast(0.5))
		shares := make([]float64, c.rounds)
		for k := range shares {
			shares[k] = got[0][k] / got[3][k]
		}
		ours, theirs := median(shares), dbosShare[engine][i]
		t.add(row{name: name, unit: "share of bare", against: "DBOS 1.2, measured earlier", ours: ours, peer: theirs,
			ratio:  ours / theirs,
			target: atLeast(1)})
	}
}

// threads is the number of threads in a history.
const threads = 1000

// compareHistory compares the cost of a call after many calls with that after a thousand, and measures the start time
// of the real server on the long history. Slices are short, so that the short history stays short.
func compareHistory(ctx context.Context, c config, program, engine string, t *table) {
	many := pick(c, 1_000_000, 50_000)
	sides := make([]side, 2)
	for i, n := range []int{1000, many} {
		d := newDatabase(ctx, c, engine, fmt.Sprint("history_", n))
		agent := d.fillHistory(ctx, n)
		if n == many {
			d.timeStarts(ctx, program, n, t)
		}
		w := d.openFixture(ctx)
		defer w.close()
		w.agent = agent
		draw := rand.New(rand.NewPCG(1, 1))
		sides[i] = repeat(200, func(ctx context.Context, k int) error {
			_, err := w.callStep(ctx, fmt.Sprint("s", draw.IntN(threads)), k)
			return err
		})
	}
	got := must(alternate(ctx, c, sides...))
	t.compare(fmt.Sprintf("%s, a call after %d calls", engine, many), "µs", got[1], "after 1000", got[0], atMost(1.2))
}

// fillHistory makes one call and multiplies it. It returns the agent's id.
func (d database) fillHistory(ctx context.Context, n int) string {
	w := d.newFixture(ctx)
	res, err := w.callStep(ctx, "template", 0)
	w.close()
	check(err)
	multiply(ctx, d, "calls", "operation_id = '"+res.OperationID+"'", n, map[string]string{
		"operation_id": pastID("op", 0, "i"), "id": pastID("msg", 0, "2 * i"),
		"result_id":  pastID("msg", 0, "2 * i + 1"),
		"thread_id":  fmt.Sprintf("'%s:session:s' || CAST(i %% %d AS TEXT)", w.agent, threads),
		"created_at": "created_at - 2000000000 + i", "updated_at": "updated_at - 2000000000 + i",
	})
	return w.agent
}

// timeStarts measures five starts of the real server, after a first one that prepares the data directory.
func (d database) timeStarts(ctx context.Context, program string, n int, t *table) {
	var took []float64
	for i := range 6 {
		s, ready := startReeve(ctx, program, d.dir, d.url)
		s.stop()
		if i > 0 {
			took = append(took, milliseconds(ready))
		}
	}
	t.limit(fmt.Sprintf("%s, start after %d calls", d.engine, n), "ms", median(took), 300)
}
