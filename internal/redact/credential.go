package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

const pemBegin, pemEnd, pemDashes = "-----BEGIN ", "-----END ", "-----"

// puttyBegin and puttyEnd enclose the private part of a PuTTY key.
const puttyBegin, puttyEnd = "Private-Lines: ", "Private-MAC: "

// minKeyRun is how many base64 characters must follow the first line of a private key. A mere mention of the line has
// none.
const minKeyRun = 40

// maxKeyLen limits the body of a private key.
const maxKeyLen = 64 << 10

// findPrivateKeys finds private keys in PEM and of PuTTY, complete or cut off.
func findPrivateKeys(text string) (found []Range) {
	eachPrivateKey(text, func(begin int, b keyBody) bool {
		if b.end > 0 {
			found = append(found, Range{From: begin, To: b.end})
		}
		return true
	})
	return found
}

// findPartialPrivateKey returns the offset of a private key that is cut off by the end of text, or len(text).
func findPartialPrivateKey(text string) int {
	at := len(text)
	if i := findPartialFirstLine(text, pemBegin); i < len(text) {
		at = i
	}
	eachPrivateKey(text, func(begin int, b keyBody) bool {
		if b.isOpen {
			at = min(at, begin)
		}
		return !b.isOpen
	})
	return at
}

// findPartialFirstLine returns the offset at which text ends inside the first line of a private key. If it does not end
// inside one, findPartialFirstLine returns len(text).
func findPartialFirstLine(text, begin string) int {
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

// eachPrivateKey calls visit with the offset and the body of each private key, until visit returns false.
func eachPrivateKey(text string, visit func(begin int, b keyBody) bool) {
	// the next key of each kind; len(text) if there is none
	pem, putty := indexFrom(text, 0, pemBegin), indexFrom(text, 0, puttyBegin)
	for from := 0; ; {
		if pem < from {
			pem = indexFrom(text, from, pemBegin)
		}
		if putty < from {
			putty = indexFrom(text, from, puttyBegin)
		}
		i := min(pem, putty)
		if i == len(text) {
			return
		}
		from = i + len(pemBegin)
		var b keyBody
		if strings.HasPrefix(text[i:], puttyBegin) {
			from = i + len(puttyBegin)
			b = readKeyBody(text, from, puttyEnd)
			if strings.HasSuffix(text[:b.end], puttyEnd) {
				b.end += prefixLen(text[b.end:], hexDigits)
			}
		} else {
			label, _, ok := strings.Cut(text[from:min(len(text), from+60)], pemDashes)
			if !ok || !strings.Contains(label, "PRIVATE KEY") {
				continue
			}
			b = readKeyBody(text, from+len(label)+len(pemDashes), pemEnd+label+pemDashes)
		}
		if !visit(i, b) {
			return
		}
		from = max(from, b.end)
	}
}

// indexFrom returns the offset of a part at or after from, or len(text).
func indexFrom(text string, from int, part string) int {
	if i := strings.Index(text[from:], part); i >= 0 {
		return from + i
	}
	return len(text)
}

// keyBody is the part of a private key after its first line.
type keyBody struct {
	end    int  // offset of the end of the key; 0 if there is no key
	isOpen bool // the text ends before it is clear where the key ends
}

// readKeyBody reads lines of base64 up to the last line of the key. It skips margins, quotes and escapes between the
// lines. A key without a last line was cut off and ends after its last full line.
func readKeyBody(text string, at int, lastLine string) (b keyBody) {
	limit := min(len(text), at+maxKeyLen)
	full, ended := 0, false // the end of the last full line, and whether a shorter line follows it
	for i := at; i < limit; {
		switch {
		case strings.HasPrefix(text[i:], lastLine[:len(pemEnd)]) && full > 0:
			b.end = min(len(text), i+len(lastLine))
			return b
		case strings.HasPrefix(text[i:], pemBegin) || strings.HasPrefix(text[i:], puttyBegin):
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
			case full == 0 && n <= 6 && prefixLen(text[i:], digit) == n: // a line number
			case full == 0 && !last:
				return b
			case full > 0 && last && !ended: // the last line, which is cut off
				full = i + n
			default:
				ended = full > 0
			}
			i += n
		}
	}
	b.end, b.isOpen = full, limit == len(text)
	return b
}

