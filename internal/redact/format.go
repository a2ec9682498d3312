package redact

import (
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
	"regexp"
	"strings"
)

// charset is a set of character classes.
type charset uint8

const (
	digit charset = 1 << iota
	lower
	upper
	hexLetter // a-f
	dash      // - and _
	slash     // + and /
	equals    // =
	dot

	hexDigits = digit | hexLetter
	alnum     = digit | lower | upper
	capitals  = digit | upper
	url64     = alnum | dash
	std64     = alnum | slash | equals
)

// classes maps each byte to its classes.
var classes = func() (c [256]charset) {
	for b := byte('0'); b <= '9'; b++ {
		c[b] = digit
	}
	for b := byte('a'); b <= 'z'; b++ {
		c[b], c[b-'a'+'A'] = lower, upper
		if b <= 'f' {
			c[b] |= hexLetter
		}
	}
	c['-'], c['_'], c['+'], c['/'], c['='], c['.'] = dash, dash, slash, slash, equals, dot
	return c
}()

func isAlnum(b byte) bool { return classes[b]&alnum != 0 }
func isDigit(b byte) bool { return classes[b]&digit != 0 }

// prefixLen returns the length of the longest prefix of s whose bytes are all in the set.
func prefixLen(s string, set charset) int {
	for i := range len(s) {
		if classes[s[i]]&set == 0 {
			return i
		}
	}
	return len(s)
}

// format describes one kind of key: a prefix and a body of min to max bytes from a set.
type format struct {
	prefix   string
	set      charset
	min, max int
	check    func(body string) bool
}

// unbounded is the maximum length of a body without a fixed length.
const unbounded = 4096

