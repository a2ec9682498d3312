package reeve

import "encoding/json"

// Undoing is embedded in the arguments of a tool that takes calls back: it replaces what such a call left, and nothing that somebody has said since.
//
//	inv.UndoWith("rename", renameArgs{ID: id, Name: before, Undoing: reeve.Left(after)})
type Undoing struct {
	Expect string `json:"expect,omitempty" maxLength:"80" doc:"Undo uses it: change nothing that somebody has changed since"`
}

// Left names the values that a call leaves, for the call that will replace them.
func Left(v any) Undoing {
	b, _ := json.Marshal(v)
	return Undoing{Hash(b)}
}

// Replaces refuses to replace values that are not those which were left.
func (u Undoing) Replaces(v any) error {
	if u.Expect == "" || u == Left(v) {
		return nil
	}
	return Errorf(Stale, "what was done has been changed since").Hintf("look at what is there now, and change that; nothing was taken back")
}