// keyHeader matches a header before the body of a key, as in RFC 1421 and OpenPGP.
var keyHeader = regexp.MustCompile(`^(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n\\]*`)

// keyRun returns the length of the base64 at the start of s. A slash may be escaped as in JSON.
func keyRun(s string) (n int) {
	for {
		n += prefixLen(s[n:], std64)
		if !strings.HasPrefix(s[n:], `\/`) {
			return n
		}
		n += 2
	}
}

// urlUser matches the user and password of a URL. The password extends to the last @ before the host.
var urlUser = regexp.MustCompile(`://([^/\s:@"'<>]*):([^/\s"'<>]+)@`)

// findURLPasswords finds the passwords in URLs, except for placeholders.
func findURLPasswords(text string) (found []Range) {
	if !strings.Contains(text, "://") {
		return nil
	}
	for _, m := range urlUser.FindAllStringSubmatchIndex(text, -1) {
		user, password, host := text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:]
		// the digest of a container image after its tag
		digest := strings.HasPrefix(host, "sha256:") || strings.HasPrefix(host, "sha512:")
		if digest || user == password || placeholder.MatchString(password) || port.MatchString(password) {
			continue
		}
		found = append(found, Range{From: m[4], To: m[5]})
	}
	return found
}

var (
	// placeholder matches texts that people and programs write instead of a password.
	placeholder = regexp.MustCompile(`(?i)^(?:pass|passwd|password|passphrase|pwd|pw|secret|redacted|x+|\*+|\.+|-+|` +
		`your.*|\$.*|%[a-z(].*|\{.*\}|\[.*\]|\(.*\)|.*(?:\$\{|\{\{|#\{).*)$`)
	// port matches the port of a URL without a password, in a list or before a query.
	port = regexp.MustCompile(`^[0-9]{1,5}[,;|)\]}?#&]`)
)

var authorization = regexp.MustCompile(
	`(?i)authorization\\*["']?\s*[:=]\s*\\*["']?(?:bearer|basic|token|bot|apikey)\s+([A-Za-z0-9+/=._~-]{16,})`)

// findAuthorization finds credentials in Authorization headers.
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

// awsNames are the spellings of the name of an AWS secret key, without the first letter.
var awsNames = []string{"ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey", "ecretaccesskey"}

// findAWSKeys finds AWS secret keys next to their name. A key has exactly 40 characters of base64.
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

var (
	// basicAuth matches what Docker and npm store: the name and the password of a user, in base64.
	basicAuth = regexp.MustCompile(`\b_?auth\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9+/]{8,}={0,2})`)
	// jwkPart matches a private part of a JSON Web Key.
	jwkPart = regexp.MustCompile(`\\*"(?:d|p|q|dp|dq|qi|k)\\*"\s*:\s*\\*"([A-Za-z0-9_-]{40,})`)
)

// findStoredLogins finds logins in the configuration of Docker and npm.
func findStoredLogins(text string) (found []Range) {
	if !strings.Contains(text, "auth") {
		return nil
	}
	for _, m := range basicAuth.FindAllStringSubmatchIndex(text, -1) {
		login, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text[m[2]:m[3]], "="))
		if err == nil && printableLogin.Match(login) {
			found = append(found, Range{From: m[2], To: m[3]})
		}
	}
	return found
}

var printableLogin = regexp.MustCompile(`^[!-9;-~]+:[ -~]+$`)

// findJWKs finds the private parts of JSON Web Keys. All keys have a member kty.
func findJWKs(text string) (found []Range) {
	if !strings.Contains(text, "kty") {
		return nil
	}
	for _, m := range jwkPart.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, Range{From: m[2], To: m[3]})
	}
	return found
}

// findMember finds the credential in the value of a JSON member with a name such as authorization. isKey is set if the
// member may be a part of a JSON Web Key.
func findMember(name, value string, isKey bool) (found []Range) {
	text := name + ": " + value
	switch {
	case isKey && name != "" && len(name) <= len("dp"):
		text = `"kty" "` + name + `": "` + value
	case len(name) < len("authorization") && !strings.HasSuffix(name, "auth"):
		return nil
	}
	shift := len(text) - len(value)
	for _, r := range slices.Concat(findAuthorization(text), findAWSKeys(text), findStoredLogins(text),
		findJWKs(text)) {
		if r.From >= shift {
			found = append(found, Range{From: r.From - shift, To: r.To - shift})
		}
	}
	return found
}
