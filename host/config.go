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

// Duration is a time span written like 10s or 7h.
type Duration time.Duration

// UnmarshalText reads 10s, 5m, 24h.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a time span; write one like 30s, 5m or 24h", b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes it back.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Config is everything an operator can set. Later sources win: reeve.yaml, then REEVE_* variables, then flags.
type Config struct {
	Dir         string       `yaml:"dir" json:"dir,omitempty" doc:"Data directory. Default: ~/.reeve"`
	Listen      string       `yaml:"listen" json:"listen,omitempty" doc:"Address to listen on. Default: 127.0.0.1:7410"`
	Database    string       `yaml:"database" json:"database,omitempty" doc:"postgres:// URL. Default: SQLite in the data directory"`
	DirectDB    string       `yaml:"database_direct" json:"database_direct,omitempty" doc:"postgres:// URL of PostgreSQL itself, for backups, when database leads to a connection pooler. Default: none"`
	Hosts       []string     `yaml:"hosts" json:"hosts,omitempty" doc:"Host names the server answers to, besides loopback ones. Default: none"`
	Origins     []string     `yaml:"origins" json:"origins,omitempty" doc:"Web origins that may call the server, besides its own. Default: none"`
	Shell       string       `yaml:"shell" json:"shell,omitempty" enum:"host,session,disabled" doc:"Backend of shell_exec for agents whose settings do not say; disabled is for all. Default: host"`
	ShellEnv    []string     `yaml:"shell_env" json:"shell_env,omitempty" doc:"names of the server's variables that an agent's settings may pass to its commands. Default: none"`
	ShellDiskMB   int          `yaml:"shell_disk_mb" json:"shell_disk_mb,omitempty" minimum:"16" maximum:"1048576" doc:"What /shared of a workspace, or the folder of a branch, may hold in MiB before commands are refused. Default: 10240"`
	Python      PythonConfig `yaml:"python" json:"python,omitzero" doc:"Whether and how Python is run; see docs/python.md"`
	HTTPAllow   []string     `yaml:"http_allow" json:"http_allow,omitempty" doc:"host, host:port or CIDR that HTTP tools may reach although private. Default: none"`
	OutputCap   int          `yaml:"output_cap" json:"output_cap,omitempty" minimum:"1024" maximum:"1048576" doc:"Bytes of a tool's output that callers are shown. Default: 16384"`
	ApprovalTTL Duration     `yaml:"approval_ttl" json:"approval_ttl,omitempty" doc:"How long an approval waits for a person. Default: 168h"`
	Retention   Duration     `yaml:"retention" json:"retention,omitempty" doc:"How long the whole of an output that was cut, and what a change of files took the place of, are kept; at least 24h. Default: for ever"`
	RetryFirst  Duration     `yaml:"retry_first" json:"retry_first,omitempty" doc:"First delay between attempts to learn an operation's outcome, and before an automation that the network failed is tried again. Default: 10s"`
	RetryMax    Duration     `yaml:"retry_max" json:"retry_max,omitempty" doc:"Longest such delay. Default: 10m"`
	RetryTries  int          `yaml:"retry_tries" json:"retry_tries,omitempty" minimum:"1" maximum:"100" doc:"How many such attempts. Default: 5"`
	Runs        int          `yaml:"runs" json:"runs,omitempty" minimum:"1" maximum:"256" doc:"Agents that run at once. Default: 128"`
	RunAttempts int          `yaml:"run_attempts" json:"run_attempts,omitempty" minimum:"1" maximum:"1000" doc:"How often a run is begun, the first time and after crashes, before it fails. Default: 5"`
	DelegationDepth       int          `yaml:"delegation_depth" json:"delegation_depth,omitempty" minimum:"1" maximum:"16" doc:"How deep calls of agents by agents may lie within each other. Default: 3"`
	ScriptTime  Duration     `yaml:"script_time" json:"script_time,omitempty" doc:"How long one run of a script may take, waiting included. Default: 1h"`
	SchedulesPerUser     int          `yaml:"schedules_per_user" json:"schedules_per_user,omitempty" minimum:"1" maximum:"100000" doc:"Schedules one user may have. Default: 50"`
	MinInterval Duration     `yaml:"min_interval" json:"min_interval,omitempty" doc:"Shortest time between two firings of a schedule. Default: 1m"`
	AlertAfter  int          `yaml:"alert_after" json:"alert_after,omitempty" minimum:"1" maximum:"1000" doc:"Failures in a row after which a schedule's user is told, whatever its policy. Default: 3"`
	DisableAfter int          `yaml:"disable_after" json:"disable_after,omitempty" minimum:"1" maximum:"1000" doc:"Failures in a row after which a schedule is disabled. Default: 5"`
	RunCalls    int          `yaml:"run_calls" json:"run_calls,omitempty" minimum:"0" doc:"Calls that one scheduled run may make. Default: no limit"`
	RunTokens   int          `yaml:"run_tokens" json:"run_tokens,omitempty" minimum:"0" doc:"Tokens that one scheduled run may spend. Default: no limit"`
	RunMicros   int          `yaml:"run_micros" json:"run_micros,omitempty" minimum:"0" doc:"Millionths of the currency that one scheduled run may spend. Default: no limit"`
	RunMillis   int          `yaml:"run_millis" json:"run_millis,omitempty" minimum:"0" doc:"Milliseconds that the calls of one scheduled run may take. Default: no limit"`
	Webhook     string       `yaml:"webhook" json:"webhook,omitempty" doc:"URL that notifications are posted to as JSON, each under its id as Idempotency-Key. Default: none"`
	WeatherURL  string       `yaml:"weather_url" json:"weather_url,omitempty" doc:"Where utils_weather gets forecasts, in the manner of Open-Meteo. Default: https://api.open-meteo.com"`
	PlacesURL   string       `yaml:"places_url" json:"places_url,omitempty" doc:"Where it looks places up. Default: https://geocoding-api.open-meteo.com"`
	Rate        float64      `yaml:"rate" json:"rate,omitempty" minimum:"0" doc:"Requests per second for one token. Default: 200"`
	Burst       int          `yaml:"burst" json:"burst,omitempty" minimum:"0" doc:"Requests at once for one token. Default: 400"`
	LogLevel    string       `yaml:"log_level" json:"log_level,omitempty" enum:"debug,info,warn,error" doc:"Default: info"`
	Models      model.Config `yaml:"model" json:"model,omitzero" doc:"Which models there are; see docs/models.md"`
	SecretKey   string       `yaml:"secret_key" json:"secret_key,omitempty" doc:"64 hex digits that seal stored secrets; servers that share a database share it. Default: made in the data directory"`

	Held bool `yaml:"held" json:"held,omitempty" doc:"Start held, as after a restore: nothing goes on until a person says reeve resume. Default: only after a restore"`

	MetricsToken string `yaml:"metrics_token" json:"metrics_token,omitempty" minLength:"16" doc:"A bearer token that reads /metrics and nothing else. Default: only server tokens read it"`

	source *configSource // the file that it was read from, if it was

	Log     *slog.Logger     `yaml:"-" json:"-"` // where to log. Default: standard error
	LogTo   io.Writer        `yaml:"-" json:"-"` // where the default logger writes. Default: standard error
	OnFault store.CommitHook `yaml:"-" json:"-"` // for fault tests. Default: nothing
	Heartbeat   time.Duration    `yaml:"-" json:"-"` // between looks at whether who listens still may. Default: 15 s

	Model     model.Model     `yaml:"-" json:"-"` // thinks for agents. Default: the providers that are configured
	Assemble agent.Assembler `yaml:"-" json:"-"` // makes the request that a turn begins with. Default: the built-in one
	// takes notes of turns that are over. Default: the model, of agents whose config says so
	Extract agent.Extractor `yaml:"-" json:"-"`
}

