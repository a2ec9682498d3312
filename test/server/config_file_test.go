package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

// Every mistake in a config is reported with file, line and setting, without the lines around it, which may hold a key.
func TestLoadConfig_ReportsEveryMistakeWithItsLine(t *testing.T) {
	t.Setenv("REEVE_TEST_KEY", "hunter2hunter2")
	t.Setenv("REEVE_TEST_LIST", "[5]")
	t.Setenv("REEVE_TEST_LINES", "https://a.example\norigins: ['https://evil.example']")
	for text, want := range map[string]string{
		"rate: -1":                                  "line 3: rate: -1 is not 0 or more",
		"burst: -1":                                 "line 3: burst: -1 is not 0 or more",
		"rate: abc":                                 `line 3: rate: "abc" is not a number`,
		"rate: .nan":                                "line 3: rate: NaN is not 0 or more",
		"rate: true":                                `line 3: rate: "true" is not a number`,
		"max_runs: 1.5":                             `line 3: max_runs: "1.5" is not an integer`,
		"max_runs: 99999999999999999999":            `line 3: max_runs: "99999999999999999999" is not an integer`,
		"max_runs: 257":                             "line 3: max_runs: 257 is not between 1 and 256",
		"max_runs: [1]":                             "line 3: max_runs: expected an integer",
		"max_runs: {a: 1}":                          "line 3: max_runs: expected an integer",
		"output_cap: 12":                            "line 3: output_cap: 12 is not between 1024 and 1048576",
		"approval_ttl: 5 parsecs":                   `line 3: approval_ttl: "5 parsecs" is not a duration`,
		"approval_ttl: [5s]":                        "line 3: approval_ttl: expected a duration such as 30s",
		"min_interval: -1s":                         `line 3: min_interval: "-1s" is not a duration`,
		"min_interval: 5":                           `line 3: min_interval: "5" is not a duration`,
		"log_level: x":                              `line 3: log_level: "x" is not debug, info, warn or error`,
		"log_level: [x]":                            "line 3: log_level: expected a string",
		"python:\n  timeout: 5s\n  memory_mb: 4":    "line 5: python.memory_mb: 4 is not between 16 and 1024",
		"python:\n  timeout: 5h":                    "line 4: python.timeout: it is more than ",
		"python:\n\n  memory_mb: much":              `line 5: python.memory_mb: "much" is not an integer`,
		"python: {disabled: maybe}":                 `line 3: python.disabled: "maybe" is not true or false`,
		"python:\n  memory: 4":                      "line 4: unknown setting python.memory",
		"python: 5":                                 "line 3: python: expected settings of the form",
		"secret_key: abc":                           "line 3: secret_key: it must be 64 hex digits",
		"webhook: nowhere":                          "line 3: webhook: it must be an http or https URL",
		"weather_url: nowhere":                      "line 3: weather_url: it must be an http or https URL",
		"database: mysql://x":                       "line 3: database: it must begin with postgres://",
		"shell: bash":                               `line 3: shell: "bash" is not `,
		"listen: 7410":                              `line 3: listen: "7410" is not host:port`,
		"http_allow: [a.example, 'x y']":            `line 3: http_allow.1: "x y" is not a host name, an IP address`,
		"http_allow:\n  - a.example\n  - http://a/": `line 5: http_allow.1: "http://a/" is not a host name, an IP address`,
		"hosts: a.example":                          "line 3: hosts: expected a list",
		"hosts: [a.example, 'http://b']":            `line 3: hosts.1: "http://b" is not a host name`,
		"hosts: ['']":                               `line 3: hosts.0: "" is not a host name`,
		"origins: [not an origin]":                  `line 3: origins.0: "not an origin" is not an origin`,
		"origins:\n - https://a.example\n - https://x/y":     `line 5: origins.1: "https://x/y" is not an origin`,
		"origins: ['https://a.test:443']":                    `line 3: origins.0: "https://a.test:443" is not an origin`,
		"origins: ['http://a.test:80']":                      `line 3: origins.0: "http://a.test:80" is not an origin`,
		"origins: ['https://*.a']":                           `line 3: origins.0: "https://*.a" is not an origin`,
		"origins: ['https://a:99999']":                       `line 3: origins.0: "https://a:99999" is not an origin`,
		"origins: ['ftp://a']":                               `line 3: origins.0: "ftp://a" is not an origin`,
		"origins: ['https://']":                              `line 3: origins.0: "https://" is not an origin`,
		"hosts: ['a:99999']":                                 `line 3: hosts.0: "a:99999" is not a host name`,
		"database: postgres://me@host/db?pool_max_conns=zz":  `line 3: database: pool_max_conns is "zz"`,
		"max_runs: !!int 'x'":                                `line 3: max_runs: "x" is not an integer`,
		"shell_env: [LANG, 'A=B']":                           `line 3: shell_env.1: "A=B" is not the name of an environment variable`,
		"listen: 127.0.0.1:99999":                            `line 3: listen: "127.0.0.1:99999" is not host:port`,
		"hosts:\n  - a\n  - {b: c}":                          "line 5: hosts.1: expected a string",
		"hosts: ['*']":                                       `line 3: hosts.0: "*" is not a host name`,
		"hosts: ['a,b']":                                     `line 3: hosts.0: "a,b" is not a host name`,
		"hosts: [a..b]":                                      `line 3: hosts.0: "a..b" is not a host name`,
		"hosts: [a, 1]":                                      `line 3: hosts.1: "1" is not a host name`,
		"hosts: [bücher.example]":                            `line 3: hosts.0: "bücher.example" is not a host name`,
		"hosts: ['a:']":                                      `line 3: hosts.0: "a:" is not a host name`,
		"shell_env: ['*']":                                   `line 3: shell_env.0: "*" is not the name of an environment variable`,
		"shell_env: ['a,b']":                                 `line 3: shell_env.0: "a,b" is not the name of an environment variable`,
		"shell_env:\n - A\n - http://a/b?c":                  `line 5: shell_env.1: "http://a/b?c" is not the name of an environment variable`,
		"shell_env: [1]":                                     `line 3: shell_env.0: "1" is not the name of an environment variable`,
		"retry_first: 20s\nretry_max: 10s":                   "line 3: retry_first: 20s is more than retry_max (10s)",
		"disable_after: 2\nalert_after: 3":                   "line 4: alert_after: 3 is more than disable_after (2)",
		"approval_ttl: 1ns":                                  "line 3: approval_ttl: 1ns is less than the minimum of " + "one second",
		"retention: 12h":                                     "line 3: retention: 12h0m0s is less than the minimum of " + "24h0m0s",
		"rate: .inf":                                         "line 3: rate: +Inf is not 0 or more",
		"rate: .NaN":                                         "line 3: rate: NaN is not 0 or more",
		"model:\n  names:\n    fast: ''":                     "line 5: model.names.fast: the model is empty",
		"model:\n  names:\n    fast:":                        "line 5: model.names.fast: the model is empty",
		"rate: ${REEVE_TEST_LIST}":                           `line 3: rate: "[5]" is not a number`,
		"hosts: ${REEVE_TEST_LIST}":                          "line 3: hosts: expected a list",
		"${REEVE_TEST_LIST}: 5":                              "line 3: the name of a setting cannot contain a variable: " + "${REEVE_TEST_LIST}",
		"webhook: ${REEVE_TEST_LINES}":                       "line 3: webhook: it must be an http or https URL",
		"log_level: ${REEVE_TEST_LINES}\nrate: x":            `line 4: rate: "x" is not a number`,
		"webhook: 'https://${REEVE_TEST_LIST}'\nmax_runs: x": `line 4: max_runs: "x" is not an integer`,
		"colour: blue":                                       "line 3: unknown setting colour",
		"'-': blue":                                          "line 3: unknown setting -",
		"model:\n  servers:\n    near: 5":                    "line 5: model.servers.near: expected settings of the form",
		"model:\n  servers:\n    near:\n      ky: 5":         "line 6: unknown setting model.servers.near.ky",
		"max_runs: 3\nmax_runs: 4":                           "line 4: ",
		"max_runs: &n abc\nburst: *n":                        `line 3: max_runs: "abc" is not an integer`,
		"hosts: &n [a]\nburst: *n":                           "line 4: burst: expected an integer",
		"burst: *n":                                          "line 3: ",
		"max_runs: 3\n---\nmax_runs: 4":                      "line 4: a second YAML document begins here",
		"max_runs: 3\n...\nmax_runs: 4":                      "line 5: a second YAML document begins here",
		"python: &p {<<: *p}":                                "line 3: the anchor &p is not defined above",
		"max_runs: |\n  many":                                `line 3: max_runs: "many" is not an integer`,
		"database: postgres://me:hunter2@host:port/db":       "line 3: database: it is not a URL of the form",
		"max_runs: [":                                        "line 3: ",
		"max_runs: 3\n\tburst: 4":                            "line 4: ",
		"database: ${REEVE_TEST_NONE}":                       "line 3: the environment variable ${REEVE_TEST_NONE} is not set",
	} {
		file := writeConfig(t, "# settings\ngeocoding_url: 'https://${REEVE_TEST_KEY}'\n"+text+"\n")
		_, err := host.LoadConfig(file)
		told := reeve.AsError(err)
		if told.Code != reeve.Validation || !strings.HasPrefix(told.Message, file+", "+want) || told.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
		for _, never := range []string{"hunter2", "Go ", "unmarshal", "float64", "interface", "Config.", "mapping is"} {
			if strings.Contains(told.Message, never) {
				t.Errorf("%q: it says %q: %s", text, never, told.Message)
			}
		}
	}
	for _, text := range []string{"hello", "- a", "{a: b}", "a"} {
		file := writeConfig(t, text)
		if _, err := host.LoadConfig(file); err == nil || !strings.Contains(err.Error(), "reeve.yaml, line 1: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Mistakes in models are found when models are opened, because variables take part. Those in the file are still
// reported with their line.
func TestLoadConfig_ReportsMistakesInModels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  servers:\n    near:\n      base_url: nowhere":                   "line 4: model.servers.near.base_url must " + "be a URL",
		"  servers:\n    near:\n      base_url: http://a\n      api: soap": `line 5: model.servers.near.api must be chat or responses, not "soap"`,
		"  servers:\n    near:\n      key: abc":                            "line 3: model.servers.near needs a " + "base_url",
		"  servers:\n    openai:\n      base_url: http://a":                `line 3: model.servers: "openai" is not a valid server name`,
		"  openai: {base_url: nowhere}":                                    "line 2: model.openai.base_url must be a URL",
		"  names: {a: b, b: c/d}":                                          "line 2: model.names: a refers to another " + "alias",
		"  names:\n    a: nobody/x":                                        "line 3: model.names: a: there is no model",
		"  default: nobody/x":                                              "line 2: model.default is not usable: " + "there is no model",
		"  script: none.yaml":                                              "line 2: cannot read the rehearsal " + "script",
		"  prices: none.yaml":                                              "line 2: cannot read the price table",
	} {
		file := writeConfig(t, "model:\n"+text+"\n")
		if told := openWithConfig(t, file, nil); told.Code != reeve.Validation ||
			!strings.HasPrefix(told.Message, file+", "+want) || len(told.Fields) != 0 {
			t.Errorf("%q: %v", text, told)
		}
	}
	file := writeConfig(t, "model:\n  default: rehearsal\n")
	told := openWithConfig(t, file, map[string]string{"REEVE_MODEL": "nobody/x"}) // which is not the file's mistake
	if !strings.HasPrefix(told.Message, "model.default is not usable") {
		t.Error(told)
	}
}

// writeConfig writes a config file and returns its path.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "reeve.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// openWithConfig starts a server with a config file and variables and returns its error.
func openWithConfig(t *testing.T, file string, env map[string]string) *reeve.Error {
	t.Helper()
	cfg, err := host.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.FromEnv(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	cfg.Dir, cfg.LogTo = t.TempDir(), t.Output()
	h, err := host.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Handler(t.Context())
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	return reeve.AsError(err)
}

// Valid settings are read in every form that YAML allows. An empty setting, or 0, has its default.
func TestLoadConfig_AcceptsValidSettings(t *testing.T) {
	t.Setenv("REEVE_TEST_NUMBER", "3")
	for text, want := range map[string]string{
		"":                                     "0 0 0s [] 0",
		"# nothing\n":                          "0 0 0s [] 0",
		"max_runs:\nhosts:\npython:\n":         "0 0 0s [] 0",
		"output_cap: 0\nmax_runs: 0\nrate: 0":  "0 0 0s [] 0",
		"---\nmax_runs: 3\n...\n":              "3 0 0s [] 0",
		"%YAML 1.2\n---\nmax_runs: 3\n---\n":   "3 0 0s [] 0",
		"# a\n---\nmax_runs: 3\n---\n# more\n": "3 0 0s [] 0",
		"max_runs: '3'\nrate: 1e2\napproval_ttl: 5m\nhosts: [a, b5]\n": "3 100 5m0s [a b5] 0",
		"approval_ttl: !!str 5m\nhosts: !!seq [a]\nmax_runs: 3\n":      "3 0 5m0s [a] 0",
		"max_runs: !!int '${REEVE_TEST_NUMBER}'\nrate: !!float 5\n":    "3 5 0s [] 0",
		"origins: ['https://a.test:8443', 'http://[::1]:3000', 'chrome-extension://abcdef', " +
			"'http://localhost']\nmax_runs: 3\n": "3 0 0s [] 0",
		"approval_ttl: >-\n  5m\n":      "0 0 5m0s [] 0",
		"max_runs: &n 0x10\nrate: *n\n": "16 16 0s [] 0",
		"python: &p\n  memory_mb: 64\n": "0 0 0s [] 64",
		"rate: ''\nmax_runs: ''\napproval_ttl: ''\nhosts: ''\npython: {memory_mb: '', disabled: '', timeout: ''}\n": "0 0 0s [] 0",
		"\uFEFFmax_runs: 3\n": "3 0 0s [] 0",
		"hosts: ['::1', '[::1]:80', 192.0.2.1, 'Reeve.Example:7410', 2001:DB8::1]\n": "0 0 0s [::1 [::1]:80 " +
			"192.0.2.1 Reeve.Example:7410 2001:DB8::1] 0",
		"{max_runs: 3, python: {memory_mb: 32}}": "3 0 0s [] 32",
	} {
		file := writeConfig(t, text)
		c, err := host.LoadConfig(file)
		if got := fmt.Sprint(c.MaxRuns, " ", c.Rate, " ", time.Duration(c.ApprovalTTL), " ", c.Hosts, " ",
			c.Python.MemoryMB); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	reevetest.StartWith(t, host.Config{Dir: t.TempDir(), OutputCap: 0})
	cfg := host.Config{Rate: 5, MaxRuns: 5, ApprovalTTL: host.Duration(time.Hour),
		Python: host.PythonConfig{Disabled: true}}
	err := cfg.FromEnv(func(name string) (string, bool) {
		return "", strings.HasPrefix(name, "REEVE_")
	})
	if err != nil || cfg.Rate != 0 || cfg.MaxRuns != 0 || cfg.ApprovalTTL != 0 || cfg.Python.Disabled {
		t.Errorf("empty variables: %+v, %v", cfg, err)
	}
	// also what comes from elsewhere
	for _, cfg := range []host.Config{{HTTPAllow: []string{"x y"}}, {Rate: -1}, {MaxRuns: 257},
		{Python: host.PythonConfig{MaxRuns: 65}}} {
		cfg.Dir = t.TempDir()
		if _, err := host.New(t.Context(), cfg); reeve.CodeOf(err) != reeve.Validation ||
			!strings.Contains(err.Error(), "setting ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// The value of a variable is a text, a number or a bool, and never more YAML.
func TestLoadConfig_PutsVariablesIntoValues(t *testing.T) {
	for name, v := range map[string]string{"HASH": "https://a.example/x #y", "STAR": "*x: @y", "QUOTE": `a"b'c\\d`,
		"NUM": "16", "HEX": "0x10", "YES": "true", "NONE": "", "ZEROS": "0070", "HOST": "a.example", "SPAN": "5m"} {
		t.Setenv("REEVE_TEST_"+name, v)
	}
	file := writeConfig(t, `# ${REEVE_TEST_UNSET} is not asked for here
webhook: ${REEVE_TEST_HASH}
max_runs: ${REEVE_TEST_NUM} # nor ${REEVE_TEST_UNSET} here
burst: ${REEVE_TEST_HEX}
rate: ${REEVE_TEST_NONE}
approval_ttl: ${REEVE_TEST_SPAN}
hosts: [${REEVE_TEST_HOST}, "b.${REEVE_TEST_HOST}"]
python: {disabled: ${REEVE_TEST_YES}, cache: "/${REEVE_TEST_QUOTE}"}
model:
  openai:
    key: ${REEVE_TEST_STAR}
  gemini:
    key: ${REEVE_TEST_ZEROS}
  default: >-
    ${REEVE_TEST_HOST}/${REEVE_TEST_NUM}
`)
	c, err := host.LoadConfig(file)
	got := fmt.Sprintf("%s|%d|%d|%v|%s|%v|%v|%s|%s|%s|%s", c.Webhook, c.MaxRuns, c.Burst, c.Rate,
		time.Duration(c.ApprovalTTL), c.Hosts, c.Python.Disabled, c.Python.Cache, c.Models.OpenAI.Key,
		c.Models.Gemini.Key, c.Models.Default)
	if want := `https://a.example/x #y|16|16|0|5m0s|[a.example b.a.example]|true|/a"b'c\\d|*x: @y|0070|a.example/16`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
