package client

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"reeve"
)

// Config says which server to speak to, and as whom.
type Config struct {
	URL       string // the server, such as http://127.0.0.1:7410
	Token     string // the bearer token. Default: none, which only the health routes accept
	Workspace string // whose things to see. Default: "default"
	// how to reach it. Default: one that gives up on connecting after 5 s, and waits for answers as long as the context
	// lets it
	HTTP *http.Client
	Key  func() string // makes an Idempotency-Key for a request that brings none. Default: 16 random bytes
}

// Client speaks to one server in one workspace. Its methods give the services of the API. Many goroutines may use it
// at once.
type Client struct{ conn *conn }

// conn sends requests to the server.
type conn struct {
	base      *url.URL
	token     string
	workspace string
	http      *http.Client
	key       func() string
}

// New makes a client. It does not speak to the server yet.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(cfg.URL, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, reeve.Errorf(reeve.Validation, "%q is not the address of a server", cfg.URL).
			Hintf("an address looks like http://127.0.0.1:7410")
	}
	if strings.ContainsAny(cfg.Token, "\r\n \t") {
		return nil, reeve.Errorf(reeve.Validation, "the token holds spaces or line breaks")
	}
	c := &conn{base: base, token: cfg.Token, workspace: cfg.Workspace, http: cfg.HTTP, key: cfg.Key}
	if c.workspace == "" {
		c.workspace = "default"
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport(), CheckRedirect: stay}
	}
	if c.key == nil {
		c.key = func() string { return reeve.RandomSecret(16) }
	}
	return &Client{conn: c}, nil
}

// URL is the address of the server.
func (c *Client) URL() string { return c.conn.base.String() }

// Workspace is the workspace the client sees.
func (c *Client) Workspace() string { return c.conn.workspace }

// Close lets go of idle connections.
func (c *Client) Close() { c.conn.http.CloseIdleConnections() }

func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	return t
}

// stay follows no redirect: a Reeve server sends none, and the token is for it alone.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Page asks for a part of a list.
type Page struct {
	Cursor string // the Next of the page before. Default: from the start
	Limit  int    // how many at most. Default: as many as the server likes
}
