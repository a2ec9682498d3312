//go:build race

package js_test

const instrumented = true
