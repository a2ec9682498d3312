package server_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// requestTogether makes requests in parallel, each at either server, and returns the status of each.
func requestTogether(servers [2]*reevetest.Host, requests ...func(h *reevetest.Host) int) []int {
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

func newRequest(method, path string, body any) func(*reevetest.Host) int {
	return func(h *reevetest.Host) int { return h.Do(method, path, body).Status }
}

// rounds is how often a race is tried. Without protection about every second round fails.
const rounds = 25

// An update of one field of an agent keeps a concurrent change of another.
func TestG25_UpdateKeepsAConcurrentStop(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	h := servers[0]
	for i := range rounds {
		a := h.Agent("a"+strconv.Itoa(i), "write_file")
		at := "/api/agents/" + a.ID
		got := requestTogether(servers, newRequest("POST", "/api/stop", kit.Object{"agent": a.ID}),
			newRequest("PATCH", at, kit.Object{"throttle_ms": 1000 + i}),
			newRequest("PATCH", at, kit.Object{"policy": kit.Object{"tools": kit.Object{"write_file": "deny"}}}),
			newRequest("PATCH", at, kit.Object{"config": kit.Object{"instructions": "be brief"}}))
		var is reeve.Agent
		h.Want(http.StatusOK, &is, "GET", at, nil)
		if is.StoppedAt == nil || is.ThrottleMS != int64(1000+i) || is.Policy.Tools["write_file"] != reeve.Deny ||
			len(is.Config) <= len("{}") {
			t.Fatalf("round %d: they were answered %v, and the agent is %+v", i, got, is)
		}
	}
}

// Of several concurrent definitions of a tool one succeeds, each change is a version, and a deleted tool is gone.
func TestI10_ConcurrentToolDefinitions(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	define := func(id, url string) kit.Object {
		return kit.Object{"id": id, "kind": "http", "description": "Does things.", "category": "http", "effect": "read",
			"parameters": kit.Object{"type": "object"}, "spec": kit.Object{"method": "GET", "url": url}}
	}
	for i := range rounds {
		id := "t" + strconv.Itoa(i)
		made := 0
		for _, code := range requestTogether(servers, newRequest("POST", "/api/tools", define(id, "http://a.test")),
			newRequest("POST", "/api/tools", define(id, "http://b.test")),
			newRequest("POST", "/api/tools", define(id, "http://c.test"))) {
			if code == http.StatusCreated {
				made++
			} else if code != http.StatusConflict {
				t.Errorf("round %d: answered %d", i, code)
			}
		}
		at := "/api/tools/" + id
		changed := 0
		for _, code := range requestTogether(servers, newRequest("PUT", at, define(id, "http://d.test")),
			newRequest("PUT", at, define(id, "http://e.test")), newRequest("PUT", at, define(id, "http://f.test"))) {
			if code == http.StatusOK {
				changed++
			}
		}
		var is api.ToolView
		servers[1].Want(http.StatusOK, &is, "GET", at, nil)
		if made != 1 || is.Version != 1+changed {
			t.Fatalf("round %d: made %d times, changed %d times, and it is version %d", i, made, changed, is.Version)
		}
		got := requestTogether(servers, newRequest("DELETE", at, nil), newRequest("PUT", at, define(id, "http://g.test")))
		if r := servers[0].Do("GET", at, nil); got[0] == http.StatusNoContent && r.Status != http.StatusNotFound {
			t.Fatalf("round %d: deleted and changed: %v, and then there is %s", i, got, r.Body)
		}
	}
}

// Changing the title of a conversation keeps a concurrent change of its state, and vice versa.
func TestW01_ConcurrentTitleAndState(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	servers[0].Agent("a")
	for i := range rounds {
		c := servers[0].StartConversation("a")
		at := "/api/conversations/" + c.ID
		got := requestTogether(servers, newRequest("PATCH", at, kit.Object{"title": "Tuesday"}),
			newRequest("PATCH", at, kit.Object{"state": reeve.ConversationCompleted}))
		servers[0].Want(http.StatusOK, &c, "GET", at, nil)
		if c.Title != "Tuesday" || c.State != reeve.ConversationCompleted {
			t.Fatalf("round %d: answered %v, and it is %q and %s", i, got, c.Title, c.State)
		}
	}
}

// An update of an automation keeps a concurrent pause or version.
func TestK17_UpdateKeepsAConcurrentPause(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	for i := range rounds {
		at := "/api/automations/m" + strconv.Itoa(i)
		servers[0].Want(http.StatusCreated, nil, "POST", "/api/automations", kit.Object{"name": "m" + strconv.Itoa(i),
			"source": "1"})
		got := requestTogether(servers, newRequest("POST", at+"/pause", nil), newRequest("POST", at+"/versions", kit.Object{"source": "2"}))
		var is reeve.Automation
		servers[0].Want(http.StatusOK, &is, "GET", at, nil)
		if is.PausedAt == nil || is.Version != "2.0" {
			t.Fatalf("round %d: answered %v, and it is %+v", i, got, is)
		}
	}
}
