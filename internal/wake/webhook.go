package wake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

const (
	redeliverAfter = 10 * time.Second // delay before a notification is sent again; doubles with each attempt
	// less than redeliverAfter, so that two servers never send a notification at the same time
	sendTimeout          = 9 * time.Second
	maxDeliveriesPerStep = 1 // notifications are sent one after the other
)

// Client sends HTTP requests. The implementation decides which addresses it may reach.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Webhook posts notifications to a URL. It claims each notification before sending it, and sends the notification id as
// Idempotency-Key. Each notification arrives at least once. A receiver that honors the key handles it once.
type Webhook struct {
	db     *store.DB
	log    *slog.Logger
	url    string
	client Client
	queued notify.Signal // a notification waits
}

// NewWebhook returns a webhook that posts to url. It is passive until Run or Step is called.
func NewWebhook(db *store.DB, log *slog.Logger, url string, client Client) *Webhook {
	return &Webhook{db: db, log: log, url: url, client: client, queued: notify.New()}
}

// Notify tells the webhook that a notification was committed.
func (w *Webhook) Notify() { w.queued.Notify() }

// Run sends notifications until ctx ends.
func (w *Webhook) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, next, err := w.Step(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error("cannot send notifications", "error", err)
		}
		if n < maxDeliveriesPerStep {
			w.queued.Wait(ctx, next)
		}
	}
	return nil
}

// Step sends the notifications that are due. It returns the number of attempts and the time until the next notification
// is due.
func (w *Webhook) Step(ctx context.Context) (int, time.Duration, error) {
	var due []reeve.Notification
	err := w.db.Update(ctx, func(tx *store.Tx) error {
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
		if err := w.post(ctx, n); err != nil {
			if ctx.Err() == nil {
				w.log.Warn("cannot send a notification", "notification", n.ID, "error", err)
			}
			continue
		}
		detached := context.WithoutCancel(ctx)
		if err := w.db.Update(detached, func(tx *store.Tx) error {
			return tx.Queue().MarkDelivered(detached, n.ID)
		}); err != nil {
			return len(due), pollInterval, err
		}
	}
	next := pollInterval
	err = w.db.View(ctx, func(s *store.Snap) error {
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

// post posts one notification. Any status other than 2xx is an error.
func (w *Webhook) post(ctx context.Context, n reeve.Notification) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the webhook is not a valid URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", n.ID)
	res, err := w.client.Do(req)
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
