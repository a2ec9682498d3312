package model

// NamesForTest returns the mapping of a request's tool names to provider names and back.
func NamesForTest(r Request) (toProvider, fromProvider func(string) string) {
	n := mapToolNames(r, r.Messages)
	return n.toProvider, n.fromProvider
}