// formats are the key formats that their issuers publish. A format belongs here only if its prefix, alphabet and length
// distinguish it from ids and words. The list intentionally omits ids (AWS AKIA, Twilio SK and AC), publishable keys
// (Stripe pk_) and formats that hashes and data in base64 have too (Mailgun key-, Square EAAA).
var formats = []format{
	// GitHub
	{"ghp_", alnum, 36, 36, crcBase62}, {"gho_", alnum, 36, 36, crcBase62}, {"ghu_", alnum, 36, 36, crcBase62},
	{"ghs_", alnum, 36, 36, crcBase62}, {"ghr_", alnum, 36, unbounded, varied},
	{"ghs_", url64 | dot, 60, unbounded, appToken}, {"github_pat_", url64, 82, 82, githubPAT},
	// GitLab
	{"glpat-", url64 | dot, 20, 300, varied}, {"gldt-", url64, 20, 300, varied},
	{"glrt-", url64 | dot, 20, 300, varied},
	{"glrtr-", url64 | dot, 20, 300, varied}, {"glptt-", alnum, 40, 40, varied}, {"glcbt-", url64, 20, 300, varied},
	{"glsoat-", url64, 20, 300, varied}, {"glimt-", url64, 25, 25, varied}, {"glagent-", url64, 50, 300, varied},
	{"gloas-", url64, 64, 64, varied}, {"glft-", url64, 20, 300, varied}, {"glffct-", url64, 20, 300, varied},
	{"GR1348941", url64, 20, 20, varied},
	// Slack and Discord
	{"xoxb-", url64, 24, unbounded, withDigit}, {"xoxp-", url64, 24, unbounded, withDigit},
	{"xoxa-", url64, 24, unbounded, withDigit}, {"xoxr-", url64, 24, unbounded, withDigit},
	{"xoxs-", url64, 24, unbounded, withDigit}, {"xoxc-", url64, 24, unbounded, withDigit},
	{"xoxd-", url64 | slash | equals, 24, unbounded, varied}, {"xoxe-", url64, 100, unbounded, varied},
	{"xoxe.xox", url64, 100, unbounded, varied}, {"xapp-", url64, 40, unbounded, withDigit},
	{"hooks.slack.com/services/", alnum | slash, 40, 60, varied},
	{"hooks.slack.com/workflows/", alnum | slash, 40, 90, varied},
	{"hooks.slack.com/triggers/", alnum | slash, 40, 90, varied},
	{"discord.com/api/webhooks/", url64 | slash, 80, 110, varied},
	{"MT", url64 | dot, 56, 71, discordBot}, {"Mj", url64 | dot, 56, 71, discordBot},
	{"Mz", url64 | dot, 56, 71, discordBot}, {"ND", url64 | dot, 56, 71, discordBot},
	{"NT", url64 | dot, 56, 71, discordBot}, {"Nj", url64 | dot, 56, 71, discordBot},
	{"Nz", url64 | dot, 56, 71, discordBot}, {"OD", url64 | dot, 56, 71, discordBot},
	{"OT", url64 | dot, 56, 71, discordBot},
	// Stripe and other payment services
	{"sk_live_", alnum, 24, 247, varied}, {"sk_test_", alnum, 24, 247, varied}, {"rk_live_", alnum, 24, 247, varied},
	{"rk_test_", alnum, 24, 247, varied}, {"sk_prod_", alnum, 24, 247, varied}, {"rk_prod_", alnum, 24, 247, varied},
	{"sk_org_", url64, 24, 247, varied}, {"whsec_", std64, 32, 64, varied}, {"sq0atp-", url64, 22, 60, varied},
	{"sq0csp-", url64, 43, 43, varied}, {"FLWSECK-", url64, 34, 34, varied}, {"FLWSECK_TEST-", url64, 34, 34, varied},
	{"shippo_live_", hexDigits, 40, 40, varied}, {"shippo_test_", hexDigits, 40, 40, varied},
	{"EZAK", alnum, 54, 54, varied}, {"EZTK", alnum, 54, 54, varied},
	{"duffel_test_", url64 | equals, 43, 43, varied}, {"duffel_live_", url64 | equals, 43, 43, varied},
	// Shopify
	{"shpat_", hexDigits | upper, 32, 32, varied}, {"shpss_", hexDigits | upper, 32, 32, varied},
	{"shpca_", hexDigits | upper, 32, 32, varied}, {"shppa_", hexDigits | upper, 32, 32, varied},
	// Models
	{"sk-ant-", url64, 60, 200, varied}, {"sk-proj-", url64, 40, 300, varied}, {"sk-svcacct-", url64, 40, 300, varied},
	{"sk-admin-", url64, 40, 300, varied}, {"sk-or-v1-", hexDigits, 64, 64, varied}, {"sk-", alnum, 32, 64, withDigit},
	{"hf_", alnum, 34, 34, varied}, {"api_org_", alnum, 34, 34, varied}, {"gsk_", alnum, 52, 52, varied},
	{"xai-", alnum, 80, 80, varied}, {"xai-token-", alnum, 80, 80, varied}, {"pplx-", alnum, 48, 48, varied},
	{"r8_", alnum, 37, 37, varied}, {"csk-", digit | lower, 48, 48, varied},
	{"ABSKQmVkcm9ja0FQSUtleS", std64, 90, 260, varied}, {"bedrock-api-key-", std64, 28, unbounded, varied},
	{"lsv2_pt_", hexDigits | dash, 43, 43, varied}, {"lsv2_sk_", hexDigits | dash, 43, 43, varied},
	{"AQVN", url64, 35, 38, withDigit},
	// Google and Microsoft
	{"AIza", url64, 35, 35, varied}, {"GOCSPX-", url64, 28, 28, varied}, {"ya29.", url64 | dot, 30, unbounded, varied},
	{"1//0", url64, 60, 160, varied}, {"AccountKey=", std64, 88, 88, varied},
	// Mail and messages
	{"SG.", url64 | dot, 66, 66, sendGrid}, {"xkeysib-", url64, 81, 81, varied}, {"xsmtpsib-", url64, 81, 81, varied},
	{"re_", url64, 33, 33, resend},
	// Package registries
	{"npm_", alnum, 36, 36, crcBase62}, {"pypi-AgE", url64, 50, unbounded, varied},
	{"rubygems_", hexDigits, 48, 48, varied}, {"cio", alnum, 32, 32, withDigit}, {"CLOJARS_", alnum, 60, 60, varied},
	{"dckr_pat_", url64, 27, 27, varied},
	{"dckr_oat_", url64, 32, 32, varied}, {"AKCp", alnum, 69, 69, varied}, {"cmVmdGtuOj", alnum, 54, 54, varied},
	// Clouds and platforms
	{"dop_v1_", hexDigits, 64, 64, varied}, {"doo_v1_", hexDigits, 64, 64, varied},
	{"dor_v1_", hexDigits, 64, 64, varied},
	{"tskey-", url64, 30, 80, varied}, {"fm2_", std64, 100, unbounded, varied}, {"HRKU-AA", url64, 58, 58, varied},
	{"pul-", hexDigits, 40, 40, varied}, {"dapi", hexDigits | dash, 32, 34, withDigit},
	{"sha256~", url64, 43, 43, varied},
	{"v1.0-", hexDigits | dash, 171, 171, varied}, {"sbp_", hexDigits, 40, 40, varied},
	{"sb_secret_", url64, 30, 50, varied},
	{"pscale_tkn_", url64 | dot | equals, 32, 64, varied}, {"pscale_pw_", url64 | dot | equals, 32, 64, varied},
	{"pscale_oauth_", url64 | dot | equals, 32, 64, varied}, {"pnu_", alnum, 36, 36, withDigit},
	// Secret stores
	{"hvs.", url64, 24, 300, withDigit}, {"hvb.", url64, 24, 300, withDigit}, {"hvr.", url64, 24, 300, withDigit},
	{"ops_eyJ", std64 | dash, 200, unbounded, varied}, {"A3-", capitals | dash, 34, 40, onePassword},
	{"AGE-SECRET-KEY-1", capitals, 58, 58, varied}, {"dp.pt.", alnum, 40, 44, varied},
	{"dp.st.", url64 | dot, 40, 80, varied},
	// Observability
	{"NRAK-", capitals, 27, 27, varied}, {"glsa_", url64, 41, 41, varied}, {"glc_eyJ", std64, 30, 400, varied},
	{"eyJrIjoi", std64, 60, 400, grafanaKey}, {"sntryu_", hexDigits, 64, 64, varied},
	{"sntrys_eyJ", std64 | dash, 80, 400, varied}, {"dt0c01.", alnum | dot, 89, 89, varied},
	{"dt0s16.", alnum | dot, 73, 89, varied}, {"ddp_", alnum, 36, 36, varied},
	// Applications
	{"ATATT3x", url64 | equals, 150, 300, varied}, {"ATCTT3x", url64 | equals, 150, 300, varied},
	{"lin_api_", alnum, 40, 48, varied}, {"ntn_", alnum, 46, 46, varied}, {"secret_", alnum, 43, 43, withDigit},
	{"figd_", url64, 40, 60, varied}, {"PMAK-", hexDigits | upper | dash, 59, 59, varied},
	{"CCIPAT_", url64, 60, 70, varied}, {"CFPAT-", url64, 43, 43, varied}, {"sl.u.", url64, 130, unbounded, varied},
	{"pat", alnum | dot, 79, 79, airtable}, {"rdme_", digit | lower, 70, 70, varied},
	{"sgp_", url64, 40, 57, withDigit}, {"bkua_", digit | lower, 40, 40, varied}, {"aio_", alnum, 28, 28, withDigit},
	{"pat-na1-", hexDigits | dash, 36, 36, hubSpot}, {"pat-na2-", hexDigits | dash, 36, 36, hubSpot},
	{"pat-eu1-", hexDigits | dash, 36, 36, hubSpot}, {"pat-ap1-", hexDigits | dash, 36, 36, hubSpot},
	{"SSWS 00", url64, 40, 40, withDigit}, {"EAA", alnum, 100, 400, facebook},
	// Reeve
	{"reeve_tok_", url64, 30, 100, varied},
}

