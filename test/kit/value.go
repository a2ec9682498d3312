package kit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func Equal[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// JoinValues joins values for reading.
func JoinValues(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// RandomText is n characters of all widths, some of which take six bytes in JSON.
func RandomText(n int) string {
	const some = "a<&\"\\\t\n\x01\x1f\u007fé\u00a0\u2028日\ufffd🎉"
	runes := []rune(some)
	var b strings.Builder
	for range n {
		b.WriteRune(runes[rand.IntN(len(runes))])
	}
	return b.String()
}

func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type Object = map[string]any
