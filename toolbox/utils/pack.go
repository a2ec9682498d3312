package utils

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"reeve"
)

// Client sends HTTP requests and enforces the network policy.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Pack is the pack of utility tools.
type Pack struct {
	Client   Client
	Forecast string // base URL of the forecast service. Default: https://api.open-meteo.com
	Places   string // base URL of the geocoding service. Default: https://geocoding-api.open-meteo.com
}

type atobArgs struct {
	Data string `json:"data" maxLength:"8000000" doc:"Base64 or base64url. Padding and line breaks are optional"`
}

// Tools returns utils_atob and utils_weather.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what + " Not a mutation.", Category: "utils", Pack: "utils",
			Effect: reeve.Read, TimeoutMS: 20_000}
	}
	return []reeve.Tool{
		reeve.MustTool(tool("utils_atob", "Decode Base64",
			"Decode Base64 to text. Data that is not UTF-8 becomes one character per byte."), p.atob),
		reeve.MustTool(tool("utils_weather", "Weather",
			"Get the current weather and a forecast for a place, by name or by coordinates (Open-Meteo)."),
			p.weather),
	}
}

// base64Normalizer turns base64url into Base64 and drops padding and white space.
var base64Normalizer = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "", "-", "+", "_", "/", "=", "")

// atob decodes Base64.
func (p *Pack) atob(_ context.Context, in atobArgs) (json.RawMessage, error) {
	b, err := base64.RawStdEncoding.DecodeString(base64Normalizer.Replace(in.Data))
	if err != nil {
		return nil, reeve.InvalidField("/data", "is not base64", "base64, such as SGVsbG8=")
	}
	text := string(b)
	if !utf8.Valid(b) {
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		text = string(runes)
	}
	return json.Marshal(text) // JSON, so that a string of digits stays a string
}
