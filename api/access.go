package api

import "reeve"

// TokenRequest creates a bearer token.
type TokenRequest struct {
	Name       string     `json:"name" minLength:"1" maxLength:"100"`
	User       string     `json:"user,omitempty" maxLength:"100" doc:"User that the token acts for. Default: you"`
	Role       reeve.Role `json:"role" enum:"viewer,member,owner"`
	Workspaces []string   `json:"workspaces,omitempty" maxItems:"100" doc:"Default: this workspace"`
	ExpiresAt  string     `json:"expires_at,omitempty" format:"date-time" doc:"RFC 3339. Default: never"`
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
