package chat

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"reeve"
)

// What may be said in one turn. The API reads bodies up to BodyLimit, which holds all of it in base64.
const (
	MostContent     = 1_000_000 // bytes of text
	MostAttachments = 20
	MostBytes       = 20 << 20 // of all attachments together
	BodyLimit       = 32 << 20
	mostVariables   = 100
	mostTools       = 200
	mostName        = 255
)

// check refuses what cannot be said, and says where it is wrong.
func check(r reeve.TurnRequest) error {
	switch {
	case blank(r.Content) && len(r.Attachments) == 0:
		return wrong("/content", "is empty", "what you want to say, or an attachment")
	case len(r.Content) > MostContent:
		return wrong("/content", fmt.Sprintf("has %d bytes", len(r.Content)), fmt.Sprintf("at most %d", MostContent))
	case len(r.Attachments) > MostAttachments:
		return wrong("/attachments", fmt.Sprintf("has %d", len(r.Attachments)),
			fmt.Sprintf("at most %d", MostAttachments))
	case len(r.Variables) > mostVariables:
		return wrong("/variables", fmt.Sprintf("has %d", len(r.Variables)), fmt.Sprintf("at most %d", mostVariables))
	case len(r.Tools) > mostTools:
		return wrong("/tools", fmt.Sprintf("has %d", len(r.Tools)), fmt.Sprintf("at most %d", mostTools))
	}
	return CheckAttachments(r.Attachments, func(i int) string { return fmt.Sprintf("/attachments/%d", i) })
}

// CheckAttachments refuses what no model could be shown, and too many bytes. Paths are where errors say they are.
func CheckAttachments(list []reeve.Attachment, path func(int) string) error {
	sum := 0
	for i, a := range list {
		if err := checkAttachment(path(i), a); err != nil {
			return err
		}
		sum += len(a.Data)
	}
	if sum > MostBytes {
		return reeve.Errorf(reeve.TooLarge, "the attachments have %d bytes together", sum).
			Hintf("send at most %d MiB in one turn", MostBytes>>20)
	}
	return nil
}

func wrong(path, message, expected string) error {
	return &reeve.Error{Code: reeve.Validation, Message: "the request is not valid: " + path + " " + message,
		Fields: []reeve.Field{{Path: path, Message: message, Expected: expected}}}
}

// checkAttachment refuses what no model could be shown: it would be in the way of every later turn too.
func checkAttachment(path string, a reeve.Attachment) error {
	kind, _, err := mime.ParseMediaType(a.MediaType)
	switch {
	case err != nil || !strings.Contains(kind, "/"):
		return wrong(path+"/media_type", "is not a media type", "such as image/png or text/plain")
	case len(a.Name) > mostName:
		return wrong(path+"/name", "is too long", fmt.Sprintf("at most %d bytes", mostName))
	case a.Hash != "" || a.Size != 0:
		return wrong(path, "has a hash or a size, which are the server's to set", "data or url")
	case (a.URL == "") == (len(a.Data) == 0):
		return wrong(path, "has not exactly one of data and url", "its bytes in base64, or where it is")
	case a.URL != "":
		if u, err := url.Parse(a.URL); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
			return wrong(path+"/url", "is not a web address", "an http or https URL")
		}
		return nil
	}
	ok, is := true, http.DetectContentType(a.Data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf":
		ok = is == kind
	case "application/json", "application/xml", "application/yaml", "application/toml":
		ok = utf8.Valid(a.Data)
	default:
		switch family, _, _ := strings.Cut(kind, "/"); family {
		case "text":
			ok = utf8.Valid(a.Data)
		case "audio", "video": // the model will say
		default:
			return wrong(path+"/media_type", "is not one that can be said",
				"a PNG, JPEG, GIF or WebP image, a PDF, text, audio or video")
		}
	}
	if !ok {
		return wrong(path+"/data", "is not "+kind+" but "+is, "bytes of the type that media_type says")
	}
	return nil
}
