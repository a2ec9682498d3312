package host

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"reeve/internal/sandbox/confine"
	"reeve/toolbox/files"
	"reeve/toolbox/web"
	"reeve/toolbox/web/document"
)

// WebConfig configures the tools that read the web.
type WebConfig struct {
	Robots        string          `yaml:"robots" json:"robots,omitempty" enum:"respect,ignore" doc:"Whether web_fetch and web_download obey robots.txt. Default: respect"`
	UserAgent     string          `yaml:"user_agent" json:"user_agent,omitempty" doc:"Name that web servers are sent, also looked up in robots.txt. Default: reeve"`
	HostRate      float64         `yaml:"host_rate" json:"host_rate,omitempty" minimum:"0" maximum:"1000" doc:"Requests per second to one host. Default: 2"`
	MaxDownloadMB int             `yaml:"max_download_mb" json:"max_download_mb,omitempty" minimum:"1" maximum:"10000" doc:"Largest file that web_download saves, in MB. Default: 100"`
	Search        WebSearchConfig `yaml:"search" json:"search,omitzero" doc:"Provider of web_search"`
}

// WebSearchConfig configures the provider of web_search.
type WebSearchConfig struct {
	Provider string `yaml:"provider" json:"provider,omitempty" enum:"brave,tavily,searxng" doc:"Provider of web_search. Default: none"`
	Key      string `yaml:"key" json:"key,omitempty" doc:"API key of the provider; brave and tavily need one. Default: none"`
	URL      string `yaml:"url" json:"url,omitempty" doc:"Base URL of the provider; searxng needs one. A private address must be in http_allow. Default: the provider's own"`
}

// newWebPack creates the pack of the web tools.
func (h *Host) newWebPack(guard web.Guard, roots *files.Pack) *web.Pack {
	c := h.cfg.Web
	return web.NewPack(web.PackConfig{Guard: guard, Files: roots.Streams(), IgnoreRobots: c.Robots == "ignore",
		UserAgent: c.UserAgent, HostRate: c.HostRate, MaxDownload: int64(c.MaxDownloadMB) * 1_000_000,
		Documents: document.NewConverter(confine.ConfineWorker),
		Search:    web.Search{Provider: c.Search.Provider, Key: c.Search.Key, URL: c.Search.URL}})
}

// explainInvalid returns the name of the first invalid setting and the reason. It does not show the URL, which may
// contain a key.
func (c WebConfig) explainInvalid() (name, reason string) {
	s := c.Search
	switch {
	case c.Robots != "" && c.Robots != "respect" && c.Robots != "ignore":
		return "web.robots", fmt.Sprintf("%q is not respect or ignore", c.Robots)
	case strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }):
		return "web.user_agent", "it must be printable ASCII"
	case s.Provider != "" && !slices.Contains(web.SearchProviders(), s.Provider):
		return "web.search.provider", fmt.Sprintf("%q is not one of %s", s.Provider,
			strings.Join(web.SearchProviders(), ", "))
	case s.Provider == "" && (s.Key != "" || s.URL != ""):
		return "web.search.provider", "it is not set, but web.search.key or web.search.url is"
	case strings.ContainsFunc(s.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "web.search.key", "it must be printable ASCII without spaces"
	}
	if missing := (web.Search{Provider: s.Provider, Key: s.Key, URL: s.URL}).Missing(); s.Provider != "" &&
		missing != "" {
		return missing, "the provider " + s.Provider + " needs it"
	}
	if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" &&
		u.Scheme != "https") {
		return "web.search.url", "it must be an http or https URL"
	}
	return "", ""
}
