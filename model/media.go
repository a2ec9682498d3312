package model

import (
	"encoding/base64"
	"strings"

	"reeve"
)

type mediaType int

const (
	otherMedia mediaType = iota
	imageMedia
	pdfMedia
	textMedia
	audioMedia
	videoMedia
)

// mediaKind returns the kind of a part of type Media.
func mediaKind(p Part) mediaType {
	t, _, _ := strings.Cut(strings.ToLower(p.MediaType), ";")
	switch t = strings.TrimSpace(t); {
	case strings.HasPrefix(t, "image/"):
		return imageMedia
	case t == "application/pdf":
		return pdfMedia
	case strings.HasPrefix(t, "text/"), t == "application/json", t == "application/yaml", t == "application/toml",
		t == "application/xml":
		return textMedia
	case strings.HasPrefix(t, "audio/"):
		return audioMedia
	case strings.HasPrefix(t, "video/"):
		return videoMedia
	default:
		return otherMedia
	}
}

func base64Data(p Part) string { return base64.StdEncoding.EncodeToString(p.Data) }

// dataURL returns the bytes of a part as a data URL.
func dataURL(p Part) string { return "data:" + p.MediaType + ";base64," + base64Data(p) }

// fileName returns the name of a file, or a default, because some providers require a name.
func fileName(p Part) string {
	if p.Name != "" {
		return p.Name
	}
	if mediaKind(p) == pdfMedia {
		return "file.pdf"
	}
	return "file"
}

// inlineText returns a text file as text, for providers that accept no such files.
func inlineText(p Part) string { return fileName(p) + ":\n" + string(p.Data) }

// mediaPlaceholder returns a text part in place of an earlier file that the model does not accept.
func mediaPlaceholder(p Part) Part {
	return Part{Type: Text, Text: "(The file " + fileName(p) + " is omitted: this model does not accept its type.)"}
}

// unsupportedMedia returns the error for media that an adapter cannot send.
func unsupportedMedia(provider string, p Part, accepts string) error {
	kind := p.MediaType
	if kind == "" {
		kind = "an unknown type"
	}
	how := "as data"
	if len(p.Data) == 0 {
		how = "by URL"
	}
	return reeve.Errorf(reeve.Unsupported, "%s does not accept %s (%s) %s", provider, fileName(p), kind, how).
		Hintf("it accepts %s", accepts)
}
