package mail

import (
	"slices"
	"strings"
	"unicode"

	"reeve"
	"reeve/internal/store"
)

// matchInboxes returns the inboxes that who means: those with that name, or else those whose name fits the address.
// dasovich-j, DASOVICH-J@, jeff.dasovich@enron.com and Jeff Dasovich <jeff.dasovich@enron.com> all mean dasovich-j.
func matchInboxes(inboxes []store.Inbox, who string) []store.Inbox {
	who = strings.TrimSpace(who)
	pick := func(f func(store.Inbox) bool) (out []store.Inbox) {
		for _, i := range inboxes {
			if f(i) {
				out = append(out, i)
			}
		}
		return out
	}
	address, _ := reeve.ParseAddress(who)
	for _, name := range []string{who, address, strings.TrimSuffix(address, "@")} {
		if out := pick(func(i store.Inbox) bool { return strings.EqualFold(i.Name, name) }); len(out) > 0 {
			return out
		}
	}
	asked, where := splitAddress(address)
	return pick(func(i store.Inbox) bool {
		parts, at := splitAddress(i.Name)
		return (at == "" || where == "" || strings.EqualFold(at, where)) && isSamePerson(asked, parts)
	})
}

// splitAddress splits an address into the sorted parts of its local name and its domain.
func splitAddress(address string) (parts []string, domain string) {
	local, domain, _ := strings.Cut(address, "@")
	parts = strings.FieldsFunc(strings.ToLower(local), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	slices.Sort(parts)
	return parts, domain
}

// isSamePerson reports whether two names may belong to one person. Each part of the shorter name must be a part of the
// other name or its initial, and at least one part must match in full.
func isSamePerson(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 || len(a) == 1 && len(b) == 1 && a[0] != b[0] {
		return false
	}
	// jdasovich matches jeff.dasovich and dasovich-j
	if len(a) == 1 && len(b) == 2 && (a[0] == b[0]+b[1] || a[0] == b[1]+b[0] || isInitialAndName(a[0], b[0], b[1]) ||
		isInitialAndName(a[0], b[1], b[0])) {
		return true
	}
	left, whole := slices.Clone(b), false
	for _, p := range a { // full matches first, because they are unambiguous
		if i := slices.Index(left, p); i >= 0 && len(p) > 1 {
			left, whole = slices.Delete(left, i, i+1), true
		}
	}
	for _, p := range a {
		if len(p) > 1 && slices.Contains(b, p) {
			continue
		}
		i := slices.IndexFunc(left, func(q string) bool { return isInitial(p, q) || isInitial(q, p) || p == q })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return whole
}

// isInitial reports whether short is the first letter of long.
func isInitial(short, long string) bool { return len(short) == 1 && strings.HasPrefix(long, short) }

// isInitialAndName reports whether name is the initial of first followed by last.
func isInitialAndName(name, first, last string) bool {
	return len(last) > 2 && len(first) > 0 && name == first[:1]+last
}
