package utils

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"reeve"
)

const (
	forecastURL = "https://api.open-meteo.com"
	placesURL   = "https://geocoding-api.open-meteo.com"
	maxAnswer   = 1 << 20
)

type where struct {
	Place     string   `json:"place,omitempty" maxLength:"200" doc:"A town's name, such as Graz; or give latitude and longitude"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180"`
	Days      int      `json:"days,omitempty" minimum:"1" maximum:"16" default:"3" doc:"How many days, today included"`
}

// spot is a place that was found.
type spot struct {
	Name      string  `json:"name,omitempty"`
	Country   string  `json:"country,omitempty"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// report is the weather as callers see it.
type report struct {
	spot
	Timezone string         `json:"timezone"`
	Now      now            `json:"now"`
	Days     []day          `json:"days"`
	Units    map[string]any `json:"units,omitempty"`
}

type now struct {
	Time          string  `json:"time"`
	Temperature   float64 `json:"temperature"`
	Precipitation float64 `json:"precipitation"`
	Wind          float64 `json:"wind"`
	Sky           string  `json:"sky"`
}

type day struct {
	Date          string  `json:"date"`
	Low           float64 `json:"low"`
	High          float64 `json:"high"`
	Precipitation float64 `json:"precipitation"`
	Sky           string  `json:"sky"`
}

func (p *Pack) weather(ctx context.Context, in where) (out report, err error) {
	switch {
	case in.Place != "" && (in.Latitude != nil || in.Longitude != nil):
		return out, reeve.InvalidField("/place", "is given beside coordinates", "a place, or latitude and longitude")
	case in.Place != "":
		if out.spot, err = p.find(ctx, in.Place); err != nil {
			return out, err
		}
	case in.Latitude == nil || in.Longitude == nil:
		return out, reeve.InvalidField("/place", "is missing", "a place, or latitude and longitude")
	default:
		out.Latitude, out.Longitude = *in.Latitude, *in.Longitude
	}
	if in.Days == 0 {
		in.Days = 3
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	var a struct {
		Timezone string `json:"timezone"`
		Current  struct {
			Time          string  `json:"time"`
			Temperature   float64 `json:"temperature_2m"`
			Precipitation float64 `json:"precipitation"`
			Wind          float64 `json:"wind_speed_10m"`
			Code          int     `json:"weather_code"`
		} `json:"current"`
		Daily struct {
			Time          []string  `json:"time"`
			Low           []float64 `json:"temperature_2m_min"`
			High          []float64 `json:"temperature_2m_max"`
			Precipitation []float64 `json:"precipitation_sum"`
			Code          []int     `json:"weather_code"`
		} `json:"daily"`
	}
	if err := p.get(ctx, p.Forecast, forecastURL, "/v1/forecast", url.Values{"latitude": {number(out.Latitude)},
		"longitude": {number(out.Longitude)}, "timezone": {"auto"},
		"current":       {"temperature_2m,precipitation,wind_speed_10m,weather_code"},
		"daily":         {"temperature_2m_min,temperature_2m_max,precipitation_sum,weather_code"},
		"forecast_days": {strconv.Itoa(in.Days)}}, &a); err != nil {
		return out, err
	}
	d := a.Daily
	if a.Current.Time == "" || len(d.Low) != len(d.Time) || len(d.High) != len(d.Time) ||
		len(d.Precipitation) != len(d.Time) || len(d.Code) != len(d.Time) {
		return out, reeve.Errorf(reeve.ToolFailed, "the weather service's answer makes no sense")
	}
	out.Timezone, out.Days = a.Timezone, []day{}
	out.Now = now{a.Current.Time, a.Current.Temperature, a.Current.Precipitation, a.Current.Wind, sky(a.Current.Code)}
	for i, date := range d.Time {
		out.Days = append(out.Days, day{date, d.Low[i], d.High[i], d.Precipitation[i], sky(d.Code[i])})
	}
	out.Units = map[string]any{"temperature": "°C", "precipitation": "mm", "wind": "km/h"}
	return out, nil
}

// find looks a place up.
func (p *Pack) find(ctx context.Context, name string) (spot, error) {
	var a struct {
		Results []spot `json:"results"`
	}
	if err := p.get(ctx, p.Places, placesURL, "/v1/search", url.Values{"name": {name}, "count": {"1"}},
		&a); err != nil {
		return spot{}, err
	}
	if len(a.Results) == 0 {
		return spot{}, reeve.Errorf(reeve.ToolFailed, "no place is called %q", name).
			Hintf("write it as its country does, or give latitude and longitude")
	}
	return a.Results[0], nil
}

// get asks a service, and says what went wrong by type.
func (p *Pack) get(ctx context.Context, base, usual, path string, query url.Values, out any) error {
	if base == "" {
		base = usual
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+path+"?"+query.Encode(),
		nil)
	if err != nil {
		return reeve.Errorf(reeve.Unsupported, "the weather service's address is not one").Hintf("an operator sets it")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "reeve")
	res, err := p.Client.Do(req)
	if err != nil {
		var own *reeve.Error
		if errors.As(err, &own) { // the network policy's
			return own
		}
		return &reeve.Error{Code: reeve.Unavailable, Message: "the weather service could not be reached"}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the weather service's answer broke off")
	}
	code := reeve.ToolFailed
	switch s := res.StatusCode; {
	case s == http.StatusOK:
		if json.Unmarshal(body, out) != nil {
			return reeve.Errorf(reeve.ToolFailed, "the weather service's answer makes no sense")
		}
		return nil
	case s == http.StatusUnauthorized:
		code = reeve.Unauthenticated
	case s == http.StatusForbidden:
		code = reeve.Forbidden
	case s == http.StatusTooManyRequests:
		code = reeve.RateLimited
	case s >= 500:
		code = reeve.Unavailable
	}
	var said struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(body, &said) // it need not say why
	return reeve.Errorf(code, "the weather service answered %d %s", res.StatusCode, strings.TrimSpace(said.Reason))
}

// sky says in words what a WMO code means.
func sky(code int) string {
	switch {
	case code == 0:
		return "clear"
	case code <= 2:
		return "partly cloudy"
	case code == 3:
		return "overcast"
	case code == 45, code == 48:
		return "fog"
	case code >= 51 && code <= 57:
		return "drizzle"
	case code >= 61 && code <= 67, code >= 80 && code <= 82:
		return "rain"
	case code >= 71 && code <= 77, code == 85, code == 86:
		return "snow"
	case code >= 95:
		return "thunderstorm"
	}
	return "unknown"
}
