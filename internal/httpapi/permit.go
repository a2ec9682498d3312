package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// permit is the right of one client to listen. It ends when the client's token is revoked or expires, or when its user
// leaves the conversation. A permit is checked when this server makes such a change, when the token expires, and at
// each heartbeat, for changes that other servers make. Traffic does not postpone a check.
type permit struct {
	issuer       permitIssuer
	who          reeve.Principal
	conversation string             // the conversation that it is for. Default: none, and only the token counts
	expiresAt        time.Time          // when the token expires. Default: never
	checkDue          context.Context    // ends when the next check is due
	stopTimer         context.CancelFunc // ends due
}

// permitIssuer issues permits to listen.
type permitIssuer struct {
	db        *store.DB
	streams   *Streams
	heartbeat time.Duration
}

// issue returns a caller's permit to listen, which the caller has to close, also on an error.
func (i permitIssuer) issue(ctx context.Context, who reeve.Principal, conversation string) (*permit, error) {
	p := &permit{issuer: i, who: who, conversation: conversation}
	return p, p.reload(ctx)
}

// check reads the client's rights again if that is due. Its error says why the client may no longer listen.
func (p *permit) check(ctx context.Context) error {
	if p.checkDue.Err() == nil {
		return nil
	}
	return p.reload(ctx)
}

// reload reads whether the client may listen. It gives no error when the store cannot be read, unless the token has
// expired.
func (p *permit) reload(ctx context.Context) error {
	rights := p.issuer.streams.rightsContext() // asked for first, so that a change in this moment is looked at too
	err := p.issuer.db.View(ctx, func(snap *store.Snap) error {
		c, found, err := snap.Agents().GetCredential(ctx, p.who.TokenID)
		if err != nil {
			return err
		}
		if !found || c.RevokedAt != nil {
			return newTokenInvalid()
		}
		if c.ExpiresAt != nil {
			p.expiresAt = *c.ExpiresAt
		}
		if p.conversation != "" {
			_, err = getVisibleConversation(ctx, snap, p.who, p.conversation)
		}
		return err
	})
	wait := p.issuer.heartbeat
	if !p.expiresAt.IsZero() {
		wait = min(wait, p.expiresAt.Sub(reeve.Now()))
	}
	p.close()
	p.checkDue, p.stopTimer = context.WithTimeout(rights, wait)
	switch code := reeve.CodeOf(err); {
	case code == reeve.Unauthenticated || code == reeve.NotFound:
		return err
	case wait <= 0:
		return newTokenInvalid()
	}
	return nil
}

func newTokenInvalid() error {
	return reeve.Errorf(reeve.Unauthenticated, "the bearer token is not valid any more")
}

func (p *permit) close() {
	if p.stopTimer != nil {
		p.stopTimer()
	}
}

// next waits for what the client is to hear. Nothing means that there was none for a while.
func (p *permit) next(ctx context.Context, r *chat.Reader) ([]chat.EncodedFrame, error) {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.checkDue, cancel)()
	lines, err := r.Next(wait)
	if err != nil && ctx.Err() == nil && p.checkDue.Err() != nil {
		lines, err = nil, nil
	}
	if err == nil {
		err = p.check(ctx)
	}
	return lines, err
}
