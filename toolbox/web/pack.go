package web

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/backoff"
	"reeve/toolbox/web/document"
)

// Converter converts documents from the web to text.
type Converter interface {
	Convert(ctx context.Context, s document.Source) (document.Document, error)
}

// PackConfig configures a [Pack].
type PackConfig struct {
	Guard  Guard  // applies to every request
	Files  Writer // writes what web_download downloads
	Search Search // the provider of web_search

	Documents Converter // converts web pages and PDF files

	IgnoreRobots bool    // do not ask robots.txt for permission. Default: ask
	UserAgent    string  // name sent to servers, and looked up in robots.txt. Default: reeve
	HostRate     float64 // requests per second to one host. Default: 2
	MaxDownload  int64   // bytes of a download. Default: 100 MB
}

const (
	defaultHostRate    = 2
	defaultMaxDownload = 100_000_000
	defaultUserAgent   = "reeve"
	fetchTimeout       = 30 * time.Second
	downloadTimeout    = 5 * time.Minute
)

// Pack is the pack of the tools that read the web: web_fetch, web_search and web_download. It is safe for concurrent
// use.
type Pack struct {
	cfg    PackConfig
	client *http.Client // follows redirects; each hop obeys robots.txt and the rate
	plain  *http.Client // obeys the guard only, for robots.txt and the search provider
	robots robotsCache
	hosts  hostLimiter
}

// NewPack returns the pack.
func NewPack(cfg PackConfig) *Pack {
	cfg.UserAgent = cmp.Or(cfg.UserAgent, defaultUserAgent)
	cfg.HostRate = cmp.Or(cfg.HostRate, defaultHostRate)
	cfg.MaxDownload = cmp.Or(cfg.MaxDownload, defaultMaxDownload)
	p := &Pack{cfg: cfg, client: cfg.Guard.Client(), plain: cfg.Guard.Client(), hosts: newHostLimiter(cfg.HostRate)}
	p.robots = robotsCache{client: p.plain, agent: cfg.UserAgent}
	p.client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if err := checkRedirect(r, via); err != nil {
			return err
		}
		return p.admit(r)
	}
	return p
}

// Tools returns web_fetch, web_search and web_download.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{p.fetchTool(), p.searchTool(), p.downloadTool()}
}

// newPackTool returns a tool with the fields that all tools of the pack share. Results of the pack web count as text
// from outside.
func newPackTool(id, name, description string, effect reeve.Effect, limit time.Duration) reeve.Tool {
	return reeve.Tool{ID: id, Name: name, Description: description, Category: "web", Pack: "web", Effect: effect,
		TimeoutMS: limit.Milliseconds()}
}

// admit waits until the rate limit allows a request to the host, then checks the host's robots.txt.
func (p *Pack) admit(r *http.Request) error {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil // the transport refuses it
	}
	if err := p.hosts.wait(r.Context(), strings.TrimSuffix(strings.ToLower(r.URL.Hostname()), ".")); err != nil {
		return err
	}
	if p.cfg.IgnoreRobots {
		return nil
	}
	return p.robots.check(r.Context(), r.URL)
}

// get requests a URL and returns the response if its status is 2xx. The caller closes the body.
func (p *Pack) get(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, reeve.InvalidField("/url", "is not a web address", "an absolute http or https URL")
	}
	if req.URL.User != nil {
		return nil, reeve.InvalidField("/url", "contains a user or password", "a URL without them")
	}
	req.Header.Set("User-Agent", p.cfg.UserAgent)
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5")
	if err := p.admit(req); err != nil {
		return nil, err
	}
	res, err := doRequest(p.client, req)
	if err != nil {
		return nil, err
	}
	err = checkStatus(res, "the server")
	if err == nil {
		err = checkEncoding(res)
	}
	if err != nil {
		_ = res.Body.Close() // the body is not used
		return nil, err
	}
	return res, nil
}

// checkEncoding fails if the content is still compressed. The transport asks for gzip only and has removed it.
func checkEncoding(res *http.Response) error {
	if name := res.Header.Get("Content-Encoding"); name != "" && !strings.EqualFold(name, "identity") {
		return reeve.Errorf(reeve.ToolFailed, "the server compressed the content in a way that was not asked for").
			Hintf("use another source")
	}
	return nil
}

// doRequest sends a request that changes nothing. Its errors name no address.
func doRequest(client *http.Client, req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, fetchError(err, connected.Load())
	}
	return res, nil
}

// checkStatus returns the error for a status other than 2xx.
func checkStatus(res *http.Response, who string) error {
	s := res.StatusCode
	if s >= 200 && s <= 299 {
		return nil
	}
	code := reeve.ToolFailed
	switch {
	case s == http.StatusUnauthorized:
		code = reeve.Unauthenticated
	case s == http.StatusForbidden:
		code = reeve.Forbidden
	case s == http.StatusTooManyRequests:
		code = reeve.RateLimited
	case s >= 500:
		code = reeve.Unavailable
	}
	e := reeve.Errorf(code, "%s responded %s", who, strings.TrimSpace(strconv.Itoa(s)+" "+http.StatusText(s)))
	if code == reeve.RateLimited || code == reeve.Unavailable {
		e.RetryAfter = backoff.RetryAfter(res.Header.Get("Retry-After"), time.Second)
	}
	return e
}

// readBody reads at most limit bytes of a body and reports whether there are more.
func readBody(body io.Reader, limit int64) (b []byte, more bool, err error) {
	b, err = io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, false, fetchError(err, true)
	}
	if int64(len(b)) > limit {
		return b[:limit], true, nil
	}
	return b, false, nil
}
