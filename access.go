package reeve

import "time"

// Role is what a bearer token may do in a workspace.
type Role string

// The roles, each able to do all that the one before it can.
const (
	Viewer Role = "viewer" // reads
	// calls tools, decides approvals, manages agents, their policy and tools, and the kill switch
	Member Role = "member"
	Owner  Role = "owner" // manages workspaces, tokens, secrets, budgets, capability profiles and projects
)

// Roles lists the roles.
func Roles() []Role { return []Role{Viewer, Member, Owner} }

// Allows tells whether the role includes another.
func (r Role) Allows(need Role) bool {
	rank := map[Role]int{Viewer: 1, Member: 2, Owner: 3}
	return rank[r] >= rank[need] && rank[need] > 0
}

// AccessToken is a bearer token. The token itself is shown once, when it is made; only its hash is kept.
type AccessToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	User       string     `json:"user" doc:"Who acts with it"`
	Role       Role       `json:"role"`
	Workspaces []string   `json:"workspaces" doc:"Where it is valid"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
}

// OwnerUser is the user that a server's own token acts for.
const OwnerUser = "owner"

// Principal is who makes a request.
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

// SessionFile is a file an agent keeps in a session.
type SessionFile struct {
	Path      string    `json:"path"`
	Size      int       `json:"size"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}
