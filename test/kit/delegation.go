package kit

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// RunBossAndHelper runs a host on an engine with two agents: boss delegates to helper, and helper calls act under a
// policy.
func RunBossAndHelper(t *testing.T, engine, policy string, act reeve.Tool) (h *reevetest.Host, boss reeve.Agent) {
	h = reevetest.Run(t, DelegationConfig(t, engine), act)
	boss = NewPersona(h, "boss", nil, "delegate", "act")
	NewPersona(h, "helper", Object{"policy": Object{"tools": Object{"act": policy}}}, "act")
	return h, boss
}

// DelegationConfig returns a config for an engine whose model lets boss delegate to helper, and helper call act.
func DelegationConfig(t *testing.T, engine string) host.Config {
	cfg := FastConfig(t)
	if engine == "postgres" {
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", WriteScript(t, `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: act}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: act, args: {}}]}
`)
	return cfg
}

// ListChildren returns the runs that calls of a run began, oldest first.
func ListChildren(h *reevetest.Host, parent string) (list []reeve.Run) {
	h.T.Helper()
	var page struct {
		Runs []reeve.Run `json:"runs"`
	}
	h.Want(http.StatusOK, &page, "GET", "/api/runs?limit=200", nil)
	for _, r := range page.Runs {
		if r.ParentID == parent {
			list = append([]reeve.Run{r}, list...)
		}
	}
	return list
}

// ListResults returns the results of the calls of a tool in a turn, and their texts.
func ListResults(h *reevetest.Host, turn, tool string) (list []reeve.ResultInfo, said []string) {
	h.T.Helper()
	calls := map[string]bool{}
	for _, m := range GetTurn(h, turn).Messages {
		switch m.Kind {
		case reeve.Action:
			calls[m.ID] = ActionInfo(h.T, m).Tool == tool
		case reeve.ToolResult:
			var info reeve.ResultInfo
			if err := json.Unmarshal(m.Metadata, &info); err != nil {
				h.T.Fatal(err)
			}
			if calls[m.ActionID] {
				list, said = append(list, info), append(said, m.Content)
			}
		default:
		}
	}
	return list, said
}
