// Package model sends requests to language models: one interface, Model, and an adapter for the wire format of each
// provider (Anthropic, OpenAI, Gemini, Ollama and servers compatible with OpenAI).
//
// A caller sends a Request and gets one Answer. While the model writes, the adapter streams Deltas for people to watch.
// Only the Answer counts. An Answer is plain data: the caller stores it before acting on it, and puts it back into
// later requests unchanged, including the provider's own form of its reasoning.
//
// Providers routes a request to the provider that its model name selects, retries it and computes its cost. Rehearsal
// is a model that follows a script and needs no key. Recorder and Replay record and play back HTTP exchanges for tests.
//
// Errors are reeve.Errors. Unavailable (connection failures, 5xx, overload) and RateLimited (429) may be retried, and
// carry RetryAfter when the provider sends it. Timeout and Canceled come from the context. ModelFailed is permanent: a
// bad key, a rejected request, an invalid answer. Unsupported means that the adapter cannot send the request. NotFound
// means that no provider has the model.
package model
