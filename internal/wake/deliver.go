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
	redeliverAfter = 10 * time.Second // delay before a notification is sent again; doubles with each attempt
	// less than redeliverAfter, so that two servers never send a notification at the same time
	sendTimeout          = 9 * time.Second
	maxDeliveriesPerStep = 1 // notifications are sent one after the other
)

// RunDeliveries posts notifications to the webhook until ctx ends. It claims each notification before sending it, and
// sends the notification id as Idempotency-Key. Each notification arrives at least once. A receiver that honors the key
// handles it once.
func (r *Scheduler) RunDeliveries(ctx context.Context) error {
	if r.Webhook == "" {
		return nil
	}
	for ctx.Err() == nil {
		n, next, err := r.DeliverStep(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("cannot send notifications", "error", err)
		}
		if n < maxDeliveriesPerStep {
			r.deliveryQueued.Wait(ctx, next)
		}
	}
	return nil
}

// DeliverStep sends the notifications that are due. It returns the number of attempts and the time until the next
// notification is due.
func (r *Scheduler) DeliverStep(ctx context.Context) (int, time.Duration, error) {
	if r.Webhook == "" {
		return 0, pollInterval, nil
	}
	var due []reeve.Notification
	err := r.DB.Update(ctx, func(tx *store.Tx) error {
		held, err := tx.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		due, err = tx.Queue().ClaimDeliveries(ctx, redeliverAfter, maxDeliveriesPerStep)
		return err
	})
	if err != nil {
		return 0, pollInterval, err
	}
	for _, n := range due {
		if err := r.postToWebhook(ctx, n); err != nil {
			if ctx.Err() == nil {
				r.Log.Warn("cannot send a notification", "notification", n.ID, "error", err)
			}
			continue
		}
		detached := context.WithoutCancel(ctx)
		if err := r.DB.Update(detached, func(tx *store.Tx) error {
			return tx.Queue().MarkDelivered(detached, n.ID)
		}); err != nil {
			return len(due), pollInterval, err
		}
	}
	next := pollInterval
	err = r.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
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

// postToWebhook posts one notification. Any status other than 2xx is an error.
func (r *Scheduler) postToWebhook(ctx context.Context, n reeve.Notification) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("the webhook is not a valid URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", n.ID)
	res, err := r.Client.Do(req)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) { // its text contains the URL, which may be a secret
			err = urlErr.Err
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the webhook returned status %d", res.StatusCode)
	}
	return nil
}
