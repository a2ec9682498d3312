package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// pass is the right of one client to listen, which may end while it does: its token is revoked or expires, or its user is taken out of the conversation. It is looked at
// when this server hears of such a change, when the token expires, and every so often, for what other servers change. Traffic does not put that off.
type pass struct {
	server       *server
	who          reeve.Principal
	conversation string             // it is for. Default: none, and only the token counts
	until        time.Time          // when the token expires. Default: never
	due          context.Context    // over when it is to be looked at
	stop         context.CancelFunc // ends due
}

// pass gives somebody's right to listen, if they have it. Close it.
func (s *server) pass(ctx context.Context, who reeve.Principal, conversation string) (*pass, error) {
	p := &pass{server: s, who: who, conversation: conversation}
	return p, p.look(ctx)
}

// check looks at it if that is due. An error says why the client may no longer listen.
func (p *pass) check(ctx context.Context) error {
	if p.due.Err() == nil {
		return nil
	}
	return p.look(ctx)
}

// look finds out whether the client may listen. A store that cannot be read is no reason against it, but the token expires all the same.
func (p *pass) look(ctx context.Context) error {
	rights := p.server.Streams.unless() // asked for first, so that a change in this moment is looked at too
	err := p.server.DB.View(ctx, func(snap *store.Snap) error {
		c, found, err := snap.GetCredential(ctx, p.who.TokenID)
		if err != nil {
			return err
		}
		if !found || c.RevokedAt != nil {
			return invalid()
		}
		if c.ExpiresAt != nil {
			p.until = *c.ExpiresAt
		}
		if p.conversation != "" {
			_, err = see(ctx, snap, p.who, p.conversation)
		}
		return err
	})
	wait := p.server.Heartbeat
	if !p.until.IsZero() {
		wait = min(wait, p.until.Sub(reeve.Now()))
	}
	p.close()
	p.due, p.stop = context.WithTimeout(rights, wait)
	switch code := reeve.CodeOf(err); {
	case code == reeve.Unauthenticated || code == reeve.NotFound:
		return err
	case wait <= 0:
		return invalid()
	}
	return nil
}

func invalid() error {
	return reeve.Errorf(reeve.Unauthenticated, "the bearer token is not valid any more")
}

func (p *pass) close() {
	if p.stop != nil {
		p.stop()
	}
}

// next waits for what the client is to hear. Nothing means that there was none for a while.
func (p *pass) next(ctx context.Context, r *chat.Reader) ([]chat.Line, error) {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.due, cancel)()
	lines, err := r.Next(wait)
	if err != nil && ctx.Err() == nil && p.due.Err() != nil {
		lines, err = nil, nil
	}
	if err == nil {
		err = p.check(ctx)
	}
	return lines, err
}
