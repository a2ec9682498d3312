package reeve

import "time"

// Role is what a bearer token may do in a workspace.
type Role string

// The roles. Each role includes the ones before it.
const (
	// Viewer may read.
	Viewer Role = "viewer"
	// Member may call tools, decide approvals, manage agents with their policy and tools, and use the kill switch.
	Member Role = "member"
	// Owner may manage workspaces, tokens, secrets, budgets, capability profiles and projects.
	Owner Role = "owner"
)

// Roles lists the roles.
func Roles() []Role { return []Role{Viewer, Member, Owner} }

// Allows reports whether the role includes the role need.
func (r Role) Allows(need Role) bool {
	rank := map[Role]int{Viewer: 1, Member: 2, Owner: 3}
	return rank[r] >= rank[need] && rank[need] > 0
}

// TokenKind says how the holder of an access token proves who they are.
type TokenKind string

// The kinds of access tokens.
const (
	BearerToken    TokenKind = "token"   // sent in the Authorization header
	ConsoleSession TokenKind = "session" // sent in the cookie of the console
	ConsoleLink    TokenKind = "link"    // exchanged once for a session; never listed
)

// AccessToken describes a bearer token or a session of the console. The token itself is shown once, at creation. The
// store has only its hash.
type AccessToken struct {
	ID         string     `json:"id"`
	Kind       TokenKind  `json:"kind" enum:"token,session" doc:"A bearer token, or a session of the console"`
	Name       string     `json:"name"`
	User       string     `json:"user" doc:"User that the token acts for"`
	Role       Role       `json:"role"`
	Workspaces []string   `json:"workspaces" doc:"Workspaces in which the token is valid"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
}

// OwnerUser is the user of the owner token that a server creates on its first start.
const OwnerUser = "owner"

// Principal identifies the maker of an API request.
type Principal struct {
	TokenID   string
	User      string
	Role      Role
	Workspace string
}

// SecretName names a stored secret. Its value never leaves the server.
type SecretName struct {
	Name      string    `json:"name"`
	UpdatedAt time.Time `json:"updated_at"`
}

// SessionFile describes a file that an agent stored in a session.
type SessionFile struct {
	Path      string    `json:"path"`
	Size      int       `json:"size"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}
