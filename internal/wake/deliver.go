package wake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	putOff      = 10 * time.Second // before a notification is sent again; doubles each time
	sendTimeout = 9 * time.Second  // less than that, so that a notification is sent by one server at a time
	mostSent    = 1                // notifications that one step sends: they wait for each other
)

// RunDeliveries sends notifications to the operator's webhook, until ctx ends. Each is a row that is claimed and put
// off before it is sent, and sent under its id as the key: it arrives at least once, and who heeds the key sees it
// once.
func (r *Scheduler) RunDeliveries(ctx context.Context) error {
	if r.Webhook == "" {
		return nil
	}
	for ctx.Err() == nil {
		n, next, err := r.DeliverStep(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not look for notifications to send", "error", err)
		}
		if n < mostSent {
			r.posted.Wait(ctx, next)
		}
	}
	return nil
}

// DeliverStep sends what is due, once. It gives how many it tried, and how long until the next is due.
func (r *Scheduler) DeliverStep(ctx context.Context) (int, time.Duration, error) {
	if r.Webhook == "" {
		return 0, poll, nil
	}
	var due []reeve.Notification
	err := r.DB.Update(ctx, func(tx *store.Tx) error {
		held, err := tx.System().Held(ctx)
		if err != nil || held {
			return err
		}
		due, err = tx.Queue().ClaimDeliveries(ctx, putOff, mostSent)
		return err
	})
	if err != nil {
		return 0, poll, err
	}
	for _, n := range due {
		if err := r.send(ctx, n); err != nil {
			if ctx.Err() == nil {
				r.Log.Warn("a notification could not be sent", "notification", n.ID, "error", err)
			}
			continue
		}
		keep := context.WithoutCancel(ctx)
		if err := r.DB.Update(keep, func(tx *store.Tx) error {
			return tx.Queue().
				MarkDelivered(keep, n.ID)
		}); err != nil {
			return len(due), poll, err
		}
	}
	next := poll
	err = r.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().Held(ctx)
		if err != nil || held {
			return err
		}
		at, ok, err := s.Queue().NextDelivery(ctx)
		if ok {
			next = min(next, max(time.Millisecond, reeve.FromMillis(at).Sub(s.Now())))
		}
		return err
	})
	return len(due), next, err
}

func (r *Scheduler) send(ctx context.Context, n reeve.Notification) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("the webhook is not an address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", n.ID)
	res, err := r.Client.Do(req)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) { // its text holds the address, which may be a secret
			err = where.Err
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the webhook answered %d", res.StatusCode)
	}
	return nil
}
