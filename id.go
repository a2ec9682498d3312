package reeve

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// Prefixes of the ids Reeve issues.
const (
	PrefixAgent        = "agt"
	PrefixApproval     = "apr"
	PrefixAttachment   = "att"
	PrefixBranch       = "br"
	PrefixChange       = "chg"
	PrefixChangeSet    = "cs"
	PrefixConversation = "conv"
	PrefixEntry        = "ent"
	PrefixScriptJob    = "job"
	PrefixFeedback     = "fb"
	PrefixEvent        = "evt"
	PrefixImport       = "imp"
	PrefixMessage      = "msg"
	PrefixNotification = "ntf"
	PrefixOperation    = "op"
	PrefixProcess      = "proc"
	PrefixProject      = "prj"
	PrefixProposal     = "prop"
	PrefixRequest      = "req"
	PrefixRun          = "run"
	PrefixSchedule     = "sch"
	PrefixScript       = "scr"
	PrefixSubscription = "sub"
	PrefixToken        = "tok"
	PrefixTrial        = "try"
)

// IDs issues time-ordered ids. Two ids from one issuer sort in the order they were issued, even within a millisecond.
// The zero value is ready to use.
type IDs struct {
	mu   sync.Mutex
	last int64
	hi   uint16
	lo   uint64
}

// New issues an id: a prefix, an underscore, and 26 characters of time and randomness.
func (s *IDs) New(prefix string, now time.Time) string {
	s.mu.Lock()
	ms := now.UnixMilli()
	if ms <= s.last {
		ms = s.last
		if s.lo++; s.lo == 0 {
			s.hi++
		}
	} else {
		s.hi, s.lo = randomBits()
		s.last = ms
	}
	hi, lo := s.hi, s.lo
	s.mu.Unlock()
	return prefix + "_" + encodeID(uint64(ms), hi, lo)
}

// LowestIDAt returns a lower bound for ids with the given prefix that were issued in the same millisecond as id or
// later. Use it to read everything that was written since id.
func LowestIDAt(prefix, id string) string {
	_, rest, _ := strings.Cut(id, "_")
	return prefix + "_" + rest[:min(len(rest), idTimeDigits)]
}

// idTimeDigits is the number of characters of an id that encode its time in milliseconds.
const idTimeDigits = 10

// RandomSecret returns n random bytes encoded as text, for credentials.
func RandomSecret(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails, see crypto/rand
	return strings.ToLower(idEncoding.EncodeToString(b))
}

// RandomBytes returns n random bytes.
func RandomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// randomBits returns the random part of an id. The top bit of the second number is 0, so that New can count up from it.
func randomBits() (uint16, uint64) {
	var b [10]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint16(b[:2]), binary.BigEndian.Uint64(b[2:]) >> 1 &^ 1
}

// idAlphabet is Crockford's base 32 in lower case. It omits letters that look alike and sorts in order.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func encodeID(ms uint64, hi uint16, lo uint64) string {
	var out [26]byte
	for i := 9; i >= 0; i-- {
		out[i] = idAlphabet[ms&31]
		ms >>= 5
	}
	for i := 25; i >= 14; i-- {
		out[i] = idAlphabet[lo&31]
		lo >>= 5
	}
	rest := uint32(hi)<<4 | uint32(lo&15)
	for i := 13; i >= 10; i-- {
		out[i] = idAlphabet[rest&31]
		rest >>= 5
	}
	return string(out[:])
}

// IsID reports whether s has the form of an id: a short prefix, an underscore, and 26 or 52 characters of idAlphabet.
func IsID(s string) bool {
	prefix, rest, ok := strings.Cut(s, "_")
	if !ok || len(prefix) == 0 || len(prefix) > 5 || (len(rest) != 26 && len(rest) != 52) {
		return false
	}
	for i := range len(rest) {
		if !strings.Contains(idAlphabet, rest[i:i+1]) {
			return false
		}
	}
	return strings.ToLower(prefix) == prefix
}

// CheckName returns an error if name has the form of an id. Many objects are found by id or name, so such a name could
// be mistaken for the id of a deleted object.
func CheckName(name string) error {
	if IsID(name) {
		return InvalidField("/name", "has the form of an id", "a name that does not look like an id")
	}
	return nil
}
