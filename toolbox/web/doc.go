// Package web makes HTTP requests on behalf of agents. It contains a guard that every request passes, and the builder
// of tools of kind http, which are HTTP endpoints described by data.
//
// # The guard
//
// [Guard] checks the address in the dialer's hook, directly before connecting. So the check applies to the address that
// is really used. It does not matter what a name resolved to earlier, how the address was spelled or which redirect led
// there. Host names matter only for the operator's allowlist, which can unblock addresses that are blocked by default.
//
// Every request uses a new connection. When a reused connection breaks, net/http resends a request that has an
// Idempotency-Key. Only the gate may decide to resend, so connections are never reused.
//
// # Tools of kind http
//
// [Builder.Build] turns a catalogue row whose Spec is an [Endpoint] into a tool with a handler. The outcome of a call
// depends on how far the request got and on the status of the response, never on text:
//
//	not connected (name, dial, TLS)           UNAVAILABLE        nothing was sent
//	refused by the guard                      DENIED             nothing was sent
//	deadline passed after connecting          TIMEOUT            the effect is unknown
//	connection lost after connecting          UNKNOWN_OUTCOME    UNAVAILABLE if the effect is read
//	2xx                                       success            see below
//	307, 308 and other 3xx of a read          TOOL_FAILED        the request was not carried out
//	other 3xx                                 UNKNOWN_OUTCOME    "see other" often follows a successful request
//	408, 425, 429                             UNAVAILABLE        with RetryAfter
//	409 to a repeated keyed call              UNKNOWN_OUTCOME    the conflict may be with the first attempt
//	other 4xx, 501, 505                       TOOL_FAILED        the endpoint refused
//	other 5xx                                 UNKNOWN_OUTCOME    UNAVAILABLE if the effect is read
//
// A 2xx response proves the effect. If its body is too long or incomplete, the call still succeeds and the result has a
// note. If the result pointer leads nowhere, a read fails, and any other call returns the whole body.
//
// Secrets are resolved for each call and removed from the response before it is returned.
package web
