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

// Convert gives a temperature in another unit.
//
//   - degrees: the temperature to convert
//   - from: its unit, C or F
//
//reeve:tool id=convert_temperature name="Convert a temperature" effect=read category=weather timeout=2s
func Convert(ctx context.Context, degrees float64, from string) (string, error) {
	switch from {
	case "C":
		return fmt.Sprintf("%.1f F", degrees*9/5+32), nil
	case "F":
		return fmt.Sprintf("%.1f C", (degrees-32)*5/9), nil
	}
	return "", reeve.Errorf(reeve.ToolFailed, "%q is not a unit: say C or F", from)
}

// Extremes is the result of SummarizeReadings.
type Extremes struct {
	Place string  `json:"place"`
	Count int     `json:"count"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// SummarizeReadings gives the number of readings taken at a place, the lowest and the highest.
//
// Very cold readings can be faults of the instrument, and can be left out.
//
//   - readings: temperatures in degrees Celsius
//   - ignoreBelow: leave out what is colder than this;
//     without it everything counts
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
		return sum, reeve.Errorf(reeve.ToolFailed, "no reading counts")
	}
	return sum, nil
}
