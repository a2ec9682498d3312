// Package document turns what web servers send into text: it detects charsets, converts HTML to Markdown and reads the
// text of PDF files. [Converter] converts in processes of its own, because documents may be hostile.
package document

import (
	"bytes"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
)

// textTypes are the media types outside text/ that are text.
var textTypes = []string{"application/json", "application/xml", "application/javascript", "application/ecmascript",
	"application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/rtf",
	"application/x-sh", "application/x-ndjson", "application/graphql", "image/svg+xml"}

// IsText reports whether a file of this media type is shown as text.
func IsText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") ||
		strings.HasSuffix(mediaType, "+xml") || slices.Contains(textTypes, mediaType)
}

// IsHTML reports whether a file of this media type is a web page.
func IsHTML(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// Decode converts bytes to UTF-8. contentType is the header of the response. Servers often declare a wrong charset. So
// bytes that are valid UTF-8 and not only ASCII are always read as UTF-8, and bytes that are not valid UTF-8 never are.
func Decode(b []byte, contentType string) string {
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(b, bom) {
		b = b[len(bom):]
	}
	if utf8.Valid(b) && !isWide(b, contentType) {
		return clean(string(b))
	}
	encoding, name, _ := charset.DetermineEncoding(b, contentType)
	if name == "utf-8" {
		encoding = charmap.Windows1252
	}
	text, err := encoding.NewDecoder().Bytes(b)
	if err != nil {
		return clean(strings.ToValidUTF8(string(b), "\ufffd"))
	}
	return clean(strings.TrimPrefix(string(text), "\ufeff"))
}

// isWide reports whether ASCII bytes are declared to be in a charset that gives them another meaning, such as UTF-16 or
// ISO-2022-JP.
func isWide(b []byte, contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	name := strings.ToLower(params["charset"])
	return err == nil && (strings.HasPrefix(name, "utf-16") && bytes.IndexByte(b, 0) >= 0 ||
		strings.HasPrefix(name, "iso-2022") && bytes.IndexByte(b, 0x1b) >= 0)
}

// clean removes zero bytes and makes line ends uniform.
func clean(s string) string {
	return strings.NewReplacer("\x00", "", "\r\n", "\n", "\r", "\n").Replace(s)
}

// Document is a converted web page, or the text of a PDF file.
type Document struct {
	Title    string `json:"title,omitempty"`
	Markdown string `json:"markdown,omitempty"`
}

// convertHTML converts HTML to Markdown. Addresses become absolute. A page that cannot be parsed, for example because
// its elements are nested too deeply, becomes its bare text.
func convertHTML(source string, address *url.URL) Document {
	root, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return Document{Title: "", Markdown: BareText(source)}
	}
	doc := Document{Title: strings.Join(strings.Fields(findTitle(root)), " ")}
	resolveAddresses(root, address)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin()))
	out, err := c.ConvertNode(root)
	if err != nil {
		doc.Markdown = BareText(source)
		return doc
	}
	doc.Markdown = string(out)
	return doc
}

// findTitle returns the text of the page's title.
func findTitle(root *html.Node) string {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Title && n.FirstChild != nil && n.Namespace == "" {
			return n.FirstChild.Data
		}
	}
	return ""
}

// resolveAddresses makes the addresses of links and images absolute. It removes those that are not web or mail
// addresses, such as scripts and embedded files.
func resolveAddresses(root *html.Node, address *url.URL) {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Base {
			for _, a := range n.Attr {
				if to, err := address.Parse(a.Val); a.Key == "href" && err == nil {
					address = to
				}
			}
			break
		}
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.A && n.DataAtom != atom.Img {
			continue
		}
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
			return (a.Key == "href" || a.Key == "src") && resolve(address, a.Val) == ""
		})
		for i, a := range n.Attr {
			if a.Key == "href" || a.Key == "src" {
				n.Attr[i].Val = resolve(address, a.Val)
			}
		}
	}
}

// resolve returns an absolute address, or an empty string if it is not a web or mail address.
func resolve(address *url.URL, ref string) string {
	u, err := address.Parse(strings.TrimSpace(ref))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return u.String()
}

// BareText returns the text of HTML without its tags, scripts and styles. It takes time in proportion to the length.
func BareText(source string) string {
	var b strings.Builder
	z, skip := html.NewTokenizer(strings.NewReader(source)), atom.Atom(0)
	for {
		switch t := z.Next(); t {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if skip == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if a == atom.Script || a == atom.Style {
				if skip = a; t == html.EndTagToken {
					skip = 0
				}
			} else if t == html.StartTagToken {
				b.WriteByte('\n')
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}
