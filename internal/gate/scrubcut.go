package gate

import "strings"

// parts tells whether a secret would be parted where one text ends and another begins: if so, what is taken out of both together is not what is
// taken out of each, and showing them one after the other would show it. The texts are looked at as they stand in a tool's JSON.
func (s *scrubber) parts(before, after string) bool {
	before, after = inJSON(before), inJSON(after)
	return once(s.scrub(before+after)) != once(s.scrub(before)+s.scrub(after))
}

// once makes one mark of several in a row: both halves of a secret may have been known for what they are.
func once(text string) string {
	for strings.Contains(text, redacted+redacted) {
		text = strings.ReplaceAll(text, redacted+redacted, redacted)
	}
	return text
}
