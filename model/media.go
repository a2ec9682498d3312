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

// mediaKind says what a part of type Media holds.
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

func encoded(p Part) string { return base64.StdEncoding.EncodeToString(p.Data) }

// dataURL is the bytes of a part as an address.
func dataURL(p Part) string { return "data:" + p.MediaType + ";base64," + encoded(p) }

// named gives a file a name: some providers insist on one.
func named(p Part) string {
	if p.Name != "" {
		return p.Name
	}
	if mediaKind(p) == pdfMedia {
		return "file.pdf"
	}
	return "file"
}

// quoted is a text file in words, for providers that take no such files.
func quoted(p Part) string { return named(p) + ":\n" + string(p.Data) }

// unseen is what a model is told of an earlier file that it cannot be shown.
func unseen(p Part) Part {
	return Part{Type: Text, Text: "(The file " + named(p) + ", which this model cannot be shown.)"}
}

// unsendable is the error for media that an adapter cannot send.
func unsendable(provider string, p Part, takes string) error {
	kind := p.MediaType
	if kind == "" {
		kind = "an unknown type"
	}
	how := "as bytes"
	if len(p.Data) == 0 {
		how = "by address"
	}
	return reeve.Errorf(reeve.Unsupported, "%s does not take %s (%s) %s", provider, named(p), kind, how).
		Hintf("It takes %s.", takes)
}
