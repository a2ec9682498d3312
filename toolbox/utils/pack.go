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

// Client sends requests. Who may be reached is its affair.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Pack is the pack.
type Pack struct {
	Client   Client // obeys the operator's network policy
	Forecast string // where forecasts come from. Default: https://api.open-meteo.com
	Places   string // where places are looked up. Default: https://geocoding-api.open-meteo.com
}

type encoded struct {
	Data string `json:"data" maxLength:"8000000" doc:"Base64, also the kind that URLs use, with or without padding and line breaks"`
}

// Tools gives utils_atob and utils_weather.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what + " Not a mutation.", Category: "utils", Pack: "utils",
			Effect: reeve.Read, TimeoutMS: 20_000}
	}
	return []reeve.Tool{
		reeve.MustTool(tool("utils_atob", "Decode Base64",
			"Decode base64 to text: UTF-8 where it is, otherwise one character for each byte."), p.atob),
		reeve.MustTool(tool("utils_weather", "Weather",
			"Get the weather now and for the next days, of a place by its name or its coordinates (Open-Meteo)."),
			p.weather),
	}
}

var loose = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "", "-", "+", "_", "/", "=", "")

func (p *Pack) atob(_ context.Context, in encoded) (json.RawMessage, error) {
	b, err := base64.RawStdEncoding.DecodeString(loose.Replace(in.Data))
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
	return json.Marshal(text) // as JSON, so that digits stay text
}
