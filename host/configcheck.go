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

// findInvalidSetting returns the name of the first invalid setting and the reason. The name is empty if all are valid.
// A setting that is 0 or empty has its default.
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
		return "database_direct", "it requires database, which is not set"
	}
	if c.Shell != "" && !slices.Contains(shell.Backends(), c.Shell) {
		return "shell", fmt.Sprintf("%q is not one of %s", c.Shell, strings.Join(shell.Backends(), ", "))
	}
	switch {
	case c.ApprovalTTL > 0 && time.Duration(c.ApprovalTTL) < time.Second:
		return "approval_ttl", fmt.Sprintf("%s is less than the minimum of one second", time.Duration(c.ApprovalTTL))
	case c.Retention > 0 && time.Duration(c.Retention) < store.MinPayloadAge:
		return "retention", fmt.Sprintf(
			"%s is less than the minimum of %s; remove the setting to keep everything",
			time.Duration(c.Retention), store.MinPayloadAge)
	case c.RequestRetention > 0 && time.Duration(c.RequestRetention) < store.MinPayloadAge:
		return "request_retention", fmt.Sprintf("%s is less than the minimum of %s",
			time.Duration(c.RequestRetention), store.MinPayloadAge)
	case c.RetryMax > 0 && c.RetryFirst > c.RetryMax:
		return "retry_first", fmt.Sprintf("%s is more than retry_max (%s)", time.Duration(c.RetryFirst),
			time.Duration(c.RetryMax))
	case c.DisableAfter > 0 && c.AlertAfter > c.DisableAfter:
		return "alert_after", fmt.Sprintf("%d is more than disable_after (%d), so the alert would never be sent",
			c.AlertAfter, c.DisableAfter)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models.Names)) {
		if c.Models.Names[name] == "" {
			return "model.names." + name, "the model is empty"
		}
	}
	if name, reason := c.Web.explainInvalid(); name != "" {
		return name, reason
	}
	if reason := c.Python.explainInvalidTime(); reason != "" {
		return "python.timeout", reason
	}
	for _, a := range []struct{ name, url string }{{"webhook", c.Webhook}, {"weather_url", c.WeatherURL},
		{"geocoding_url", c.GeocodingURL}} {
		if u, err := url.Parse(a.url); a.url != "" && (err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https") {
			return a.name, "it must be an http or https URL" // the URL is not shown, because it may contain a secret
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

// explainInvalidURL returns what is wrong with a database URL, or an empty string. The text does not contain the URL,
// which may contain a password.
func explainInvalidURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return ""
	case !strings.HasPrefix(s, "postgres://") && !strings.HasPrefix(s, "postgresql://"):
		return "it must begin with postgres://"
	case err != nil:
		return "it is not a URL of the form postgres://user:password@host:5432/database"
	}
	if n := u.Query()["pool_max_conns"]; len(n) > 0 && !postgres.IsConns(n[0]) {
		return fmt.Sprintf("pool_max_conns is %q, which is not a valid number of connections", n[0])
	}
	return ""
}

// findInvalidEntry returns the name of the first invalid entry of a list setting and the reason.
func (c Config) findInvalidEntry() (name, reason string) {
	for _, list := range []struct {
		name, want string
		entries    []string
		isValid    func(string) bool
	}{
		{"hosts", "a host name or IP address in ASCII, with an optional port", c.Hosts, isHost},
		{"origins", "an origin such as https://app.example.com", c.Origins, isOrigin},
		{"http_allow", "a host name, an IP address (each with an optional port) or a CIDR", c.HTTPAllow,
			func(s string) bool { return web.Guard{Allow: []string{s}}.Validate() == nil }},
		{"shell_env", "the name of an environment variable", c.ShellEnv, varName.MatchString},
	} {
		for i, entry := range list.entries {
			if !list.isValid(entry) {
				return list.name + "." + strconv.Itoa(i), fmt.Sprintf("%q is not %s", entry, list.want)
			}
		}
	}
	return "", ""
}

// isPort reports whether s is a port number, or a service name that the system knows.
func isPort(s string) bool {
	_, err := net.LookupPort("tcp", s)
	return s != "" && err == nil
}

var (
	varName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName = regexp.MustCompile(
		`^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$`)
	numericEnd = regexp.MustCompile(`(^|\.)[0-9]+$`) // the last label of an IP address; no host name ends like this
)

// isHost reports whether s is a valid value of a Host header. An IPv6 address may be written as ::1, or as [::1] with
// an optional port.
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

// nonPageSchemes are URL schemes that no web page has.
var nonPageSchemes = []string{"", "ftp", "ws", "wss", "file"}

// isOrigin reports whether s is an origin as browsers write it: scheme, host, and the port unless it is the default of
// the scheme.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || slices.Contains(nonPageSchemes, u.Scheme) || u.Scheme == "http" && u.Port() == "80" ||
		u.Scheme == "https" && u.Port() == "443" {
		return false
	}
	return u.Scheme+"://"+u.Host == s && strings.ToLower(s) == s && isHost(u.Host)
}

// parseLogLevel returns the log level.
func (c Config) parseLogLevel() (l slog.Level, ok bool) {
	return l, c.LogLevel == "" || l.UnmarshalText([]byte(c.LogLevel)) == nil
}

// findOutOfRange returns the name of the first number outside the range that the tags of its field declare, and the
// reason. The schema of the configuration has the same ranges.
func findOutOfRange(section reflect.Value, path string) (name, reason string) {
	for i := range section.NumField() {
		f, v := section.Type().Field(i), section.Field(i)
		fullName, n := path+f.Tag.Get("yaml"), 0.0
		switch v.Kind() {
		case reflect.Struct:
			if name, reason = findOutOfRange(v, fullName+"."); name != "" {
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
		minimum, err := strconv.ParseFloat(f.Tag.Get("minimum"), 64)
		if n == 0 || err != nil {
			continue
		}
		maximum, err := strconv.ParseFloat(f.Tag.Get("maximum"), 64)
		switch hasMaximum := err == nil; {
		case hasMaximum && (n < minimum || n > maximum):
			return fullName, fmt.Sprintf("%v is not between %s and %s", v.Interface(), f.Tag.Get("minimum"),
				f.Tag.Get("maximum"))
		case !(n >= minimum) || math.IsInf(n, 0): // the negation covers NaN
			return fullName, fmt.Sprintf("%v is not %s or more", v.Interface(), f.Tag.Get("minimum"))
		}
	}
	return "", ""
}
