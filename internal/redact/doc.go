// Package redact removes secrets from text.
//
// A Redactor finds three kinds of secrets: stored values in the encodings in which programs return them, keys of
// well-known formats, and credentials that their context marks. The last kind comprises private keys, logins that
// programs store, passwords in URLs, Authorization headers and AWS secret keys next to their name. A Redactor never
// guesses by randomness, so ids, hashes, page tokens, certificates and lock files stay unchanged.
//
// Text redacts a complete text. Slice and Head redact parts of a text without showing a part of a secret. Writer
// redacts a stream. Fragments find the remains of a secret in a diff.
package redact
