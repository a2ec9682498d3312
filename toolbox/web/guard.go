package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"reeve"
)

const (
	maxRedirects   = 5
	connectTimeout = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// Guard keeps requests away from this machine, private networks and cloud metadata, whatever led there. Its zero value
// allows public addresses only.
type Guard struct {
	// Allow is the operator's list of exceptions. It only ever widens, and each entry only as far as it says:
	//
	//	name, name:port        the request names exactly this host; it may then be loopback or private, but never link-local,
	//	                       metadata, multicast or an unspecified address
	//	address, address:port  the request names exactly this address, whichever it is
	//	CIDR                   the address connected to lies in it, whatever name led there
	//
	// A redirect is a request of its own. An entry that cannot be read allows nothing. Default: none.
	Allow []string

	resolver *net.Resolver // nil means the system's; tests bring their own
}

// Validate says which entries of Allow cannot be read.
func (g Guard) Validate() error {
	var f []reeve.Field
	for i, entry := range g.Allow {
		if _, ok := parseRule(entry); !ok {
			f = append(f, reeve.Field{Path: "/allow/" + strconv.Itoa(i), Message: strconv.Quote(entry) +
				" cannot be read",
				Expected: "a name, name:port, address, address:port or CIDR"})
		}
	}
	if len(f) == 0 {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "the network allowlist: " + f[0].Message, Fields: f}
}

// Client gives an HTTP client that obeys the guard. It follows at most 5 redirects, of GET and HEAD only; any other
// request gets the 3xx answer itself. Once a redirect has left the origin, only headers that carry no credentials go
// along.
func (g Guard) Client() *http.Client {
	return &http.Client{Transport: g.Transport(), CheckRedirect: checkRedirect}
}

// Transport gives a round tripper that obeys the guard. It knows http and https, uses no proxy, and makes a connection
// for each request.
func (g Guard) Transport() http.RoundTripper {
	rules := make([]rule, 0, len(g.Allow))
	for _, entry := range g.Allow {
		if r, ok := parseRule(entry); ok {
			rules = append(rules, r)
		}
	}
	var proto http.Protocols
	proto.SetHTTP1(true)
	d := dialer{rules: rules, resolver: g.resolver}
	return schemes{&http.Transport{
		DialContext:            d.dial,
		DisableKeepAlives:      true, // see the package comment: a reused connection would mean unasked repeats
		Protocols:              &proto,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}}
}

// refused is what every refusal says: that there is a policy, not what it found.
func refused() *reeve.Error {
	return reeve.Errorf(reeve.Denied, "the network policy does not allow this address").
		Hintf("an operator can allow a host in the network allowlist")
}

// schemes lets nothing but http and https through.
type schemes struct{ next http.RoundTripper }

// RoundTrip sends the request if its scheme is allowed.
func (s schemes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, reeve.Errorf(reeve.Denied, "the network policy allows http and https only")
	}
	return s.next.RoundTrip(r)
}

// harmless are the headers that go along when a redirect leaves the origin. Everything else may be a credential.
var harmless = map[string]bool{"Accept": true, "Accept-Language": true, "User-Agent": true}

func checkRedirect(r *http.Request, via []*http.Request) error {
	if m := via[0].Method; m != http.MethodGet && m != http.MethodHead {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return reeve.Errorf(reeve.ToolFailed, "the endpoint redirects more than %d times", maxRedirects)
	}
	r.Header.Del("Referer") // would carry the query, and what is secret in it
	r.URL.User = nil
	home := origin(via[0].URL)
	for _, hop := range append(via[1:len(via):len(via)], r) {
		if origin(hop.URL) == home {
			continue
		}
		for name := range r.Header { // also on the way back: a foreign server chose where to
			if !harmless[name] {
				r.Header.Del(name)
			}
		}
		break
	}
	return nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// dialer makes the connections and judges each address in the hook that runs right before connecting.
type dialer struct {
	rules    []rule
	resolver *net.Resolver
}

func (d dialer) dial(ctx context.Context, network, target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, refused()
	}
	if _, err := netip.ParseAddr(host); err != nil && looksNumeric(host) {
		return nil, refused()
	}
	var no atomic.Bool // the hook runs on several addresses at once
	hook := func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") || !d.permits(host, port, plain(at.Addr())) {
			no.Store(true)
			return refused()
		}
		return nil
	}
	nd := net.Dialer{Timeout: connectTimeout, Resolver: d.resolver, Control: hook}
	c, err := nd.DialContext(ctx, network, target)
	if err != nil && no.Load() {
		return nil, refused() // without the address that net's own error would name
	}
	return c, err
}

// permits judges the address that is about to be connected to for a request that named host and port.
func (d dialer) permits(host, port string, at netip.Addr) bool {
	if isPublic(at) {
		return true
	}
	for _, r := range d.rules {
		if r.opens(host, port, at) {
			return true
		}
	}
	return false
}

// rule is one entry of the allowlist. One of net, addr and name is set.
type rule struct {
	net  netip.Prefix
	addr netip.Addr
	name string
	port string // empty means any
}

func (r rule) opens(host, port string, at netip.Addr) bool {
	if r.net.IsValid() {
		return r.net.Contains(at)
	}
	if r.port != "" && r.port != port {
		return false
	}
	if r.addr.IsValid() {
		asked, err := netip.ParseAddr(host)
		return err == nil && plain(asked) == r.addr && at == r.addr
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), r.name) && !isSealed(at)
}

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$`)

func parseRule(entry string) (rule, bool) {
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		return rule{net: p.Masked()}, err == nil && !p.Addr().Is4In6()
	}
	host, port := strings.Trim(entry, "[]"), ""
	if a, err := netip.ParseAddr(host); err == nil {
		return rule{addr: plain(a)}, true
	}
	if h, p, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return rule{}, false
		}
		host, port = h, strconv.FormatUint(n, 10)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return rule{addr: plain(a), port: port}, true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return rule{name: host, port: port}, hostName.MatchString(host) && !looksNumeric(host)
}
