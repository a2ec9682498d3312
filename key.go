package reeve

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// idEncoding writes hashes in the alphabet of ids.
var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// Key derives a deterministic id from its parts. Parts are length-prefixed, so ("ab","c") and ("a","bc") differ.
func Key(prefix string, parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return prefix + "_" + strings.ToLower(idEncoding.EncodeToString(h.Sum(nil)))
}

// OperationKey is the operation id of a call that came from outside with an Idempotency-Key: the same key of the same
// agent is the same operation.
func OperationKey(workspace, agent, key string) string {
	return Key(PrefixOperation, "outside", workspace, agent, key)
}

// PlanKey is the operation id of the n-th call in a run's stored plan.
func PlanKey(runKey string, ordinal int, tool string) string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(ordinal))
	return Key(PrefixOperation, "plan", runKey, string(n[:]), tool)
}

// Hash is the SHA-256 of b in hex: the address of a payload, the hash of arguments.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ItemKey is the operation id of a script's call within an item. Identity is what the tool says names the thing acted
// on, in canonical JSON; n counts equal ones within the item. So a repaired script that reorders its calls repeats
// none.
func ItemKey(automation, item string, attempt int, tool, identity string, n int) string {
	return Key(PrefixOperation, "item", automation, item, strconv.Itoa(attempt), tool, identity, strconv.Itoa(n))
}

// RetryKey is the operation id under which a call that is proven to have done nothing is made again.
func RetryKey(operation string, time int) string {
	return Key(PrefixOperation, "again", operation, strconv.Itoa(time))
}
