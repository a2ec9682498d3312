package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// readPDF returns the text of a PDF file, page by page. A file whose pages are pictures has no text.
func readPDF(body []byte) (a answer) {
	defer func() {
		if r := recover(); r != nil { // the library panics on damaged files
			a = answer{Problem: fmt.Sprint(r)}
		}
	}()
	r, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return answer{Problem: "it is protected with a password"}
	}
	if err != nil {
		return answer{Problem: err.Error()}
	}
	a.Document.Title = strings.TrimSpace(clean(r.Trailer().Key("Info").Key("Title").Text()))
	var pages []string
	var failed error
	for n := 1; n <= r.NumPage(); n++ {
		text, err := readPage(r.Page(n))
		if err != nil {
			failed = err
		}
		if text = strings.TrimSpace(clean(text)); text != "" {
			pages = append(pages, text)
		}
	}
	if len(pages) == 0 && failed != nil {
		return answer{Problem: failed.Error()}
	}
	a.Document.Markdown = strings.Join(pages, "\n\n")
	return a
}

// readPage returns the text of a page. If the positions of its letters cannot be computed, the text is all in one line.
func readPage(p pdf.Page) (text string, err error) {
	defer func() {
		if recover() != nil {
			text, err = p.GetPlainText(nil)
		}
	}()
	return joinLetters(p.Content().Text), nil
}

// joinLetters returns letters as text, in the order of the file. Spaces and line ends follow from the positions, because
// many files do not write them.
func joinLetters(letters []pdf.Text) string {
	var b strings.Builder
	for i, l := range letters {
		if i > 0 {
			last := letters[i-1]
			size := math.Max(1, math.Abs(last.FontSize))
			down, gap := math.Abs(l.Y-last.Y), l.X-last.X-last.W
			switch {
			case down > 1.8*size:
				b.WriteString("\n\n")
			case down > 0.5*size:
				b.WriteByte('\n')
			case (gap > 0.2*size || gap < -size) && last.S != " " && l.S != " ":
				b.WriteByte(' ')
			}
		}
		b.WriteString(l.S)
	}
	return b.String()
}
