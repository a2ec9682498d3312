package host

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reeve"
	"reeve/internal/agent"
	"reeve/internal/backoff"
	"reeve/internal/redact"
	"reeve/internal/store"
	"reeve/internal/wake"
	"reeve/model"
)

// Duration is a time.Duration that is written as 10s or 7h.
type Duration time.Duration

// UnmarshalText parses a duration such as 10s, 5m or 24h. It refuses negative ones.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; use the form 30s, 5m or 24h", b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText formats the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Config contains all settings of an operator. Settings come from reeve.yaml, then REEVE_* variables, then flags. Later
// sources override earlier ones.
type Config struct {
	Dir              string       `yaml:"dir" json:"dir,omitempty" doc:"Data directory. Default: ~/.reeve"`
	Listen           string       `yaml:"listen" json:"listen,omitempty" doc:"Address to listen on, as host:port. Default: 127.0.0.1:7410"`
	Database         string       `yaml:"database" json:"database,omitempty" doc:"URL of a PostgreSQL database (postgres://user:password@host/name). Default: SQLite in the data directory"`
	DirectDB         string       `yaml:"database_direct" json:"database_direct,omitempty" doc:"postgres:// URL that bypasses the connection pooler in database; used for backups. Default: none"`
	Hosts            []string     `yaml:"hosts" json:"hosts,omitempty" doc:"Host names that the server answers to, in addition to loopback names. Default: none"`
	Origins          []string     `yaml:"origins" json:"origins,omitempty" doc:"Web origins that may call the server, in addition to its own. Default: none"`
	Shell            string       `yaml:"shell" json:"shell,omitempty" enum:"host,session,disabled" doc:"Backend of shell_exec for agents whose settings name none; disabled applies to all agents. Default: host"`
	ShellEnv         []string     `yaml:"shell_env" json:"shell_env,omitempty" doc:"Names of the server's environment variables that agents may pass to their commands. Default: none"`
	ShellDiskMB      int          `yaml:"shell_disk_mb" json:"shell_disk_mb,omitempty" minimum:"16" maximum:"1048576" doc:"Size in MiB of a workspace's /shared, or of a branch folder, above which commands are refused. Default: 10240"`
	Python           PythonConfig `yaml:"python" json:"python,omitzero" doc:"Settings of execute_python; see docs/python.md"`
	HTTPAllow        []string     `yaml:"http_allow" json:"http_allow,omitempty" doc:"Private addresses that HTTP tools may reach, as host, host:port or CIDR. Default: none"`
	OutputCap        int          `yaml:"output_cap" json:"output_cap,omitempty" minimum:"1024" maximum:"1048576" doc:"Bytes of a tool's output that callers are shown. Default: 16384"`
	ApprovalTTL      Duration     `yaml:"approval_ttl" json:"approval_ttl,omitempty" doc:"Time until an unanswered approval expires. Default: 168h"`
	Retention        Duration     `yaml:"retention" json:"retention,omitempty" doc:"Time to keep full copies of truncated outputs and old versions of changed files; at least 24h. Default: forever"`
	RequestRetention Duration     `yaml:"request_retention" json:"request_retention,omitempty" doc:"Time to keep what models were asked; at least 24h. Default: 720h, or retention if that is shorter"`
	RetryFirst       Duration     `yaml:"retry_first" json:"retry_first,omitempty" doc:"First delay before retrying to learn the outcome of an operation, or retrying an automation after a network failure. Default: 10s"`
	RetryMax         Duration     `yaml:"retry_max" json:"retry_max,omitempty" doc:"Longest delay before such a retry. Default: 10m"`
	RetryAttempts    int          `yaml:"retry_attempts" json:"retry_attempts,omitempty" minimum:"1" maximum:"100" doc:"Retries before a person must decide about an operation, or an automation stops. Default: 5"`
	MaxRuns          int          `yaml:"max_runs" json:"max_runs,omitempty" minimum:"1" maximum:"256" doc:"Maximum number of concurrent runs. Default: 128"`
	RunAttempts      int          `yaml:"run_attempts" json:"run_attempts,omitempty" minimum:"1" maximum:"1000" doc:"Attempts of a run, including the first, before crashes fail it. Default: 5"`
	DelegationDepth  int          `yaml:"delegation_depth" json:"delegation_depth,omitempty" minimum:"1" maximum:"16" doc:"Maximum depth of agents that call agents. Default: 3"`
	ScriptTimeout    Duration     `yaml:"script_timeout" json:"script_timeout,omitempty" doc:"Time limit of one script run, including waits. Default: 1h"`
	ScriptCompute    Duration     `yaml:"script_compute_timeout" json:"script_compute_timeout,omitempty" doc:"Time that a script may compute between two calls; waiting does not count. Default: 30s"`
	SchedulesPerUser int          `yaml:"schedules_per_user" json:"schedules_per_user,omitempty" minimum:"1" maximum:"100000" doc:"Maximum number of schedules per user. Default: 50"`
	MinInterval      Duration     `yaml:"min_interval" json:"min_interval,omitempty" doc:"Minimum time between two firings of a schedule. Default: 1m"`
	AlertAfter       int          `yaml:"alert_after" json:"alert_after,omitempty" minimum:"1" maximum:"1000" doc:"Consecutive failures after which the user of a schedule is notified, whatever its notification policy. Default: 3"`
	DisableAfter     int          `yaml:"disable_after" json:"disable_after,omitempty" minimum:"1" maximum:"1000" doc:"Consecutive failures after which a schedule is disabled. Default: 5"`
	RunCalls         int          `yaml:"run_calls" json:"run_calls,omitempty" minimum:"0" doc:"Maximum number of calls in one scheduled run. Default: no limit"`
	RunTokens        int          `yaml:"run_tokens" json:"run_tokens,omitempty" minimum:"0" doc:"Maximum number of tokens that one scheduled run may use. Default: no limit"`
	RunMicros        int          `yaml:"run_micros" json:"run_micros,omitempty" minimum:"0" doc:"Maximum cost of one scheduled run, in millionths of the currency unit. Default: no limit"`
	RunMillis        int          `yaml:"run_millis" json:"run_millis,omitempty" minimum:"0" doc:"Maximum total duration of the calls in one scheduled run, in milliseconds. Default: no limit"`
	RunScriptJobs    bool         `yaml:"run_script_jobs" json:"run_script_jobs,omitempty" doc:"Let run_calls, run_tokens, run_micros and run_millis limit script jobs too: the planner and the maintainer of automations. Default: false"`
	Webhook          string       `yaml:"webhook" json:"webhook,omitempty" doc:"URL that notifications are posted to as JSON, with the notification id as Idempotency-Key. Default: none"`
	WeatherURL       string       `yaml:"weather_url" json:"weather_url,omitempty" doc:"Base URL of the Open-Meteo forecast API for utils_weather. Default: https://api.open-meteo.com"`
	GeocodingURL     string       `yaml:"geocoding_url" json:"geocoding_url,omitempty" doc:"Base URL of the Open-Meteo geocoding API for utils_weather. Default: https://geocoding-api.open-meteo.com"`
	Rate             float64      `yaml:"rate" json:"rate,omitempty" minimum:"0" doc:"Requests per second for each token. Default: 200"`
	Burst            int          `yaml:"burst" json:"burst,omitempty" minimum:"0" doc:"Burst of requests for each token. Default: 400"`
	LogLevel         string       `yaml:"log_level" json:"log_level,omitempty" enum:"debug,info,warn,error" doc:"Minimum level of log messages. Default: info"`
	Models           model.Config `yaml:"model" json:"model,omitzero" doc:"Available models; see docs/models.md"`
	Memory           MemoryConfig `yaml:"memory" json:"memory,omitzero" doc:"How notes are searched; see docs/memory.md"`
	Web              WebConfig    `yaml:"web" json:"web,omitzero" doc:"How the tools that read the web behave; see docs/web.md"`
	SecretKey        string       `yaml:"secret_key" json:"secret_key,omitempty" doc:"Key that encrypts stored secrets, as 64 hex digits; servers with a common database need the same key. Default: generated in the data directory"`

	Held bool `yaml:"held" json:"held,omitempty" doc:"Start held, as after a restore: nothing runs until reeve resume. Default: held only after a restore"`

	MetricsToken string `yaml:"metrics_token" json:"metrics_token,omitempty" minLength:"16" doc:"Bearer token that can read /metrics and nothing else. Default: only server tokens can read it"`

	source *configSource // the file that the settings were read from, if any

	// The fields below can be set by a Go program only.

	// Log receives log messages. Default: a text logger that writes to LogTo
	Log *slog.Logger `yaml:"-" json:"-"`
	// LogTo is the output of the default logger. Default: standard error
	LogTo io.Writer `yaml:"-" json:"-"`
	// OnFault injects faults, for tests. Default: none
	OnFault store.CommitHook `yaml:"-" json:"-"`
	// Heartbeat is the interval of checks whether clients of streams may still listen. Default: 15 s
	Heartbeat time.Duration `yaml:"-" json:"-"`
	// Model answers for all agents. Default: the configured providers
	Model model.Model `yaml:"-" json:"-"`
	// Assemble assembles the model request of a turn. Default: the built-in assembler
	Assemble agent.Assembler `yaml:"-" json:"-"`
	// Extract takes notes from completed turns. Default: the model does, for agents whose config enables it
	Extract agent.Extractor `yaml:"-" json:"-"`
}

