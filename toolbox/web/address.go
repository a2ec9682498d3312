package web

import (
	"net/netip"
	"strings"
)

// closed are the networks a public name has no business resolving to: this machine, private networks, and ranges that
// carry another address inside or lead somewhere special. The list follows the IANA special-purpose registries.
var closed = prefixes(
	"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // private, shared, loopback
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // AS112, AMT
	"2001::/23",     // protocol assignments, Teredo among them
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4: an IPv4 address inside
	"2620:4f:8000::/48", "3fff::/20",
)

// sealed are closed even to a name that the operator allowed, because no service that one would name lives there: an
// allowed name that resolves to the metadata address of a cloud is an attack. Only an address or a CIDR in the
// allowlist opens them.
var sealed = prefixes(
	"0.0.0.0/8",                                        // "this host": connects to loopback
	"169.254.0.0/16",                                   // link-local, and the metadata address of most clouds
	"224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", // multicast, reserved, broadcast
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", // metadata: Alibaba, Azure (a public address), Oracle
	"fd00:ec2::254/128", "fd20:ce::254/128", // metadata: AWS, Google
	"::/128", "fe80::/10", "fec0::/10", "ff00::/8",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", // an IPv4 address inside
)

// globalV6 is all that is handed out of IPv6. The rest is closed without needing a line each.
var globalV6 = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// plain takes off what only changes the spelling: a zone, and the IPv6 wrapping of an IPv4 address. ::1 stays what it
// is.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// loopbackV6 lies inside ::/96, which is sealed, but is this machine like any other loopback address.
var loopbackV6 = netip.IPv6Loopback()

// isSealed tells whether even an allowed name may not lead to a.
func isSealed(a netip.Addr) bool { return a != loopbackV6 && within(sealed, a) }

// isPublic tells whether anybody's name may lead to a.
func isPublic(a netip.Addr) bool {
	return a.IsValid() && !within(sealed, a) && !within(closed, a) && (a.Is4() || globalV6.Contains(a))
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// looksNumeric finds hosts that some resolvers read as an address although they are not written as one: 2130706433,
// 0x7f.1,
// 0177.0.0.1, 127.0.0.1 with a dot at the end. No public name ends in a number.
func looksNumeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if rest, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
