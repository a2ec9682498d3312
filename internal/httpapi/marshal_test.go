package httpapi

import (
	"errors"
	"testing"
)

// A client that leaves before it gets its response is no error of the server.
func TestMarshal_TheClientHasLeft(t *testing.T) {
	if err := marshal(brokenConnection{}, map[string]int{"a": 1}); err != nil {
		t.Errorf("got %v", err)
	}
	if err := marshal(brokenConnection{}, func() {}); err == nil {
		t.Error("a value that is no JSON is no error")
	}
}

type brokenConnection struct{}

func (brokenConnection) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