// FromEnv overrides settings with REEVE_* variables. An empty variable restores the default.
func (c *Config) FromEnv(lookup func(string) (string, bool)) error {
	text := map[string]*string{"REEVE_DIR": &c.Dir, "REEVE_LISTEN": &c.Listen, "REEVE_DATABASE": &c.Database,
		"REEVE_DATABASE_DIRECT": &c.DirectDB, "REEVE_LOG_LEVEL": &c.LogLevel, "REEVE_SECRET_KEY": &c.SecretKey,
		"REEVE_METRICS_TOKEN": &c.MetricsToken,
		"REEVE_WEBHOOK":       &c.Webhook, "REEVE_SHELL": &c.Shell, "REEVE_WEATHER_URL": &c.WeatherURL,
		"REEVE_GEOCODING_URL": &c.GeocodingURL, "REEVE_MODEL": &c.Models.Default,
		"REEVE_MODEL_SCRIPT": &c.Models.Script,
		"REEVE_PYTHON_CACHE": &c.Python.Cache, "REEVE_MEMORY_ENCODER": &c.Memory.Encoder,
		"REEVE_MEMORY_URL": &c.Memory.URL, "REEVE_MEMORY_KEY": &c.Memory.Key, "REEVE_MEMORY_MODEL": &c.Memory.Model,
		"REEVE_WEB_ROBOTS": &c.Web.Robots, "REEVE_WEB_USER_AGENT": &c.Web.UserAgent,
		"REEVE_WEB_SEARCH_PROVIDER": &c.Web.Search.Provider, "REEVE_WEB_SEARCH_KEY": &c.Web.Search.Key,
		"REEVE_WEB_SEARCH_URL": &c.Web.Search.URL}
	lists := map[string]*[]string{"REEVE_HOSTS": &c.Hosts, "REEVE_ORIGINS": &c.Origins,
		"REEVE_HTTP_ALLOW": &c.HTTPAllow, "REEVE_SHELL_ENV": &c.ShellEnv}
	durations := map[string]*Duration{"REEVE_APPROVAL_TTL": &c.ApprovalTTL, "REEVE_RETENTION": &c.Retention,
		"REEVE_REQUEST_RETENTION": &c.RequestRetention,
		"REEVE_RETRY_FIRST":       &c.RetryFirst, "REEVE_RETRY_MAX": &c.RetryMax,
		"REEVE_MIN_INTERVAL": &c.MinInterval, "REEVE_SCRIPT_TIMEOUT": &c.ScriptTimeout,
		"REEVE_SCRIPT_COMPUTE_TIMEOUT": &c.ScriptCompute,
		"REEVE_PYTHON_TIMEOUT":         &c.Python.Timeout}
	numbers := map[string]*int{"REEVE_OUTPUT_CAP": &c.OutputCap, "REEVE_RETRY_ATTEMPTS": &c.RetryAttempts,
		"REEVE_BURST": &c.Burst, "REEVE_MAX_RUNS": &c.MaxRuns, "REEVE_RUN_ATTEMPTS": &c.RunAttempts,
		"REEVE_DELEGATION_DEPTH": &c.DelegationDepth, "REEVE_SCHEDULES_PER_USER": &c.SchedulesPerUser,
		"REEVE_ALERT_AFTER":   &c.AlertAfter,
		"REEVE_DISABLE_AFTER": &c.DisableAfter,
		"REEVE_RUN_CALLS":     &c.RunCalls, "REEVE_RUN_TOKENS": &c.RunTokens, "REEVE_RUN_MICROS": &c.RunMicros,
		"REEVE_RUN_MILLIS":       &c.RunMillis,
		"REEVE_PYTHON_MEMORY_MB": &c.Python.MemoryMB, "REEVE_PYTHON_OUTPUT_KB": &c.Python.OutputKB,
		"REEVE_PYTHON_MAX_RUNS": &c.Python.MaxRuns,
		"REEVE_SHELL_DISK_MB":   &c.ShellDiskMB, "REEVE_WEB_MAX_DOWNLOAD_MB": &c.Web.MaxDownloadMB}
	for name, p := range text {
		if v, ok := lookup(name); ok {
			*p = v
		}
	}
	for name, setting := range map[string]string{"REEVE_MODEL": "model.default", "REEVE_MODEL_SCRIPT": "model.script"} {
		if _, ok := lookup(name); ok && c.source != nil {
			delete(c.source.lines, setting) // errors no longer refer to the file
		}
	}
	for name, p := range lists {
		if v, ok := lookup(name); ok {
			*p = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	for name, p := range durations {
		if v, ok := lookup(name); ok {
			*p = 0
			if err := p.UnmarshalText([]byte(v)); v != "" && err != nil {
				return reeve.Errorf(reeve.Validation, "%s: %v", name, err)
			}
		}
	}
	for name, p := range numbers {
		if v, ok := lookup(name); ok {
			n, err := strconv.Atoi(v)
			if v != "" && err != nil {
				return reeve.Errorf(reeve.Validation, "%s: %q is not an integer", name, v)
			}
			*p = n
		}
	}
	if v, ok := lookup("REEVE_PYTHON_DISABLED"); ok {
		off, err := strconv.ParseBool(v)
		if v != "" && err != nil {
			return reeve.Errorf(reeve.Validation, "REEVE_PYTHON_DISABLED: %q is not true or false", v)
		}
		c.Python.Disabled = off
	}
	if v, ok := lookup("REEVE_HELD"); ok {
		held, err := strconv.ParseBool(v)
		if v != "" && err != nil {
			return reeve.Errorf(reeve.Validation, "REEVE_HELD: %q is not true or false", v)
		}
		c.Held = held
	}
	for name, p := range map[string]*float64{"REEVE_RATE": &c.Rate, "REEVE_WEB_HOST_RATE": &c.Web.HostRate} {
		if v, ok := lookup(name); ok {
			n, err := strconv.ParseFloat(v, 64)
			if v != "" && err != nil {
				return reeve.Errorf(reeve.Validation, "%s: %q is not a number", name, v)
			}
			*p = n
		}
	}
	return nil
}

// DefaultDir returns the data directory that is used if none is configured.
func DefaultDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ".reeve"
	}
	return filepath.Join(home, ".reeve")
}

