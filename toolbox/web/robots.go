package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"reeve"
)

const (
	maxRobotsBytes = 512 << 10
	robotsAge      = time.Hour // maximum age of a cached robots.txt
	robotsTimeout  = 10 * time.Second
	maxRobots      = 500 // hosts whose robots.txt is kept
)

// robotsCache keeps the rules of robots.txt by origin.
type robotsCache struct {
	client *http.Client
	agent  string

	mu    sync.Mutex
	known map[string]robotsEntry
}

type robotsEntry struct {
	rules  robotsRules
	readAt time.Time
}

// check fails with DENIED if the robots.txt of the server does not allow the URL. As RFC 9309 says, everything is
// allowed if a server has no robots.txt, and nothing if the server cannot send it.
func (c *robotsCache) check(ctx context.Context, u *url.URL) error {
	rules, err := c.get(ctx, u)
	if err != nil {
		return err
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	if rules.allows(canonicalPath(path)) {
		return nil
	}
	return reeve.Errorf(reeve.Denied, "the robots.txt of this server does not allow reading this page").
		Hintf("use another source; an operator can set web.robots to ignore")
}

// get returns the rules of the URL's server.
func (c *robotsCache) get(ctx context.Context, u *url.URL) (robotsRules, error) {
	at := origin(u)
	c.mu.Lock()
	known, ok := c.known[at]
	c.mu.Unlock()
	if ok && reeve.Now().Sub(known.readAt) < robotsAge {
		return known.rules, nil
	}
	rules, err := c.read(ctx, u)
	if err != nil {
		return rules, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxRobots {
		c.known = map[string]robotsEntry{}
	}
	c.known[at] = robotsEntry{rules, reeve.Now()}
	return rules, nil
}

// read asks the server for its robots.txt.
func (c *robotsCache) read(ctx context.Context, u *url.URL) (robotsRules, error) {
	ctx, cancel := context.WithTimeout(ctx, robotsTimeout)
	defer cancel()
	to := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return robotsRules{}, reeve.InvalidField("/url", "is not a web address", "an absolute http or https URL")
	}
	req.Header.Set("User-Agent", c.agent)
	res, err := doRequest(c.client, req)
	if err != nil {
		return robotsRules{}, err
	}
	defer func() { _ = res.Body.Close() }()
	switch s := res.StatusCode; {
	case s >= 500, s == http.StatusTooManyRequests:
		return robotsRules{}, reeve.Errorf(reeve.Unavailable, "the server cannot send its robots.txt now: %d %s", s,
			http.StatusText(s))
	case s < 200, s > 299:
		return robotsRules{}, nil
	}
	body, _, err := readBody(res.Body, maxRobotsBytes)
	return parseRobots(string(body), c.agent), err
}

// robotsRules are the rules of a robots.txt for one user agent.
type robotsRules []robotsRule

type robotsRule struct {
	pattern string
	allow   bool
}

// parseRobots returns the rules for an agent: those of the groups that name it, or else those of the groups for *.
func parseRobots(text, agent string) robotsRules {
	agent, _, _ = strings.Cut(strings.ToLower(agent), "/")
	agent = strings.TrimSpace(agent)
	var own, general robotsRules
	var isNamed, isOwn, isGeneral, inAgents bool
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if key == "user-agent" {
			if !inAgents {
				isOwn, isGeneral, inAgents = false, false, true
			}
			name := strings.ToLower(value)
			isOwn, isGeneral = isOwn || name == agent, isGeneral || name == "*"
			isNamed = isNamed || isOwn
			continue
		}
		if key != "allow" && key != "disallow" {
			continue
		}
		inAgents = false
		if value == "" {
			continue
		}
		rule := robotsRule{pattern: canonicalPath(value), allow: key == "allow"}
		if isOwn {
			own = append(own, rule)
		}
		if isGeneral {
			general = append(general, rule)
		}
	}
	if isNamed {
		return own
	}
	return general
}

// canonicalPath returns a path or pattern in the one spelling in which RFC 9309 compares them: other characters than
// printable ASCII are percent-encoded, and letters, digits and -._~ are not.
func canonicalPath(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				if c = byte(n); isUnreserved(c) {
					b.WriteByte(c)
				} else {
					fmt.Fprintf(&b, "%%%02X", c)
				}
				i += 2
				continue
			}
		}
		if c <= ' ' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// allows reports whether a path may be read. The longest matching pattern decides, and allow wins a tie.
func (r robotsRules) allows(path string) bool {
	allowed, longest := true, -1
	for _, rule := range r {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && matchesRobots(rule.pattern, path) {
			allowed, longest = rule.allow, n
		}
	}
	return allowed
}

// matchesRobots reports whether a path begins with a pattern. In a pattern, * stands for any characters, and a final $
// for the end of the path.
func matchesRobots(pattern, path string) bool {
	pattern, ends := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if ends && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return !ends || rest == ""
}
