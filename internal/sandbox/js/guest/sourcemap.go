package guest

import (
	"encoding/json"
	"sort"
	"strings"
)

// sourceMap maps positions in translated code to positions in the original. It is decoded from the mappings field of a
// source map of version 3 for a single file.
type sourceMap struct {
	lines [][]segment // by generated line, ordered by column
}

// segment maps a generated column to an original line and column. All count from 0.
type segment struct{ column, line, source int }

func newSourceMap(text []byte) *sourceMap {
	var m struct {
		Mappings string `json:"mappings"`
	}
	if json.Unmarshal(text, &m) != nil {
		return &sourceMap{}
	}
	out := &sourceMap{}
	line, column := 0, 0 // in the original; the encoded differences continue across lines
	for group := range strings.SplitSeq(m.Mappings, ";") {
		var segments []segment
		generated := 0
		for text := range strings.SplitSeq(group, ",") {
			fields := decodeVLQ(text)
			if len(fields) < 4 { // generated text without an original position
				continue
			}
			generated += fields[0]
			line += fields[2]
			column += fields[3]
			segments = append(segments, segment{generated, line, column})
		}
		out.lines = append(out.lines, segments)
	}
	return out
}

// findOriginal returns the original position of a generated position, all counted from 1. Line 0 means that there is
// none.
func (m *sourceMap) findOriginal(line, column int) (int, int) {
	if line < 1 || line > len(m.lines) {
		return 0, 0
	}
	segments := m.lines[line-1]
	i := sort.Search(len(segments), func(i int) bool { return segments[i].column > column-1 })
	if i == 0 {
		return 0, 0
	}
	return segments[i-1].line + 1, segments[i-1].source + 1
}

// decodeVLQ decodes the base64 VLQ numbers of one segment. It returns nil if they are invalid.
func decodeVLQ(text string) []int {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out []int
	n, shift := 0, 0
	for _, c := range text {
		d := strings.IndexRune(alphabet, c)
		if d < 0 || shift > 50 {
			return nil
		}
		n |= (d & 31) << shift
		if shift += 5; d&32 != 0 {
			continue
		}
		if n&1 != 0 {
			out = append(out, -(n >> 1))
		} else {
			out = append(out, n>>1)
		}
		n, shift = 0, 0
	}
	return out
}
