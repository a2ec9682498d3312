package host

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/toolbox/shell"
	"reeve/toolbox/web"
)

// findInvalidSetting says which setting cannot be, and why. One that is 0 or empty has its default.
func (c Config) findInvalidSetting() (name, reason string) {
	if name, reason = findOutOfRange(reflect.ValueOf(c), ""); name != "" {
		return name, reason
	}
	if _, port, err := net.SplitHostPort(c.Listen); c.Listen != "" && (err != nil || !isPort(port)) {
		return "listen", fmt.Sprintf("%q is not host:port", c.Listen)
	}
	if name, reason = c.findInvalidEntry(); name != "" {
		return name, reason
	}
	for _, v := range []struct{ name, url string }{{"database", c.Database}, {"database_direct", c.DirectDB}} {
		if reason = explainInvalidURL(v.url); reason != "" {
			return v.name, reason
		}
	}
	if c.Database == "" && c.DirectDB != "" {
		return "database_direct", "there is no database beside it, and SQLite needs none"
	}
	if c.Shell != "" && !slices.Contains(shell.Backends(), c.Shell) {
		return "shell", fmt.Sprintf("%q is not %s", c.Shell, strings.Join(shell.Backends(), ", "))
	}
	switch {
	case c.ApprovalTTL > 0 && time.Duration(c.ApprovalTTL) < time.Second:
		return "approval_ttl", fmt.Sprintf("%s is less than a second, in which nobody can answer",
			time.Duration(c.ApprovalTTL))
	case c.Retention > 0 && time.Duration(c.Retention) < store.LeastAge:
		return "retention", fmt.Sprintf(
			"%s is less than %s, in which an undo may still be wanted; leave it out to keep everything",
			time.Duration(c.Retention), store.LeastAge)
	case c.RetryMax > 0 && c.RetryFirst > c.RetryMax:
		return "retry_first", fmt.Sprintf("%s is more than retry_max, which is %s", time.Duration(c.RetryFirst),
			time.Duration(c.RetryMax))
	case c.DisableAfter > 0 && c.AlertAfter > c.DisableAfter:
		return "alert_after", fmt.Sprintf("%d is more than disable_after, which is %d: nobody would be told before",
			c.AlertAfter, c.DisableAfter)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models.Names)) {
		if c.Models.Names[name] == "" {
			return "model.names." + name, "it names no model"
		}
	}
	if reason := c.Python.explainInvalidTime(); reason != "" {
		return "python.time", reason
	}
	for _, a := range []struct{ name, url string }{{"webhook", c.Webhook}, {"weather_url", c.WeatherURL},
		{"places_url", c.PlacesURL}} {
		if u, err := url.Parse(a.url); a.url != "" && (err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https") {
			return a.name, "it must be an http or https URL" // which may hold a secret, and is not shown
		}
	}
	if b, err := hex.DecodeString(c.SecretKey); c.SecretKey != "" && (err != nil || len(b) != 32) {
		return "secret_key", "it must be 64 hex digits"
	}
	if n := len(c.MetricsToken); n > 0 && n < 16 {
		return "metrics_token", "it must have at least 16 characters"
	}
	if _, ok := c.parseLogLevel(); !ok {
		return "log_level", fmt.Sprintf("%q is not debug, info, warn or error", c.LogLevel)
	}
	return "", ""
}

// explainInvalidURL says what is wrong with the URL of a database. It does not show the URL, which may hold the password.
func explainInvalidURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return ""
	case !strings.HasPrefix(s, "postgres://") && !strings.HasPrefix(s, "postgresql://"):
		return "it must begin with postgres://"
	case err != nil:
		return "it is no URL like postgres://user:password@host:5432/database"
	}
	if n := u.Query()["pool_max_conns"]; len(n) > 0 && !postgres.IsConns(n[0]) {
		return fmt.Sprintf("pool_max_conns is %q, and not how many connections the server may open", n[0])
	}
	return ""
}

// findInvalidEntry finds an entry of a list that can be none.
func (c Config) findInvalidEntry() (name, reason string) {
	for _, list := range []struct {
		name, want string
		entries    []string
		is         func(string) bool
	}{
		{"hosts", "a name, name:port, address or address:port, in ASCII", c.Hosts, isHost},
		{"origins", "an origin like https://app.example.com", c.Origins, isOrigin},
		{"http_allow", "a name, name:port, address, address:port or CIDR", c.HTTPAllow,
			func(s string) bool { return web.Guard{Allow: []string{s}}.Validate() == nil }},
		{"shell_env", "the name of a variable", c.ShellEnv, varName.MatchString},
	} {
		for i, entry := range list.entries {
			if !list.is(entry) {
				return list.name + "." + strconv.Itoa(i), fmt.Sprintf("%q is not %s", entry, list.want)
			}
		}
	}
	return "", ""
}

// isPort tells whether a server can listen on it: a number, or a name that the system knows.
func isPort(s string) bool {
	_, err := net.LookupPort("tcp", s)
	return s != "" && err == nil
}

var (
	varName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName = regexp.MustCompile(
		`^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$`)
	numericEnd = regexp.MustCompile(`(^|\.)[0-9]+$`) // the end of an address, and of no name
)

// isHost tells whether a browser can ask for it. An address stands for itself, as ::1, or as [::1] where a port may
// follow.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	u, err := url.Parse("http://" + s)
	if err != nil || u.Host != s || u.Port() == "" && strings.HasSuffix(s, ":") {
		return false
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err == nil || hostName.MatchString(u.Hostname()) && !numericEnd.MatchString(u.Hostname())
}

// nonPageSchemes are the schemes of addresses that no page is at.
var nonPageSchemes = []string{"", "ftp", "ws", "wss", "file"}

// isOrigin tells whether it is spelt as browsers spell theirs: nothing behind the host and the port, which is left out
// where the scheme says it.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || slices.Contains(nonPageSchemes, u.Scheme) || u.Scheme == "http" && u.Port() == "80" ||
		u.Scheme == "https" && u.Port() == "443" {
		return false
	}
	return u.Scheme+"://"+u.Host == s && strings.ToLower(s) == s && isHost(u.Host)
}

// parseLogLevel is how much is logged.
func (c Config) parseLogLevel() (l slog.Level, ok bool) {
	return l, c.LogLevel == "" || l.UnmarshalText([]byte(c.LogLevel)) == nil
}

// findOutOfRange finds a number outside the range that its field declares, for the server as for the schema.
func findOutOfRange(section reflect.Value, path string) (name, reason string) {
	for i := range section.NumField() {
		f, v := section.Type().Field(i), section.Field(i)
		at, n := path+f.Tag.Get("yaml"), 0.0
		switch v.Kind() {
		case reflect.Struct:
			if name, reason = findOutOfRange(v, at+"."); name != "" {
				return name, reason
			}
			continue
		case reflect.Int:
			n = float64(v.Int())
		case reflect.Float64:
			n = v.Float()
		default:
			continue
		}
		least, err := strconv.ParseFloat(f.Tag.Get("minimum"), 64)
		if n == 0 || err != nil {
			continue
		}
		most, err := strconv.ParseFloat(f.Tag.Get("maximum"), 64)
		switch limited := err == nil; {
		case limited && (n < least || n > most):
			return at, fmt.Sprintf("%v is not between %s and %s", v.Interface(), f.Tag.Get("minimum"),
				f.Tag.Get("maximum"))
		case !(n >= least) || math.IsInf(n, 0): // which NaN is not either
			return at, fmt.Sprintf("%v is not %s or more", v.Interface(), f.Tag.Get("minimum"))
		}
	}
	return "", ""
}
