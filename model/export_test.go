package model

// NamesForTest gives the mapping of a request's tool names, there and back.
func NamesForTest(r Request) (theirs, ours func(string) string) {
	n := nameTools(r, r.Messages)
	return n.theirs, n.ours
}
