package model_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/model"
)

// rehearsed returns the rehearsal model of a script, with retries.
func rehearsed(t *testing.T, script string) model.Model {
	t.Helper()
	s, err := model.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return model.Rehearsal(s)
}

// TestRetrying checks three tries, 500 ms and 1 s apart, for connection failures, 429 and 5xx only (W08).
func TestRetrying(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		took   time.Duration
		code   reeve.Code // of the final error
	}{
		"at once":    {`answers: [{text: yes}]`, 0, ""},
		"second try": {`answers: [{fail: {status: 500}}, {text: yes}]`, 500 * time.Millisecond, ""},
		"third try": {`answers: [{fail: {status: 503}}, {fail: {cut: true}}, {text: yes}]`,
			1500 * time.Millisecond, ""},
		"no fourth": {
			`answers: [{fail: {status: 500}}, {fail: {status: 500}}, {fail: {status: 500}}, {text: yes}]`,
			1500 * time.Millisecond, reeve.Unavailable},
		"as the provider says": {`answers: [{fail: {status: 429, retry_after: 7s}}, {text: yes}]`, 7 * time.Second, ""},
		"but not for hours":    {`answers: [{fail: {status: 429, retry_after: 5h}}, {text: yes}]`, 30 * time.Second, ""},
		"429 without a time":   {`answers: [{fail: {status: 429}}, {text: yes}]`, 500 * time.Millisecond, ""},
		"a bad request":        {`answers: [{fail: {status: 400}}, {text: yes}]`, 0, reeve.ModelFailed},
		"a bad key":            {`answers: [{fail: {status: 401}}, {text: yes}]`, 0, reeve.ModelFailed},
		"nonsense":             {`answers: [{fail: {nonsense: true}}, {text: yes}]`, 0, reeve.ModelFailed},
		"a hang":               {`answers: [{fail: {hang: true}}, {text: yes}]`, 120 * time.Second, reeve.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				a, err := model.WithRetry(rehearsed(t, c.script)).
					Answer(t.Context(), model.Request{Messages: ask("hi")}, nil)
				if took := time.Since(begun); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if reeve.CodeOf(err) != c.code || err == nil && a.Text() != "yes" {
					t.Errorf("got %q, %v; want %s", a.Text(), err, c.code)
				}
			})
		})
	}
}

// TestRetryingDiscards checks that a retry sends a Discard if, and only if, deltas were streamed (W08).
func TestRetryingDiscards(t *testing.T) {
	for script, want := range map[string]string{
		`answers: [{text: one two three, fail: {cut: true, after: 2}}, {text: all of it}]`:                                     "one two |all of it",
		`answers: [{text: one two, fail: {status: 500}}, {text: all of it}]`:                                                   "all of it",
		`answers: [{text: one two, fail: {cut: true, after: 1}}, {text: x y, fail: {cut: true, after: 1}}, {text: all of it}]`: "one |x |all of it",
		`answers: [{text: one two, fail: {status: 400, after: 1}}]`:                                                            "one ",
	} {
		synctest.Test(t, func(t *testing.T) {
			got := ""
			_, _ = model.WithRetry(rehearsed(t, script)).
				Answer(t.Context(), model.Request{Messages: ask("hi")}, func(d model.Delta) {
					if d.Type == model.Discard {
						d.Text = "|"
					}
					got += d.Text
				})
			if got != want {
				t.Errorf("%s\nstreamed %q, want %q", script, got, want)
			}
		})
	}
}

// TestRetryingStops checks that a cancelled caller does not wait for the next try.
func TestRetryingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		begun := time.Now()
		_, err := model.WithRetry(rehearsed(t, `answers: [{fail: {status: 429, retry_after: 20s}}, {text: yes}]`)).
			Answer(ctx, model.Request{Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.Canceled || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := model.WithRetry(rehearsed(t, `answers: [{fail: {status: 500}}, {text: yes}]`)).
			Answer(ctx, model.Request{Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.Timeout {
			t.Errorf("got %v", err)
		}
	})
}