// infixFormats are the key formats with a characteristic part in the middle: Telegram bots, HashiCorp Terraform, Azure
// clients and Mailchimp.
var infixFormats = []struct {
	part string
	like *regexp.Regexp
}{
	{":AA", regexp.MustCompile(`\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b`)},
	{".atlasv1.", regexp.MustCompile(`\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}`)},
	{"-us", regexp.MustCompile(`\b[0-9a-f]{32}-us[0-9]{1,2}\b`)},
	{"Q~", regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~-])([A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34})`)},
}

// formatIndex selects the formats that may start at a position by its first two bytes.
var formatIndex = indexFormats(formats)

type prefixIndex struct {
	group  [1 << 16]uint8 // index into groups; 0 if no format starts with these two bytes
	groups [][]format
}

func indexFormats(all []format) *prefixIndex {
	x := &prefixIndex{groups: [][]format{nil}}
	for _, f := range append([]format{{prefix: "eyJ"}}, all...) {
		pair := firstTwo(f.prefix)
		if x.group[pair] == 0 {
			x.group[pair] = uint8(len(x.groups))
			x.groups = append(x.groups, nil)
		}
		if f.set != 0 {
			x.groups[x.group[pair]] = append(x.groups[x.group[pair]], f)
		}
	}
	return x
}

func firstTwo(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

// findFormats finds keys of known formats and, if jwt is set, the signatures of JSON Web Tokens.
func findFormats(text string, jwt bool) (found []Range) {
	for i := 0; i+2 <= len(text); i++ {
		g := formatIndex.group[firstTwo(text[i:])]
		if g == 0 || !beginsWord(text, i) {
			continue
		}
		r := formatAt(text, i, formatIndex.groups[g])
		if r.To == 0 && jwt && strings.HasPrefix(text[i:], "eyJ") {
			if n := signatureAt(text[i:]); n > 0 { // keep the claims; without its signature the token is useless
				r = Range{From: i + n, To: i + n + prefixLen(text[i+n:], url64)}
			}
		}
		if r.To > 0 {
			found = append(found, r)
			i = r.To - 1
		}
	}
	for _, f := range infixFormats {
		if !strings.Contains(text, f.part) {
			continue
		}
		for _, m := range f.like.FindAllStringSubmatchIndex(text, -1) {
			m = m[len(m)-2:] // the last group, or the whole match if there is no group
			if varied(text[m[0]:m[1]]) {
				found = append(found, Range{From: m[0], To: m[1]})
			}
		}
	}
	return found
}

// formatAt returns the range of the key that starts at i, or an empty range. The body ends with the first byte outside
// of its alphabet. A body that is too long does not match.
func formatAt(text string, i int, candidates []format) Range {
	for _, f := range candidates {
		if !strings.HasPrefix(text[i:], f.prefix) {
			continue
		}
		body := text[i+len(f.prefix):]
		n := prefixLen(body[:min(len(body), f.max+2)], f.set)
		for n > 0 && (body[n-1] == '.' || n > f.max && body[n-1] == '-') { // the end of a sentence
			n--
		}
		if n >= f.min && n <= f.max && f.check(body[:n]) {
			return Range{From: i, To: i + len(f.prefix) + n}
		}
	}
	return Range{}
}

// minOpen and minOpenShort are how many bytes of a cut-off key, including its prefix, identify it. The larger one
// applies to prefixes of three bytes, because identifiers start with prefixes such as re_ too.
const minOpen, minOpenShort = 7, 12

// findPartialFormat returns the offset of a key of a known format that is cut off by the end of text, or len(text).
func findPartialFormat(text string) int {
	start := len(text)
	for start > 0 && (classes[text[start-1]] != 0 || strings.HasSuffix(text[:start], "SSWS ")) {
		start--
	}
	for i := start; i+minOpen <= len(text); i++ {
		g := formatIndex.group[firstTwo(text[i:])]
		if g == 0 || !beginsWord(text, i) {
			continue
		}
		for _, f := range formatIndex.groups[g] {
			body, ok := strings.CutPrefix(text[i:], f.prefix)
			long := len(f.prefix) > 3 || len(text)-i >= minOpenShort
			if ok && body != "" && long && len(body) <= f.max && prefixLen(body, f.set) == len(body) {
				return i
			}
		}
	}
	return len(text)
}

// beginsWord reports whether no letter or digit precedes i. Letters and digits of an escape do not count.
func beginsWord(text string, i int) bool {
	return i == 0 || !isAlnum(text[i-1]) || endsEscape(text[:i])
}

// varied reports whether a body has at least eight different bytes. Placeholders such as xxxx or 0000 do not.
func varied(body string) bool {
	var seen [256]bool
	n := 0
	for i := range len(body) {
		if !seen[body[i]] {
			seen[body[i]] = true
			n++
		}
	}
	return n >= 8
}

// withDigit reports whether a body is varied and contains a digit. It is used for prefixes that words start with.
func withDigit(body string) bool { return varied(body) && strings.ContainsAny(body, "0123456789") }

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// crcBase62 checks the last six bytes of GitHub and npm tokens, which are the CRC-32 of the others in base 62.
func crcBase62(body string) bool {
	rest, sum := body[:len(body)-6], body[len(body)-6:]
	n := crc32.ChecksumIEEE([]byte(rest))
	for i := len(sum) - 1; i >= 0; i-- {
		if sum[i] != base62[n%62] {
			return false
		}
		n /= 62
	}
	return true
}

// appToken checks the token of a GitHub app, which consists of its id and a JSON Web Token.
func appToken(body string) bool {
	_, token, ok := strings.Cut(body, "_")
	return ok && signatureAt(token) > 0
}

func githubPAT(body string) bool { return body[22] == '_' && varied(body) }

func sendGrid(body string) bool { return body[22] == '.' && varied(body) }

func resend(body string) bool { return body[8] == '_' && withDigit(body) }

func airtable(body string) bool { return body[14] == '.' && prefixLen(body[15:], hexDigits) == 64 }

func onePassword(body string) bool { return body[6] == '-' && withDigit(body) }

// hubSpot checks the UUID of a token.
func hubSpot(body string) bool {
	return body[8] == '-' && body[13] == '-' && body[18] == '-' && body[23] == '-' && varied(body)
}

// facebook checks the end of a token. Facebook writes ZD instead of the equals sign of base64.
func facebook(body string) bool { return strings.HasSuffix(body, "ZD") && withDigit(body) }

// discordBot checks a token without its first two characters. It begins with the number of the bot in base64.
func discordBot(body string) bool {
	parts := strings.Split(body, ".")
	if len(parts) != 3 || len(parts[1]) != 6 || len(parts[2]) < 27 {
		return false
	}
	id, err := base64.RawURLEncoding.DecodeString(parts[0][2:])
	return err == nil && len(id) >= 14 && len(id) <= 17 && prefixLen(string(id), digit) == len(id)
}

// grafanaKey checks the rest of a key that is a JSON object in base64 with the members k, n and id.
func grafanaKey(body string) bool {
	raw, err := base64.RawStdEncoding.DecodeString("eyJrIjoi" + strings.TrimRight(body, "="))
	var key struct {
		K  string
		N  *string
		ID *int
	}
	return err == nil && json.Unmarshal(raw, &key) == nil && len(key.K) == 32 && key.N != nil && key.ID != nil
}

// signatureAt returns the offset of the signature in the JSON Web Token at the start of s, or 0.
func signatureAt(s string) int {
	header := prefixLen(s, url64)
	if header < 16 || header+1 >= len(s) || s[header] != '.' {
		return 0
	}
	payload := header + 1 + prefixLen(s[header+1:], url64)
	if payload >= len(s) || s[payload] != '.' || prefixLen(s[payload+1:], url64) < 20 {
		return 0
	}
	raw, err := base64.RawURLEncoding.DecodeString(s[:header])
	var h struct{ Alg string }
	if err != nil || json.Unmarshal(raw, &h) != nil || h.Alg == "" {
		return 0
	}
	return payload + 1
}
