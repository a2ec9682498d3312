// Package web is how Reeve reaches the network on an agent's behalf: a guard that no request gets around, and tools of
// kind http, which are an HTTP endpoint described by data.
//
// # The guard
//
// [Guard] decides at the last possible moment, in the dialer's hook, about the address that is really connected to.
// What a name resolved to a moment ago, how an address was spelled, and which redirect led there make no difference.
// Names are looked at as well, but only to widen: an operator's allowlist may open a name or an address that is closed
// by default.
//
// Every request has a connection of its own. net/http sends a request again, unasked, when a reused connection breaks
// and the request carries an Idempotency-Key; that is right for a browser and wrong for us, where the gate alone
// decides about sending again. A fresh connection is never retried.
//
// # Tools of kind http
//
// [Builder.Build] turns a catalogue row whose Spec is an [Endpoint] into a tool with a handler. What the handler says
// of the outcome is decided by how far the request got and by the status, never by text:
//
//	not connected (name, dial, TLS)           UNAVAILABLE        nothing was sent
//	refused by the guard                      DENIED             nothing was sent
//	deadline passed after connecting          TIMEOUT            nobody can tell
//	connection lost after connecting          UNKNOWN_OUTCOME    nobody can tell; UNAVAILABLE when effect is read
//	2xx                                       success            see below
//	307, 308 and other 3xx of a read          TOOL_FAILED        the request was not carried out
//	other 3xx                                 UNKNOWN_OUTCOME    "see other" often means that it was carried out
//	408, 425, 429                             UNAVAILABLE        with RetryAfter
//	409 to a repeated keyed call              UNKNOWN_OUTCOME    it may be our own first attempt that is in the way
//	other 4xx, 501, 505                       TOOL_FAILED        a proven refusal
//	other 5xx                                 UNKNOWN_OUTCOME    UNAVAILABLE when effect is read
//
// A 2xx answer proves the effect, so a body that is too long or got lost does not make a failure of it: the result says
// so in a note. The same goes for a result pointer that leads nowhere: a read fails, and anything else has happened,
// and its result is the whole body.
//
// Secrets are resolved for one call and taken out of whatever comes back before it is returned.
package web
