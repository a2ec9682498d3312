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

// Guard blocks requests to this machine, private networks and cloud metadata services. The zero value allows public
// addresses only.
type Guard struct {
	// Allow lists the operator's exceptions. An entry opens only what it names:
	//
	//	name, name:port        a request that names exactly this host may reach loopback and private addresses, but
	//	                       never link-local, metadata, multicast or unspecified addresses
	//	address, address:port  a request that names exactly this address may reach it
	//	CIDR                   a request may reach any address in the range, under any name
	//
	// A redirect is checked like a new request. An invalid entry allows nothing. Default: none.
	Allow []string

	resolver *net.Resolver // nil means the system resolver; tests set it
}

// Validate returns an error that lists the invalid entries of Allow.
func (g Guard) Validate() error {
	var f []reeve.Field
	for i, entry := range g.Allow {
		if _, ok := parseRule(entry); !ok {
			f = append(f, reeve.Field{Path: "/allow/" + strconv.Itoa(i), Message: strconv.Quote(entry) +
				" is not valid",
				Expected: "a name, name:port, address, address:port or CIDR"})
		}
	}
	if len(f) == 0 {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "network allowlist: " + f[0].Message, Fields: f}
}

// Client returns an HTTP client that obeys the guard. It follows at most 5 redirects, and only for GET and HEAD; other
// requests return the 3xx response. Once a redirect has left the origin, only headers that carry no credentials are
// sent.
func (g Guard) Client() *http.Client {
	return &http.Client{Transport: g.Transport(), CheckRedirect: checkRedirect}
}

// Transport returns a round tripper that obeys the guard. It supports http and https, uses no proxy, and opens a new
// connection for each request.
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
	return schemeFilter{&http.Transport{
		DialContext:            d.dial,
		DisableKeepAlives:      true, // net/http may resend on a reused connection; see the package comment
		Protocols:              &proto,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}}
}

// policyError is the error for every refusal. It does not say which address was found.
func policyError() *reeve.Error {
	return reeve.Errorf(reeve.Denied, "the network policy does not allow this address").
		Hintf("an operator can add the host to the network allowlist")
}

// schemeFilter is a round tripper that accepts http and https only.
type schemeFilter struct{ next http.RoundTripper }

// RoundTrip sends the request if its scheme is http or https.
func (s schemeFilter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, reeve.Errorf(reeve.Denied, "the network policy allows http and https only")
	}
	return s.next.RoundTrip(r)
}

// crossOriginHeaders are the headers that are sent after a redirect to another origin. Any other header may be a
// credential.
var crossOriginHeaders = map[string]bool{"Accept": true, "Accept-Language": true, "User-Agent": true}

func checkRedirect(r *http.Request, via []*http.Request) error {
	if m := via[0].Method; m != http.MethodGet && m != http.MethodHead {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return reeve.Errorf(reeve.ToolFailed, "the endpoint redirected more than %d times", maxRedirects)
	}
	r.Header.Del("Referer") // it would contain the query, which may contain a secret
	r.URL.User = nil
	home := origin(via[0].URL)
	for _, hop := range append(via[1:len(via):len(via)], r) {
		if origin(hop.URL) == home {
			continue
		}
		// Also if a later redirect returns to the origin, because another server chose that URL.
		for name := range r.Header {
			if !crossOriginHeaders[name] {
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

// dialer opens connections. It checks each address in the hook that runs directly before connecting.
type dialer struct {
	rules    []rule
	resolver *net.Resolver
}

func (d dialer) dial(ctx context.Context, network, target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, policyError()
	}
	if _, err := netip.ParseAddr(host); err != nil && looksNumeric(host) {
		return nil, policyError()
	}
	var denied atomic.Bool // the hook may run for several addresses at once
	hook := func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") || !d.permits(host, port, canonicalAddr(at.Addr())) {
			denied.Store(true)
			return policyError()
		}
		return nil
	}
	nd := net.Dialer{Timeout: connectTimeout, Resolver: d.resolver, Control: hook}
	c, err := nd.DialContext(ctx, network, target)
	if err != nil && denied.Load() {
		return nil, policyError() // the error of net would contain the address
	}
	return c, err
}

// permits reports whether a request for host and port may connect to the address at.
func (d dialer) permits(host, port string, at netip.Addr) bool {
	if isPublic(at) {
		return true
	}
	for _, r := range d.rules {
		if r.permits(host, port, at) {
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

// permits reports whether the rule lets a request for host and port connect to the address at.
func (r rule) permits(host, port string, at netip.Addr) bool {
	if r.net.IsValid() {
		return r.net.Contains(at)
	}
	if r.port != "" && r.port != port {
		return false
	}
	if r.addr.IsValid() {
		requested, err := netip.ParseAddr(host)
		return err == nil && canonicalAddr(requested) == r.addr && at == r.addr
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), r.name) && !isForbidden(at)
}

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$`)

func parseRule(entry string) (rule, bool) {
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		return rule{net: p.Masked()}, err == nil && !p.Addr().Is4In6()
	}
	host, port := strings.Trim(entry, "[]"), ""
	if a, err := netip.ParseAddr(host); err == nil {
		return rule{addr: canonicalAddr(a)}, true
	}
	if h, p, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return rule{}, false
		}
		host, port = h, strconv.FormatUint(n, 10)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return rule{addr: canonicalAddr(a), port: port}, true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return rule{name: host, port: port}, hostName.MatchString(host) && !looksNumeric(host)
}
