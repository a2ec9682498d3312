package client

import (
	"testing"
	"testing/synctest"

	"reeve"
)

// A server that was met is waited for, for a while; one that never was is not.
func TestPatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := reeve.Errorf(reeve.Unavailable, "no Reeve server answers")
		for met, looks := range map[bool]int{true: 2, false: 1} {
			n, began := 0, reeve.Monotonic()
			err := patiently(t.Context(), "it is not there", met, func() (bool, error) { n++; return false, gone })
			if took := reeve.Since(began); reeve.CodeOf(err) != reeve.Unavailable || n < looks || met != (took >= away) || took > 2*away {
				t.Errorf("met %v: %v after %d looks in %s", met, err, n, took)
			}
		}
	})
}
