package httpapi_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"reeve/internal/httpapi"
)

// A store that does not answer is not ready, and nobody who asks waits for it for ever.
func TestReadyz_StoreDoesNotRespond(t *testing.T) {
	t.Parallel()
	api := httpapi.New(httpapi.Config{Ready: func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/readyz", nil))
	if answer.Code != 503 {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}
