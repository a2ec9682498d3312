// Package utils is the pack of small read-only tools for scripts: Base64 decoding and weather.
package utils
