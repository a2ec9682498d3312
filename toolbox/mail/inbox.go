package mail

import (
	"slices"
	"strings"
	"unicode"

	"reeve"
	"reeve/internal/store"
)

// choose gives the inboxes that somebody means: by name if one has it, else by the way people write addresses.
// dasovich-j, DASOVICH-J@, jeff.dasovich@enron.com and Jeff Dasovich <jeff.dasovich@enron.com> all mean dasovich-j.
func choose(inboxes []store.Inbox, who string) []store.Inbox {
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
	asked, where := person(address)
	return pick(func(i store.Inbox) bool {
		parts, at := person(i.Name)
		return (at == "" || where == "" || strings.EqualFold(at, where)) && same(asked, parts)
	})
}

// person cuts an address into the parts of its name, in order, and its domain.
func person(address string) (parts []string, domain string) {
	local, domain, _ := strings.Cut(address, "@")
	parts = strings.FieldsFunc(strings.ToLower(local), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
	slices.Sort(parts)
	return parts, domain
}

// same tells whether two people may be one: each part of the shorter name is a part of the other, or the first letter
// of one. At least one part must be whole.
func same(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 || len(a) == 1 && len(b) == 1 && a[0] != b[0] {
		return false
	}
	// jdasovich is jeff.dasovich and dasovich-j
	if len(a) == 1 && len(b) == 2 && (a[0] == b[0]+b[1] || a[0] == b[1]+b[0] || joined(a[0], b[0], b[1]) ||
		joined(a[0], b[1], b[0])) {
		return true
	}
	left, whole := slices.Clone(b), false
	for _, p := range a { // whole parts first: they leave no doubt
		if i := slices.Index(left, p); i >= 0 && len(p) > 1 {
			left, whole = slices.Delete(left, i, i+1), true
		}
	}
	for _, p := range a {
		if len(p) > 1 && slices.Contains(b, p) {
			continue
		}
		i := slices.IndexFunc(left, func(q string) bool { return initial(p, q) || initial(q, p) || p == q })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return whole
}

// initial tells whether one is the first letter of the other.
func initial(short, long string) bool { return len(short) == 1 && strings.HasPrefix(long, short) }

// joined tells whether a name is the first letter of one part and the whole of the other.
func joined(name, first, last string) bool {
	return len(last) > 2 && len(first) > 0 && name == first[:1]+last
}
