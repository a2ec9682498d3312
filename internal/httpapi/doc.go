// Package httpapi is Reeve over HTTP: routes, authentication, errors as problem documents, and the OpenAPI document
// made from the Go types of the bodies. Handlers decode, call a room, and return; they hold no rules. They read through
// snapshots and change things only through the gate or a named method of the store.
package httpapi
