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

type weatherArgs struct {
	Place     string   `json:"place,omitempty" maxLength:"200" doc:"Name of a town, such as Graz. Alternative: latitude and longitude"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180"`
	Days      int      `json:"days,omitempty" minimum:"1" maximum:"16" default:"3" doc:"Days to forecast, including today. Default: 3"`
}

// location is a place with its coordinates.
type location struct {
	Name      string  `json:"name,omitempty"`
	Country   string  `json:"country,omitempty"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// report is the answer of utils_weather.
type report struct {
	location
	Timezone string         `json:"timezone"`
	Now      currentWeather `json:"now"`
	Days     []dayForecast  `json:"days"`
	Units    map[string]any `json:"units,omitempty"`
}

type currentWeather struct {
	Time          string  `json:"time"`
	Temperature   float64 `json:"temperature"`
	Precipitation float64 `json:"precipitation"`
	Wind          float64 `json:"wind"`
	Sky           string  `json:"sky"`
}

type dayForecast struct {
	Date          string  `json:"date"`
	Low           float64 `json:"low"`
	High          float64 `json:"high"`
	Precipitation float64 `json:"precipitation"`
	Sky           string  `json:"sky"`
}

// weather returns the current weather and the forecast for a place.
func (p *Pack) weather(ctx context.Context, in weatherArgs) (out report, err error) {
	switch {
	case in.Place != "" && (in.Latitude != nil || in.Longitude != nil):
		return out, reeve.InvalidField("/place", "cannot be combined with coordinates",
			"a place, or latitude and longitude")
	case in.Place != "":
		if out.location, err = p.geocode(ctx, in.Place); err != nil {
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
		return out, reeve.Errorf(reeve.ToolFailed, "the weather service returned an unexpected answer")
	}
	out.Timezone, out.Days = a.Timezone, []dayForecast{}
	out.Now = currentWeather{a.Current.Time, a.Current.Temperature, a.Current.Precipitation, a.Current.Wind,
		describeSky(a.Current.Code)}
	for i, date := range d.Time {
		out.Days = append(out.Days, dayForecast{date, d.Low[i], d.High[i], d.Precipitation[i], describeSky(d.Code[i])})
	}
	out.Units = map[string]any{"temperature": "°C", "precipitation": "mm", "wind": "km/h"}
	return out, nil
}

// geocode returns the first place that has the name.
func (p *Pack) geocode(ctx context.Context, name string) (location, error) {
	var a struct {
		Results []location `json:"results"`
	}
	if err := p.get(ctx, p.Places, placesURL, "/v1/search", url.Values{"name": {name}, "count": {"1"}},
		&a); err != nil {
		return location{}, err
	}
	if len(a.Results) == 0 {
		return location{}, reeve.Errorf(reeve.ToolFailed, "place %q not found", name).
			Hintf("use the local spelling, or give latitude and longitude")
	}
	return a.Results[0], nil
}

// get sends a request and decodes the JSON answer. Errors have the code that fits the failure.
func (p *Pack) get(ctx context.Context, base, usual, path string, query url.Values, out any) error {
	if base == "" {
		base = usual
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+path+"?"+query.Encode(),
		nil)
	if err != nil {
		return reeve.Errorf(reeve.Unsupported, "the address of the weather service is not valid").
			Hintf("ask the operator to correct it")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "reeve")
	res, err := p.Client.Do(req)
	if err != nil {
		var own *reeve.Error
		if errors.As(err, &own) { // the network guard refused the request
			return own
		}
		return &reeve.Error{Code: reeve.Unavailable, Message: "the weather service could not be reached"}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the answer of the weather service was cut off")
	}
	code := reeve.ToolFailed
	switch s := res.StatusCode; {
	case s == http.StatusOK:
		if json.Unmarshal(body, out) != nil {
			return reeve.Errorf(reeve.ToolFailed, "the weather service returned an unexpected answer")
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
	_ = json.Unmarshal(body, &said) // the reason is optional
	return reeve.Errorf(code, "the weather service answered %d %s", res.StatusCode, strings.TrimSpace(said.Reason))
}

// describeSky returns the meaning of a WMO weather code.
func describeSky(code int) string {
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
