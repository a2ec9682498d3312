package httpapi

import (
	"net/http"
	"testing"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Every POST route has an entry in keyRules, and every entry has a route. The routes with the rule ownKey are those
// that ownKeyRoutes matches.
func TestG30_EveryPostHasAKeyRule(t *testing.T) {
	t.Parallel()
	api := humago.New(http.NewServeMux(), openAPIConfig(""))
	registerRoutes(api, newServices(Config{}))
	left := map[string]bool{}
	for id := range keyRules {
		left[id] = true
	}
	for path, item := range api.OpenAPI().Paths {
		if item.Post == nil {
			continue
		}
		id := item.Post.OperationID
		if delete(left, id); (keyRules[id] == ownKey) != handlesOwnKey(path) {
			t.Errorf("%s: rule %d, handlesOwnKey %v", id, keyRules[id], handlesOwnKey(path))
		}
	}
	for id := range left {
		t.Errorf("no route has the id %s", id)
	}
}