// FromEnv overrides settings with REEVE_* variables. One that is empty stands for the default.
func (c *Config) FromEnv(lookup func(string) (string, bool)) error {
	text := map[string]*string{"REEVE_DIR": &c.Dir, "REEVE_LISTEN": &c.Listen, "REEVE_DATABASE": &c.Database,
		"REEVE_DATABASE_DIRECT": &c.DirectDB, "REEVE_LOG_LEVEL": &c.LogLevel, "REEVE_SECRET_KEY": &c.SecretKey,
		"REEVE_METRICS_TOKEN": &c.MetricsToken,
		"REEVE_WEBHOOK":       &c.Webhook, "REEVE_SHELL": &c.Shell, "REEVE_WEATHER_URL": &c.WeatherURL,
		"REEVE_PLACES_URL": &c.PlacesURL, "REEVE_MODEL": &c.Models.Default, "REEVE_MODEL_SCRIPT": &c.Models.Script,
		"REEVE_PYTHON_CACHE": &c.Python.Cache}
	lists := map[string]*[]string{"REEVE_HOSTS": &c.Hosts, "REEVE_ORIGINS": &c.Origins,
		"REEVE_HTTP_ALLOW": &c.HTTPAllow, "REEVE_SHELL_ENV": &c.ShellEnv}
	spans := map[string]*Duration{"REEVE_APPROVAL_TTL": &c.ApprovalTTL, "REEVE_RETENTION": &c.Retention,
		"REEVE_RETRY_FIRST": &c.RetryFirst, "REEVE_RETRY_MAX": &c.RetryMax,
		"REEVE_MIN_INTERVAL": &c.MinInterval, "REEVE_SCRIPT_TIME": &c.ScriptTime, "REEVE_PYTHON_TIME": &c.Python.Time}
	numbers := map[string]*int{"REEVE_OUTPUT_CAP": &c.OutputCap, "REEVE_RETRY_TRIES": &c.RetryTries,
		"REEVE_BURST": &c.Burst, "REEVE_RUNS": &c.Runs, "REEVE_RUN_ATTEMPTS": &c.RunAttempts,
		"REEVE_DELEGATION_DEPTH": &c.DelegationDepth, "REEVE_SCHEDULES_PER_USER": &c.SchedulesPerUser, "REEVE_ALERT_AFTER": &c.AlertAfter,
		"REEVE_DISABLE_AFTER": &c.DisableAfter,
		"REEVE_RUN_CALLS":     &c.RunCalls, "REEVE_RUN_TOKENS": &c.RunTokens, "REEVE_RUN_MICROS": &c.RunMicros,
		"REEVE_RUN_MILLIS":       &c.RunMillis,
		"REEVE_PYTHON_MEMORY_MB": &c.Python.MemoryMB, "REEVE_PYTHON_OUTPUT_KB": &c.Python.OutputKB,
		"REEVE_PYTHON_RUNS":   &c.Python.Runs,
		"REEVE_SHELL_DISK_MB": &c.ShellDiskMB}
	for name, p := range text {
		if v, ok := lookup(name); ok {
			*p = v
		}
	}
	for name, setting := range map[string]string{"REEVE_MODEL": "model.default", "REEVE_MODEL_SCRIPT": "model.script"} {
		if _, ok := lookup(name); ok && c.source != nil {
			delete(c.source.lines, setting) // the file is not to blame
		}
	}
	for name, p := range lists {
		if v, ok := lookup(name); ok {
			*p = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	for name, p := range spans {
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
				return reeve.Errorf(reeve.Validation, "%s: %q is not a whole number", name, v)
			}
			*p = n
		}
	}
	if v, ok := lookup("REEVE_PYTHON_DISABLED"); ok {
		off, err := strconv.ParseBool(v)
		if v != "" && err != nil {
			return reeve.Errorf(reeve.Validation, "REEVE_PYTHON_DISABLED: %q is neither true nor false", v)
		}
		c.Python.Disabled = off
	}
	if v, ok := lookup("REEVE_HELD"); ok {
		held, err := strconv.ParseBool(v)
		if v != "" && err != nil {
			return reeve.Errorf(reeve.Validation, "REEVE_HELD: %q is neither true nor false", v)
		}
		c.Held = held
	}
	if v, ok := lookup("REEVE_RATE"); ok {
		n, err := strconv.ParseFloat(v, 64)
		if v != "" && err != nil {
			return reeve.Errorf(reeve.Validation, "REEVE_RATE: %q is not a number", v)
		}
		c.Rate = n
	}
	return nil
}

