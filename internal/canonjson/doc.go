// Package canonjson parses JSON strictly and writes it in canonical form (RFC 8785).
//
// [Parse] rejects texts that two parsers may read differently: duplicate keys, invalid UTF-8, lone surrogates and
// numbers outside the range of a double. [Canonical] and [CanonicalValue] write the one form in which arguments are
// hashed and compared. Integers that a double cannot hold keep all their digits, which RFC 8785 does not define.
//
// The package does not import the rest of Reeve. Its error type is [Error]; reeve.InvalidJSON turns it into the error
// that callers of the API receive.
package canonjson
