package reeve

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// idEncoding encodes hashes in the alphabet of ids.
var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// DeriveID derives a deterministic id from its parts. Parts are length-prefixed, so ("ab","c") and ("a","bc") differ.
func DeriveID(prefix string, parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return prefix + "_" + strings.ToLower(idEncoding.EncodeToString(h.Sum(nil)))
}

// OperationKey returns the operation id of a call that has an Idempotency-Key. The same key of the same agent is the
// same operation.
func OperationKey(workspace, agent, key string) string {
	return DeriveID(PrefixOperation, "outside", workspace, agent, key)
}

// PlanKey returns the operation id of the call at position ordinal of a run's stored plan.
func PlanKey(runKey string, ordinal int, tool string) string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(ordinal))
	return DeriveID(PrefixOperation, "plan", runKey, string(n[:]), tool)
}

// Hash returns the SHA-256 of b in hex. It is the address of stored outputs and the hash of arguments.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ItemKey returns the operation id of a script's call within an item. identity is the canonical JSON of the arguments
// that name the target (see [Tool.Identity]), and n counts calls of equal identity within the item. The id does not
// depend on the order of calls, so a repaired script that reorders its calls repeats none.
func ItemKey(automation, item string, attempt int, tool, identity string, n int) string {
	return DeriveID(PrefixOperation, "item", automation, item, strconv.Itoa(attempt), tool, identity, strconv.Itoa(n))
}

// RetryKey returns the operation id for repeating an operation that is proven to have had no effect.
func RetryKey(operation string, time int) string {
	return DeriveID(PrefixOperation, "again", operation, strconv.Itoa(time))
}
