// Package model lets agents think: one narrow interface, and an adapter for each provider's real wire format.
//
// A model is asked with a Request and gives one Answer. While it thinks, it hands out Deltas, which are for people to
// watch; only the Answer counts. An Answer is plain data: it is stored before it is acted on, and goes back into a
// later Request as it is, including the parts a provider wants to see again (reasoning).
//
// Errors are reeve.Errors, typed where they arise: Unavailable for what may pass (transport, 5xx, overload),
// RateLimited for 429, both with RetryAfter when the provider names it; Timeout; ModelFailed for what will not pass (a
// bad key, a request it refuses, an answer that makes no sense); Unsupported for what an adapter cannot send; NotFound
// for a model that nobody has.
package model
