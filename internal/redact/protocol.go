package redact

import (
	"regexp"
	"strings"
)

const pemBegin, pemEnd, pemDashes = "-----BEGIN ", "-----END ", "-----"

// minKeyRun is the length of base64 that must follow the first line of a private key: a mere mention has no body.
const minKeyRun = 40

// maxKeyLen bounds the body of a private key.
const maxKeyLen = 64 << 10

// findPrivateKeys finds private keys in PEM, complete or cut off.
func findPrivateKeys(text string) (found []Range) {
	eachPrivateKey(text, func(begin int, b keyBody) bool {
		if b.end > 0 {
			found = append(found, Range{From: begin, To: b.end})
		}
		return true
	})
	return found
}

// openPrivateKey returns where a private key begins that text breaks off in, or len(text).
func openPrivateKey(text string) int {
	at := len(text)
	if i := lastPartial(text, pemBegin); i < len(text) {
		at = i
	}
	eachPrivateKey(text, func(begin int, b keyBody) bool {
		if b.open {
			at = min(at, begin)
		}
		return !b.open
	})
	return at
}

// lastPartial returns where the first line of a private key begins that text breaks off in, or len(text).
func lastPartial(text, begin string) int {
	i := strings.LastIndex(text, begin)
	if i < 0 || strings.Contains(text[i+len(begin):], pemDashes) || len(text)-i > 60 {
		return len(text)
	}
	label := text[i+len(begin):]
	if strings.Trim(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -") != "" {
		return len(text)
	}
	return i
}

// eachPrivateKey calls visit with the place of each first line of a private key and what follows it, until visit
// returns false.
func eachPrivateKey(text string, visit func(begin int, b keyBody) bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], pemBegin)
		if i < 0 {
			return
		}
		i += from
		from = i + len(pemBegin)
		label, _, ok := strings.Cut(text[from:min(len(text), from+60)], pemDashes)
		if !ok || !strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		b := readKeyBody(text, from+len(label)+len(pemDashes), label)
		if !visit(i, b) {
			return
		}
		from = max(from, b.end)
	}
}

// keyBody is what follows the first line of a private key.
type keyBody struct {
	end  int  // of the key; 0 means that there is none
	open bool // the text ends before it is clear where the key ends
}

// readKeyBody reads base64 in lines, whatever margins, quotes and escapes stand between them, up to the last line of
// the key. A key without one was cut off: it ends behind its last full line.
func readKeyBody(text string, at int, label string) (b keyBody) {
	limit := min(len(text), at+maxKeyLen)
	full, ended := 0, false // the end of the last full line, and whether a shorter one follows it
	for i := at; i < limit; {
		switch {
		case strings.HasPrefix(text[i:], pemEnd) && full > 0:
			b.end = min(len(text), i+len(pemEnd)+len(label)+len(pemDashes))
			return b
		case strings.HasPrefix(text[i:], pemBegin):
			b.end = full
			return b
		case text[i] == '\\' && i+1 < limit && strings.IndexByte("nrt", text[i+1]) >= 0:
			i += 2
		case strings.IndexByte(" \t\r\n\\\"'`,>|#*:;()[]-", text[i]) >= 0:
			i++
		case full == 0 && keyHeader.MatchString(text[i:min(limit, i+100)]):
			i += len(keyHeader.FindString(text[i:min(limit, i+100)]))
		default:
			n := keyRun(text[i:limit])
			last := i+n == len(text)
			switch {
			case n == 0:
				b.end = full
				return b
			case n >= minKeyRun && !ended:
				full = i + n
			case full == 0 && n <= 6 && run(text[i:], digit) == n: // the number of a line
			case full == 0 && !last:
				return b
			case full > 0 && last && !ended: // the line that the text breaks off in
				full = i + n
			default:
				ended = full > 0
			}
			i += n
		}
	}
	b.end, b.open = full, limit == len(text)
	return b
}

// keyHeader is a header before the body of a key, as in RFC 1421 and OpenPGP.
var keyHeader = regexp.MustCompile(`^(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n\\]*`)

// keyRun returns the length of the base64 that s begins with, in which JSON may escape slashes.
func keyRun(s string) (n int) {
	for {
		n += run(s[n:], std64)
		if !strings.HasPrefix(s[n:], `\/`) {
			return n
		}
		n += 2
	}
}

// urlUser is the user and password of a URL. The password reaches to the last @ before the host.
var urlUser = regexp.MustCompile(`://([^/\s:@"'<>]*):([^/\s"'<>]+)@`)

// findURLPasswords finds the passwords in URLs, except for placeholders.
func findURLPasswords(text string) (found []Range) {
	if !strings.Contains(text, "://") {
		return nil
	}
	for _, m := range urlUser.FindAllStringSubmatchIndex(text, -1) {
		user, password, host := text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:]
		// of an image, behind its tag
		digest := strings.HasPrefix(host, "sha256:") || strings.HasPrefix(host, "sha512:")
		if digest || user == password || placeholder.MatchString(password) || port.MatchString(password) {
			continue
		}
		found = append(found, Range{From: m[4], To: m[5]})
	}
	return found
}

var (
	// placeholder is what people and programs write in the place of a password.
	placeholder = regexp.MustCompile(`(?i)^(?:pass|passwd|password|passphrase|pwd|pw|secret|redacted|x+|\*+|\.+|-+|` +
		`your.*|\$.*|%[a-z(].*|\{.*\}|\[.*\]|\(.*\)|.*(?:\$\{|\{\{|#\{).*)$`)
	// port is a port of a URL without a password, in a list or before a query.
	port = regexp.MustCompile(`^[0-9]{1,5}[,;|)\]}?#&]`)
)

var authorization = regexp.MustCompile(
	`(?i)authorization\\*["']?\s*[:=]\s*\\*["']?(?:bearer|basic|token|bot|apikey)\s+([A-Za-z0-9+/=._~-]{16,})`)

// findAuthorization finds credentials behind Authorization.
func findAuthorization(text string) (found []Range) {
	if !strings.Contains(text, "uthorization") && !strings.Contains(text, "UTHORIZATION") {
		return nil
	}
	for _, m := range authorization.FindAllStringSubmatchIndex(text, -1) {
		if withDigit(text[m[2]:m[3]]) {
			found = append(found, Range{From: m[2], To: m[3]})
		}
	}
	return found
}

var awsKey = regexp.MustCompile(
	`(?i)secret_?access_?key\\*["']?\s*[:=>\s]\s*\\*["']?([A-Za-z0-9+/]{40})(?:[^A-Za-z0-9+/=]|$)`)

// awsNames are the spellings of the name beside which an AWS secret key stands.
var awsNames = []string{"ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey", "ecretaccesskey"}

// findAWSKeys finds AWS secret keys beside their name: exactly 40 characters of base64.
func findAWSKeys(text string) (found []Range) {
	for _, name := range awsNames {
		if !strings.Contains(text, name) {
			continue
		}
		for _, m := range awsKey.FindAllStringSubmatchIndex(text, -1) {
			if withDigit(text[m[2]:m[3]]) {
				found = append(found, Range{From: m[2], To: m[3]})
			}
		}
		break
	}
	return found
}

// findMember finds the credential in the value of a JSON member that protocols name.
func findMember(name, value string) (found []Range) {
	if len(name) < len("authorization") {
		return nil
	}
	text := name + ": " + value
	shift := len(name) + len(": ")
	for _, r := range append(findAuthorization(text), findAWSKeys(text)...) {
		if r.From >= shift {
			found = append(found, Range{From: r.From - shift, To: r.To - shift})
		}
	}
	return found
}
