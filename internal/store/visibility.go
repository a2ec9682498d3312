package store

import "strconv"

// Calls, approvals, proposals and outputs may be private to a user. Their column private_to names the user and never
// changes. It is empty for rows that every member of the workspace sees.

// VisibleTo returns a ledger for which the calls, approvals, proposals and outputs that are private to other users do
// not exist. Change sets have only the proposals that the user sees. A nil user sees everything. An empty user sees
// what is private to nobody.
func (s Ledger) VisibleTo(user *string) Ledger { return Ledger{s.Snap, user} }

// canSee reports whether the viewer sees a row that is private to a user.
func (s Ledger) canSee(privateTo string) bool {
	return s.viewer == nil || privateTo == "" || privateTo == *s.viewer
}

// onlyVisible adds the condition that the viewer sees a row. Column is the row's column private_to.
func (s Ledger) onlyVisible(column, where string, args []any) (string, []any) {
	if s.viewer == nil {
		return where, args
	}
	args = append(args, *s.viewer)
	return where + ` AND ` + column + ` IN ('', $` + strconv.Itoa(len(args)) + `)`, args
}

// announcedID returns the id with which a row is announced. A private row is announced without its id, because every
// member of the workspace receives the announcement.
func announcedID(id, privateTo string) string {
	if privateTo != "" {
		return ""
	}
	return id
}
