package host_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// atOnce makes requests at the same moment, at either server, and gives how each was answered.
func atOnce(servers [2]*reevetest.Host, requests ...func(h *reevetest.Host) int) []int {
	var ready, all sync.WaitGroup
	got := make([]int, len(requests))
	ready.Add(1)
	for i, do := range requests {
		all.Go(func() {
			ready.Wait()
			got[i] = do(servers[i%2])
		})
	}
	ready.Done()
	all.Wait()
	return got
}

func asks(method, path string, body any) func(*reevetest.Host) int {
	return func(h *reevetest.Host) int { return h.Do(method, path, body).Status }
}

// rounds is how often what may overlap is tried: without a rule it goes wrong in every second one or so.
const rounds = 25

// TestG25_AStopIsNotWrittenAway: who changes one thing of an agent leaves what somebody else says of it at that moment.
func TestG25_AStopIsNotWrittenAway(t *testing.T) {
	t.Parallel()
	servers := two(t)
	h := servers[0]
	for i := range rounds {
		a := h.Agent("a"+strconv.Itoa(i), "write_file")
		at := "/api/agents/" + a.ID
		got := atOnce(servers, asks("POST", "/api/stop", object{"agent": a.ID}),
			asks("PATCH", at, object{"throttle_ms": 1000 + i}),
			asks("PATCH", at, object{"policy": object{"tools": object{"write_file": "deny"}}}),
			asks("PATCH", at, object{"config": object{"instructions": "be brief"}}))
		var is reeve.Agent
		h.Want(http.StatusOK, &is, "GET", at, nil)
		if is.StoppedAt == nil || is.ThrottleMS != int64(1000+i) || is.Policy.Tools["write_file"] != reeve.Deny ||
			len(is.Config) <= len("{}") {
			t.Fatalf("round %d: they were answered %v, and the agent is %+v", i, got, is)
		}
	}
}

// TestI10_DefinitionsTakeTurns: of several who define a tool one does, each change is a version, and what is deleted is
// gone or was changed before.
func TestI10_DefinitionsTakeTurns(t *testing.T) {
	t.Parallel()
	servers := two(t)
	define := func(id, url string) object {
		return object{"id": id, "kind": "http", "description": "Does things.", "category": "http", "effect": "read",
			"parameters": object{"type": "object"}, "spec": object{"method": "GET", "url": url}}
	}
	for i := range rounds {
		id := "t" + strconv.Itoa(i)
		made := 0
		for _, code := range atOnce(servers, asks("POST", "/api/tools", define(id, "http://a.test")),
			asks("POST", "/api/tools", define(id, "http://b.test")),
			asks("POST", "/api/tools", define(id, "http://c.test"))) {
			if code == http.StatusCreated {
				made++
			} else if code != http.StatusConflict {
				t.Errorf("round %d: answered %d", i, code)
			}
		}
		at := "/api/tools/" + id
		changed := 0
		for _, code := range atOnce(servers, asks("PUT", at, define(id, "http://d.test")),
			asks("PUT", at, define(id, "http://e.test")), asks("PUT", at, define(id, "http://f.test"))) {
			if code == http.StatusOK {
				changed++
			}
		}
		var is api.ToolView
		servers[1].Want(http.StatusOK, &is, "GET", at, nil)
		if made != 1 || is.Version != 1+changed {
			t.Fatalf("round %d: made %d times, changed %d times, and it is version %d", i, made, changed, is.Version)
		}
		got := atOnce(servers, asks("DELETE", at, nil), asks("PUT", at, define(id, "http://g.test")))
		if r := servers[0].Do("GET", at, nil); got[0] == http.StatusNoContent && r.Status != http.StatusNotFound {
			t.Fatalf("round %d: deleted and changed: %v, and then there is %s", i, got, r.Body)
		}
	}
}

// TestW01_ATitleAndAState: changing the one leaves the other.
func TestW01_ATitleAndAState(t *testing.T) {
	t.Parallel()
	servers := two(t)
	servers[0].Agent("a")
	for i := range rounds {
		c := servers[0].StartConversation("a")
		at := "/api/conversations/" + c.ID
		got := atOnce(servers, asks("PATCH", at, object{"title": "Tuesday"}),
			asks("PATCH", at, object{"state": reeve.ConversationCompleted}))
		servers[0].Want(http.StatusOK, &c, "GET", at, nil)
		if c.Title != "Tuesday" || c.State != reeve.ConversationCompleted {
			t.Fatalf("round %d: answered %v, and it is %q and %s", i, got, c.Title, c.State)
		}
	}
}

// TestK17_APauseIsNotWrittenAway: nor is a version that somebody saves at that moment.
func TestK17_APauseIsNotWrittenAway(t *testing.T) {
	t.Parallel()
	servers := two(t)
	for i := range rounds {
		at := "/api/automations/m" + strconv.Itoa(i)
		servers[0].Want(http.StatusCreated, nil, "POST", "/api/automations", object{"name": "m" + strconv.Itoa(i),
			"source": "1"})
		got := atOnce(servers, asks("POST", at+"/pause", nil), asks("POST", at+"/versions", object{"source": "2"}))
		var is reeve.Automation
		servers[0].Want(http.StatusOK, &is, "GET", at, nil)
		if is.PausedAt == nil || is.Version != "2.0" {
			t.Fatalf("round %d: answered %v, and it is %+v", i, got, is)
		}
	}
}
