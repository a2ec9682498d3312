package document

import (
	"bytes"
	"errors"
	"fmt"
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
	if p.V.IsNull() || p.V.Key("Contents").Kind() == pdf.Null {
		return "", nil
	}
	r := pageReader{page: p, fonts: map[string]*pageFont{}, state: pageState{ctm: identity, scale: 1}}
	pdf.Interpret(p.V.Key("Contents"), r.apply)
	return r.text.String(), nil
}
