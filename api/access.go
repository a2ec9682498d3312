package api

import (
	"time"

	"reeve"
)

// TokenRequest creates a bearer token.
type TokenRequest struct {
	Name       string     `json:"name" minLength:"1" maxLength:"100"`
	User       string     `json:"user,omitempty" maxLength:"100" doc:"User that the token acts for. Default: you"`
	Role       reeve.Role `json:"role" enum:"viewer,member,owner"`
	Workspaces []string   `json:"workspaces,omitempty" maxItems:"100" doc:"Default: this workspace"`
	ExpiresAt  string     `json:"expires_at,omitempty" format:"date-time" doc:"RFC 3339. Default: never"`
}

// TokenUpdate changes a bearer token.
type TokenUpdate struct {
	Role reeve.Role `json:"role" enum:"viewer,member,owner" doc:"New role of the token and of the sessions made with it"`
}

// NewToken is a new token. This is the only response that shows it.
type NewToken struct {
	reeve.AccessToken
	Token string `json:"token" doc:"The token; it is not shown again"`
}

// TokenList lists the tokens that are valid in a workspace.
type TokenList struct {
	Tokens []reeve.AccessToken `json:"tokens"`
}

// SecretRequest stores a secret.
type SecretRequest struct {
	Value string `json:"value" minLength:"1" maxLength:"65536" doc:"At least 6 characters of printable ASCII; line breaks at the end are removed"`
}

// SecretList lists the names of a workspace's secrets.
type SecretList struct {
	Secrets []reeve.SecretName `json:"secrets"`
}

// WorkspaceRequest creates a workspace.
type WorkspaceRequest struct {
	ID   string `json:"id" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9_-]*$"`
	Name string `json:"name,omitempty" maxLength:"200"`
}

// WorkspaceList lists the workspaces that a token is valid in.
type WorkspaceList struct {
	Workspaces []reeve.Workspace `json:"workspaces"`
}

// SessionRequest signs in to the console with either a code or a token.
type SessionRequest struct {
	Code  string `json:"code,omitempty" maxLength:"200" doc:"Code of a sign-in link, which works once"`
	Token string `json:"token,omitempty" maxLength:"200" doc:"A bearer token"`
}

// Session is the caller as the console shows it.
type Session struct {
	User       string            `json:"user"`
	Role       reeve.Role        `json:"role" enum:"viewer,member,owner"`
	Server     bool              `json:"server" doc:"Whether the caller may act on the whole server, as with the token in its data directory"`
	Workspaces []reeve.Workspace `json:"workspaces"`
	Version    string            `json:"version" doc:"Version of the server"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty" doc:"When the session or token ends. Absent: never"`
}

// ConsoleLink signs in to the console once. This is the only response that shows its code.
type ConsoleLink struct {
	Code      string    `json:"code" doc:"The code; it is not shown again"`
	Path      string    `json:"path" doc:"Path and fragment to open on the server. Browsers send no fragment, so no log contains the code"`
	ExpiresAt time.Time `json:"expires_at"`
}