// withDefaults fills unset fields and fails with Validation if a setting is invalid.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		c.Dir = DefaultDir()
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:7410"
	}
	if name, reason := c.findInvalidSetting(); name != "" {
		return c, reeve.Errorf(reeve.Validation, "setting %s: %s", name, reason).
			Hintf("see docs/configuration.md for all settings")
	}
	if c.Log == nil {
		if c.LogTo == nil {
			c.LogTo = os.Stderr
		}
		level, _ := c.parseLogLevel()
		// unbuffered, since records are whole lines
		to := redact.New(listKnownSecrets(c)).MaskNamed().NewWriter(c.LogTo)
		c.Log = slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	}
	return c, nil
}

func (c Config) backoff() backoff.Policy {
	return backoff.Policy{First: time.Duration(c.RetryFirst), Max: time.Duration(c.RetryMax), Attempts: c.RetryAttempts}
}

// limits returns the limits for schedules.
func (c Config) limits() wake.Limits {
	return wake.Limits{PerUser: c.SchedulesPerUser, MinInterval: time.Duration(c.MinInterval), AlertAfter: c.AlertAfter,
		DisableAfter: c.DisableAfter,
		Budget: reeve.Amount{Calls: int64(c.RunCalls), Tokens: int64(c.RunTokens), Micros: int64(c.RunMicros),
			Millis: int64(c.RunMillis)}, LimitScriptJobs: c.RunScriptJobs}
}

// modelConfig returns the configuration of the model providers.
func (c Config) modelConfig() model.Config {
	m := c.Models
	if m.Log == nil {
		m.Log = c.Log
	}
	return m
}
