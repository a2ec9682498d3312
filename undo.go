package reeve

import "encoding/json"

// UndoGuard is embedded in the arguments of a tool that undoes calls. It prevents an undo from replacing values that
// were changed after the call.
//
//	inv.UndoWith("rename", renameArgs{ID: id, Name: before, UndoGuard: reeve.NewUndoGuard(after)})
type UndoGuard struct {
	Expect string `json:"expect,omitempty" maxLength:"80" doc:"For undo only: fail if the value has changed since"`
}

// NewUndoGuard returns a guard for v, the values after the call that may be undone.
func NewUndoGuard(v any) UndoGuard {
	b, _ := json.Marshal(v)
	return UndoGuard{Hash(b)}
}

// Check returns a Stale error if the current values v differ from those that the guard was made for.
func (u UndoGuard) Check(v any) error {
	if u.Expect == "" || u == NewUndoGuard(v) {
		return nil
	}
	return Errorf(Stale, "the result of the call has been changed since").
		Hintf("nothing was undone; read the current state and change that")
}
