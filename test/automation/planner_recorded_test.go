package automation_test

import (
	"flag"
	"net/http/httptest"
	"os"
	"testing"

	"reeve"
	"reeve/model"
	"reeve/test/kit"
)

var update = flag.Bool("update", false, "write the requests that were sent into the recordings")

// The planner is driven by recorded answers in a provider's wire format. The test checks the requests: instructions,
// tools and every result of a call.
func TestK27_RecordedTraffic(t *testing.T) {
	t.Parallel()
	const file = "testdata/planner.txtar"
	replay, err := model.OpenReplay(file)
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(replay)
	t.Cleanup(provider.Close)
	cfg := kit.FastConfig(t)
	cfg.Models.Default, cfg.Models.Anthropic = "anthropic/claude-sonnet-4-5",
		model.Endpoint{URL: provider.URL, Key: "not-a-real-key-0123"}
	a, d := newPlannedAutomation(t, cfg)
	k := a.Plan("answer my letters")
	kit.Equal(t, kit.JoinValues(k.State, k.Result, k.Message),
		"done 1.0 Every letter gets one answer. Activate it when that is what you want.", "the script job")
	var v reeve.ScriptVersion
	a.Want(200, &v, "GET", a.Path("/versions/1.0"), nil)
	kit.Equal(t, v.Source, goodScript, "what was written")
	kit.Equal(t, kit.JoinValues(a.Get().Status, d), "draft map[]", "nothing is active, and nothing was done")
	if *update {
		if err := os.WriteFile(file, model.FormatExchanges(replay.ReceivedExchanges()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := replay.Err(); err != nil {
		t.Error(err)
	}
}
