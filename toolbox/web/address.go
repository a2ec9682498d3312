package web

import (
	"net/netip"
	"strings"
)

// nonPublicPrefixes are the networks that a public name must not resolve to: loopback, private and documentation
// networks, and ranges that embed another address. The list follows the IANA special-purpose registries.
var nonPublicPrefixes = mustParsePrefixes(
	"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // private, shared, loopback
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // AS112, AMT
	"2001::/23",     // protocol assignments, including Teredo
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4, embeds an IPv4 address
	"2620:4f:8000::/48", "3fff::/20",
)

// forbiddenPrefixes are blocked even for a host name in the allowlist, because no legitimate service has such an
// address. An allowed name that resolves to a cloud's metadata address is an attack. Only an address or a CIDR in the
// allowlist unblocks them.
var forbiddenPrefixes = mustParsePrefixes(
	"0.0.0.0/8",                                        // "this host", connects to loopback
	"169.254.0.0/16",                                   // link-local, and the metadata address of most clouds
	"224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", // multicast, reserved, broadcast
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", // metadata: Alibaba, Azure (a public address), Oracle
	"fd00:ec2::254/128", "fd20:ce::254/128", // metadata: AWS, Google
	"::/128", "fe80::/10", "fec0::/10", "ff00::/8",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", // embed an IPv4 address
)

// globalUnicastV6 is the part of IPv6 that is assigned for global use. All other addresses are not public.
var globalUnicastV6 = netip.MustParsePrefix("2000::/3")

func mustParsePrefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// canonicalAddr removes the zone and unwraps an IPv4 address mapped into IPv6. It does not change ::1.
func canonicalAddr(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// loopbackV6 is inside ::/96, which is forbidden, but counts as an ordinary loopback address.
var loopbackV6 = netip.IPv6Loopback()

// isForbidden reports whether a is blocked even for a host name in the allowlist.
func isForbidden(a netip.Addr) bool { return a != loopbackV6 && containsAddr(forbiddenPrefixes, a) }

// isPublic reports whether a is reachable without an entry in the allowlist.
func isPublic(a netip.Addr) bool {
	return a.IsValid() && !containsAddr(forbiddenPrefixes, a) && !containsAddr(nonPublicPrefixes, a) &&
		(a.Is4() || globalUnicastV6.Contains(a))
}

func containsAddr(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// looksNumeric reports whether some resolvers would read host as an IP address although it is not written as one, such
// as 2130706433, 0x7f.1, 0177.0.0.1 or 127.0.0.1 with a trailing dot. No public name ends in a number.
func looksNumeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if rest, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
