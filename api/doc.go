// Package api defines request and response bodies of the REST API that are not domain types. The server (package
// httpapi), package client and the CLI share them.
//
// The names of types say what they are: a Request is the body of a request, a List is one page of a list with the
// cursor of the next page. The tags of fields become the OpenAPI document at /openapi.json. Bodies that are domain
// types, such as reeve.Run, are in package reeve.
package api
