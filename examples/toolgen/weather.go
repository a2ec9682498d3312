// Package toolgen is an example of tools that toolgen generates from plain functions.
package toolgen

//go:generate go tool toolgen

import (
	"context"
	"fmt"
	"math"
	"strings"

	"reeve"
)

// Convert converts a temperature between Celsius and Fahrenheit. It returns a text such as "68.0 F".
//
//   - degrees: Temperature to convert, e.g. 20
//   - from: Unit of degrees: C or F
//
//reeve:tool id=convert_temperature name="Convert a temperature" effect=read category=weather timeout=2s
func Convert(ctx context.Context, degrees float64, from string) (string, error) {
	switch from {
	case "C":
		return fmt.Sprintf("%.1f F", degrees*9/5+32), nil
	case "F":
		return fmt.Sprintf("%.1f C", (degrees-32)*5/9), nil
	}
	return "", reeve.Errorf(reeve.ToolFailed, "unknown unit %q; use C or F", from)
}

// Extremes is the result of SummarizeReadings.
type Extremes struct {
	Place string  `json:"place"`
	Count int     `json:"count"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// SummarizeReadings returns the number, the lowest and the highest of the readings at a place.
//
// Set ignore_below to exclude very low readings, which may be faults of the instrument.
//
//   - readings: Temperatures in degrees Celsius
//   - ignoreBelow: Ignore readings below this temperature.
//     Default: use all readings
//
//reeve:tool effect=read category=weather
func SummarizeReadings(ctx context.Context, place string, readings []float64, ignoreBelow *float64) (Extremes, error) {
	sum := Extremes{Place: strings.TrimSpace(place)}
	for _, r := range readings {
		if ignoreBelow != nil && r < *ignoreBelow {
			continue
		}
		if sum.Count == 0 {
			sum.Low, sum.High = r, r
		}
		sum.Count++
		sum.Low, sum.High = math.Min(sum.Low, r), math.Max(sum.High, r)
	}
	if sum.Count == 0 {
		return sum, reeve.Errorf(reeve.ToolFailed, "no readings left; add readings or lower ignore_below")
	}
	return sum, nil
}
