package client

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"reeve"
)

// Config configures a client.
type Config struct {
	URL       string // URL of the server, such as http://127.0.0.1:7410
	Token     string // bearer token. Default: none; only the health routes accept that
	Workspace string // Default: "default"
	// HTTP sends the requests. Default: a client with a connect timeout of 5 s and no other timeout.
	HTTP *http.Client
	Key  func() string // returns the Idempotency-Key of a request without one. Default: 16 random bytes
}

// Client calls one server in one workspace. Its methods return the services of the API. It is safe for concurrent use.
type Client struct{ conn *conn }

// conn sends requests to the server.
type conn struct {
	base      *url.URL
	token     string
	workspace string
	http      *http.Client
	key       func() string
}

// New returns a client. It does not connect to the server.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(cfg.URL, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, reeve.Errorf(reeve.Validation, "%q is not the URL of a server", cfg.URL).
			Hintf("write a URL such as http://127.0.0.1:7410")
	}
	if strings.ContainsAny(cfg.Token, "\r\n \t") {
		return nil, reeve.Errorf(reeve.Validation, "the token must not contain spaces or line breaks")
	}
	c := &conn{base: base, token: cfg.Token, workspace: cfg.Workspace, http: cfg.HTTP, key: cfg.Key}
	if c.workspace == "" {
		c.workspace = "default"
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport(), CheckRedirect: rejectRedirect}
	}
	if c.key == nil {
		c.key = func() string { return reeve.RandomSecret(16) }
	}
	return &Client{conn: c}, nil
}

// URL returns the URL of the server.
func (c *Client) URL() string { return c.conn.base.String() }

// Workspace returns the workspace of the client.
func (c *Client) Workspace() string { return c.conn.workspace }

// Close closes idle connections.
func (c *Client) Close() { c.conn.http.CloseIdleConnections() }

func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	return t
}

// rejectRedirect follows no redirect. A Reeve server sends none, and another server must not get the token.
func rejectRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Page selects a part of a list.
type Page struct {
	Cursor string // Next of the previous page. Default: from the start
	Limit  int    // maximum number of entries. Default: the server's
}
