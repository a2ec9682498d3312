// Package api holds the request and response bodies of the REST API that only its server, its clients and the CLI use.
// Their tags become the OpenAPI document. Bodies that are things of the domain, such as reeve.Run, are in package
// reeve.
package api
