package store

// CommitHook is called around commits. Tests use it to stop the process there. The zero value does nothing.
type CommitHook struct {
	OnBefore func() // before a commit is sent
	OnAfter  func() // after a commit is durable, before Update returns
}

// Before is called before a commit is sent.
func (h CommitHook) Before() {
	if h.OnBefore != nil {
		h.OnBefore()
	}
}

// After is called after a commit is durable.
func (h CommitHook) After() {
	if h.OnAfter != nil {
		h.OnAfter()
	}
}
