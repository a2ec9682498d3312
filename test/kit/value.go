package kit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Equal reports an error unless two values are equal. what names the value.
func Equal[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// JoinValues returns values as text, separated by spaces.
func JoinValues(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// RandomText returns n random characters of all widths, some of which take six bytes in JSON.
func RandomText(n int) string {
	const some = "a<&\"\\\t\n\x01\x1f\u007fé\u00a0\u2028日\ufffd🎉"
	runes := []rune(some)
	var b strings.Builder
	for range n {
		b.WriteRune(runes[rand.IntN(len(runes))])
	}
	return b.String()
}

// MustJSON encodes a value as JSON and panics if it cannot.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Object is a JSON object.
type Object = map[string]any
