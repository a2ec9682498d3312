package reeve

import "encoding/json"

// UndoGuard is embedded in the arguments of a tool that takes calls back: it replaces what such a call left, and
// nothing that somebody has said since.
//
//	inv.UndoWith("rename", renameArgs{ID: id, Name: before, Undoing: reeve.Left(after)})
type UndoGuard struct {
	Expect string `json:"expect,omitempty" maxLength:"80" doc:"Undo uses it: change nothing that somebody has changed since"`
}

// NewUndoGuard names the values that a call leaves, for the call that will replace them.
func NewUndoGuard(v any) UndoGuard {
	b, _ := json.Marshal(v)
	return UndoGuard{Hash(b)}
}

// Check refuses to replace values that are not those which were left.
func (u UndoGuard) Check(v any) error {
	if u.Expect == "" || u == NewUndoGuard(v) {
		return nil
	}
	return Errorf(Stale, "what was done has been changed since").
		Hintf("look at what is there now, and change that; nothing was taken back")
}
