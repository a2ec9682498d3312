// Package httpapi serves Reeve over HTTP: the REST API under /api, WebSockets, server-sent events and routes for OpenAI
// clients under /v1.
//
// [New] builds the handler from a [Config]. registerRoutes in routes.go lists the routes, each with the role that it
// needs. Each resource has one small type of handlers, such as toolHandlers. The OpenAPI document is generated from the
// Go types of the bodies.
//
// A handler decodes the input, calls a service and returns its result. It holds no business rules. It reads through
// store snapshots, and changes data only through the gate, a service or a named method of the store. Errors become
// problem documents (RFC 9457) in newProblem.
//
// Middleware does the rest: it assigns request ids, limits the time to read a body, checks Host and Origin, and
// authenticates the token. It refuses changes while the server is held. It handles a request with an Idempotency-Key at
// most once (see keyRules).
//
// [Streams] tracks open streams and sockets, so that a stopping server can end them. A streamPermit ends a stream when
// its client loses the right to listen.
package httpapi
