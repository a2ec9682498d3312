package store

// CommitHook watches commits. Fault tests use it to stop the process there; the zero value does nothing.
type CommitHook struct {
	OnBefore func() // before a commit is asked for
	OnAfter  func() // after it is durable, before anybody is told
}

// Before is called before a commit is asked for.
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
