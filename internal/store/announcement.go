package store

import (
	"context"
	"time"

	"reeve"
)

// AnnouncementBatch is what one server's transactions announced within a short time.
type AnnouncementBatch struct {
	Process string
	N       int64 // number of the batch, from 1 without gaps
	Changes []Announcement
	Lost    bool // there were more changes than a batch may hold, and the rest is missing
}

const (
	keptBatches   = 50               // batches that a server keeps for others
	batchLifetime = 10 * time.Minute // time after which the batches of dead servers are deleted
)

// batchBody is the stored form of a batch.
type batchBody struct {
	Changes []Announcement `json:"c"`
	Lost    bool           `json:"l,omitempty"`
}

const batchColumns = `process, n, body`

func scanBatch(r scanner) (b AnnouncementBatch, err error) {
	defer wrapCorrupt("announcements", &b.Process, &err)
	var text string
	if err := r.Scan(&b.Process, &b.N, &text); err != nil {
		return b, err
	}
	var v batchBody
	err = decodeJSON("body", text, &v)
	b.Changes, b.Lost = v.Changes, v.Lost
	return b, err
}

// InsertAnnouncements stores a batch for the other servers, and deletes old ones.
func (t SystemTx) InsertAnnouncements(ctx context.Context, b AnnouncementBatch) error {
	return firstError(
		t.tx.exec(ctx, `INSERT INTO announcements (`+batchColumns+`, created_at) VALUES ($1, $2, $3, $4)`, b.Process, b.N,
			encodeJSON(batchBody{b.Changes, b.Lost}), reeve.Millis(t.now)),
		t.tx.exec(ctx, `DELETE FROM announcements WHERE process = $1 AND n <= $2`, b.Process, b.N-keptBatches),
		t.tx.exec(ctx, `DELETE FROM announcements WHERE created_at < $1`, reeve.Millis(t.now.Add(-batchLifetime))))
}

// ListAnnouncements returns the recent batches of other servers, each server's in order. A corrupt batch is left
// out, so its readers see a gap.
func (s System) ListAnnouncements(ctx context.Context, process string) ([]AnnouncementBatch, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanBatch, nil), `SELECT `+batchColumns+` FROM announcements
		WHERE created_at > $2 AND process <> $1 ORDER BY process, n`, process, reeve.Millis(s.now.Add(-batchLifetime)))
}
