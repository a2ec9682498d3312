package api

import "reeve"

// TokenRequest asks for a bearer token.
type TokenRequest struct {
	Name       string     `json:"name" minLength:"1" maxLength:"100"`
	User       string     `json:"user,omitempty" maxLength:"100" doc:"Who acts with it; the maker if left out"`
	Role       reeve.Role `json:"role" enum:"viewer,member,owner"`
	Workspaces []string   `json:"workspaces,omitempty" maxItems:"100" doc:"Where it is valid; this workspace if left out"`
	ExpiresAt  string     `json:"expires_at,omitempty" format:"date-time" doc:"RFC 3339 with an offset; never if left out"`
}

// NewToken is a token just made: the only time it is shown.
type NewToken struct {
	reeve.AccessToken
	Token string `json:"token" doc:"Keep it: it is not shown again"`
}

// TokenList is the tokens valid in a workspace.
type TokenList struct {
	Tokens []reeve.AccessToken `json:"tokens"`
}

// SecretRequest stores a secret.
type SecretRequest struct {
	Value string `json:"value" minLength:"1" maxLength:"65536" doc:"Printable ASCII of 6 characters or more; line breaks at its end are left out"`
}

// SecretList is the names of a workspace's secrets.
type SecretList struct {
	Secrets []reeve.SecretName `json:"secrets"`
}

// WorkspaceRequest makes a workspace.
type WorkspaceRequest struct {
	ID   string `json:"id" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9_-]*$"`
	Name string `json:"name,omitempty" maxLength:"200"`
}

// WorkspaceList is the workspaces a token is valid in.
type WorkspaceList struct {
	Workspaces []reeve.Workspace `json:"workspaces"`
}
