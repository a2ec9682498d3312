package httpapi_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"reeve/internal/httpapi"
)

// The readiness check fails after a timeout if the store does not respond.
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