// DefaultDir is where data lives when nobody says.
func DefaultDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ".reeve"
	}
	return filepath.Join(home, ".reeve")
}

// withDefaults fills what is left unsaid and refuses what cannot be.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		c.Dir = DefaultDir()
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:7410"
	}
	if name, reason := c.findInvalidSetting(); name != "" {
		return c, reeve.Errorf(reeve.Validation, "setting %s: %s", name, reason).
			Hintf("docs/configuration.md lists every setting")
	}
	if c.Log == nil {
		if c.LogTo == nil {
			c.LogTo = os.Stderr
		}
		level, _ := c.parseLogLevel()
		to := redact.New(listKnownSecrets(c)).MaskNamed().NewWriter(c.LogTo) // holds nothing back: records are whole lines
		c.Log = slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	}
	return c, nil
}

func (c Config) backoff() backoff.Policy {
	return backoff.Policy{First: time.Duration(c.RetryFirst), Max: time.Duration(c.RetryMax), Tries: c.RetryTries}
}

// limits is what operators allow schedules to be.
func (c Config) limits() wake.Limits {
	return wake.Limits{PerUser: c.SchedulesPerUser, MinInterval: time.Duration(c.MinInterval), AlertAfter: c.AlertAfter,
		DisableAfter: c.DisableAfter,
		Budget: reeve.Amount{Calls: int64(c.RunCalls), Tokens: int64(c.RunTokens), Micros: int64(c.RunMicros),
			Millis: int64(c.RunMillis)}}
}

// modelConfig is what the model adapters are set up with.
func (c Config) modelConfig() model.Config {
	m := c.Models
	if m.Log == nil {
		m.Log = c.Log
	}
	return m
}
