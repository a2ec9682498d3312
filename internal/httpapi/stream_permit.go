package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// streamPermit is the right of one client to listen. The right ends when the client's token is revoked, expires or gets
// a lower role, or when its user leaves the conversation. A permit is checked when this server makes such a change and
// when the token expires. It is also checked at each heartbeat, because other servers may make such a change. Traffic
// does not postpone a check.
type streamPermit struct {
	issuer       streamPermitIssuer
	who          reeve.Principal
	conversation string             // the conversation to listen to. Default: none, only the token is checked
	expiresAt    time.Time          // when the token expires. Default: never
	checkDue     context.Context    // done when the next check is due
	stopTimer    context.CancelFunc // releases checkDue
}

// streamPermitIssuer issues permits to listen.
type streamPermitIssuer struct {
	db        *store.DB
	streams   *Streams
	heartbeat time.Duration
}

// issue returns a permit to listen, or an error if the caller may not listen. The permit must be closed, also after an
// error.
func (i streamPermitIssuer) issue(ctx context.Context, who reeve.Principal,
	conversation string) (*streamPermit, error) {
	p := &streamPermit{issuer: i, who: who, conversation: conversation}
	return p, p.reload(ctx)
}

// check reads the client's rights again if a check is due. It returns an error if the client may no longer listen.
func (p *streamPermit) check(ctx context.Context) error {
	if p.checkDue.Err() == nil {
		return nil
	}
	return p.reload(ctx)
}

// reload reads the client's rights and sets the time of the next check. It returns an error if the client may not
// listen. An error of the store does not end the permit unless the token has expired.
func (p *streamPermit) reload(ctx context.Context) error {
	rights := p.issuer.streams.rightsContext() // before the read, so that a concurrent change causes another check
	hasLostRole := false
	err := p.issuer.db.View(ctx, func(snap *store.Snap) error {
		c, found, err := snap.Agents().GetCredential(ctx, p.who.TokenID)
		if err != nil {
			return err
		}
		if !found || c.RevokedAt != nil {
			return newTokenInvalid()
		}
		if !c.Role.Allows(p.who.Role) {
			hasLostRole = true
			return reeve.Errorf(reeve.Unavailable, "the role of the token is now %s", c.Role).Hintf("connect again")
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
	case code == reeve.Unauthenticated || code == reeve.NotFound || hasLostRole:
		return err
	case wait <= 0:
		return newTokenInvalid()
	}
	return nil
}

// newTokenInvalid returns the error for a token that was revoked or has expired.
func newTokenInvalid() error {
	return reeve.Errorf(reeve.Unauthenticated, "the bearer token is no longer valid")
}

func (p *streamPermit) close() {
	if p.stopTimer != nil {
		p.stopTimer()
	}
}

// next waits for the client's next frames, and checks the permit. It returns no frames if none arrived before the next
// check.
func (p *streamPermit) next(ctx context.Context, r *chat.Reader) (frames []chat.EncodedFrame, err error) {
	err = p.wait(ctx, func(ctx context.Context) (err error) {
		frames, err = r.Next(ctx)
		return err
	})
	return frames, err
}

// wait calls f with a context that ends when the permit must be checked, and then checks it. The end of that context is
// no error.
func (p *streamPermit) wait(ctx context.Context, f func(context.Context) error) error {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.checkDue, cancel)()
	err := f(wait)
	if err != nil && ctx.Err() == nil && p.checkDue.Err() != nil {
		err = nil
	}
	if err == nil {
		err = p.check(ctx)
	}
	return err
}
