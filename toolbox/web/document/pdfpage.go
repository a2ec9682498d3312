package document

import (
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// pageReader follows the operators of a page and writes its text in the order of the file. Spaces and line ends follow
// from the positions, because many files do not write them.
type pageReader struct {
	page  pdf.Page
	fonts map[string]*pageFont // by name
	state pageState
	saved []pageState

	line, next matrix // where the current line begins, and where the next letter goes
	text       strings.Builder
	shown      bool    // a letter was written
	endX, endY float64 // where the last letter ended
}

// pageState is the part of the state that the operators q and Q save and restore.
type pageState struct {
	ctm                  matrix
	font                 *pageFont
	size, leading, rise  float64
	letterSpace, wordGap float64
	scale                float64 // horizontal
}

// pageFont is a font with the widths of its letters.
type pageFont struct {
	pdf.TextEncoding
	isComposite bool // letters have several bytes, and their widths are not known
	first       int  // code of the first letter in widths
	widths      []float64
}

// guessedWidth is the width of a letter whose width is unknown, in thousandths of the size.
const guessedWidth = 500

func (f *pageFont) width(code byte) float64 {
	if i := int(code) - f.first; i >= 0 && i < len(f.widths) && f.widths[i] > 0 {
		return f.widths[i]
	}
	return guessedWidth
}

// matrix is an affine map of the plane: x' = a·x + c·y + e, y' = b·x + d·y + f.
type matrix struct{ a, b, c, d, e, f float64 }

var identity = matrix{a: 1, d: 1}

// then returns the map that applies m first and then n.
func (m matrix) then(n matrix) matrix {
	return matrix{m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d, m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d,
		m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f}
}

// apply follows one operator. An operator without enough operands is ignored.
func (r *pageReader) apply(stack *pdf.Stack, op string) {
	args := make([]pdf.Value, stack.Len())
	for i := len(args) - 1; i >= 0; i-- {
		args[i] = stack.Pop()
	}
	if len(args) < operands[op] {
		return
	}
	number := func(i int) float64 { return args[i].Float64() }
	m := func() matrix { return matrix{number(0), number(1), number(2), number(3), number(4), number(5)} }
	s := &r.state
	switch op {
	case "q":
		r.saved = append(r.saved, *s)
	case "Q":
		if n := len(r.saved); n > 0 {
			*s, r.saved = r.saved[n-1], r.saved[:n-1]
		}
	case "cm":
		s.ctm = m().then(s.ctm)
	case "BT":
		r.line, r.next = identity, identity
	case "Tm":
		r.line = m()
		r.next = r.line
	case "Td":
		r.moveLine(number(0), number(1))
	case "TD":
		s.leading = -number(1)
		r.moveLine(number(0), number(1))
	case "T*":
		r.moveLine(0, -s.leading)
	case "TL":
		s.leading = number(0)
	case "Tc":
		s.letterSpace = number(0)
	case "Tw":
		s.wordGap = number(0)
	case "Tz":
		s.scale = number(0) / 100
	case "Ts":
		s.rise = number(0)
	case "Tf":
		s.font, s.size = r.findFont(args[0].Name()), number(1)
	case "Tj":
		r.show(args[0].RawString())
	case "'":
		r.moveLine(0, -s.leading)
		r.show(args[0].RawString())
	case "\"":
		s.wordGap, s.letterSpace = number(0), number(1)
		r.moveLine(0, -s.leading)
		r.show(args[2].RawString())
	case "TJ":
		for i := range args[0].Len() {
			if v := args[0].Index(i); v.Kind() == pdf.String {
				r.show(v.RawString())
			} else {
				r.advance(-v.Float64() / 1000 * s.size)
			}
		}
	}
}

// operands is the number of operands of each operator.
var operands = map[string]int{"cm": 6, "Tm": 6, "Td": 2, "TD": 2, "TL": 1, "Tc": 1, "Tw": 1, "Tz": 1, "Ts": 1, "Tf": 2,
	"Tj": 1, "'": 1, "\"": 3, "TJ": 1}

func (r *pageReader) findFont(name string) *pageFont {
	if f, ok := r.fonts[name]; ok {
		return f
	}
	found := r.page.Font(name)
	f := &pageFont{TextEncoding: found.Encoder(), isComposite: found.V.Key("Subtype").Name() == "Type0",
		first: found.FirstChar(), widths: found.Widths()}
	r.fonts[name] = f
	return f
}

// moveLine begins a new line at a distance from the begin of the current one.
func (r *pageReader) moveLine(x, y float64) {
	r.line = matrix{1, 0, 0, 1, x, y}.then(r.line)
	r.next = r.line
}

// advance moves the place of the next letter within the line.
func (r *pageReader) advance(x float64) {
	r.next = matrix{1, 0, 0, 1, x * r.state.scale, 0}.then(r.next)
}

// show writes letters. A space, a line end or a blank line goes before them if the place has moved that far.
func (r *pageReader) show(raw string) {
	s := r.state
	if s.font == nil || s.font.TextEncoding == nil || raw == "" {
		return
	}
	decoded := s.font.Decode(raw)
	at := matrix{1, 0, 0, 1, 0, s.rise}.then(r.next).then(s.ctm)
	unit := math.Max(1e-6, math.Hypot(at.c, at.d)*math.Abs(s.size)) // the height of a letter
	if down := math.Abs(at.f - r.endY); r.shown && !strings.HasPrefix(decoded, " ") {
		switch gap := at.e - r.endX; {
		case down > 1.8*unit:
			r.text.WriteString("\n\n")
		case down > 0.5*unit:
			r.text.WriteByte('\n')
		case (gap > 0.2*unit || gap < -unit) && !strings.HasSuffix(r.text.String(), " "):
			r.text.WriteByte(' ')
		}
	}
	r.text.WriteString(decoded)
	r.shown = true
	if s.font.isComposite {
		raw = strings.Repeat("\x00", len([]rune(decoded))) // two bytes are one letter
	}
	for i := range len(raw) {
		width := s.font.width(raw[i])/1000*s.size + s.letterSpace
		if raw[i] == ' ' {
			width += s.wordGap
		}
		r.advance(width)
	}
	end := r.next.then(s.ctm)
	r.endX, r.endY = end.e, end.f
}
