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

// Limits of a turn. BodyLimit is the limit of the request body, which contains the attachments in base64.
const (
	MaxContentBytes    = 1_000_000 // bytes of text
	MaxAttachments     = 20
	MaxAttachmentBytes = 20 << 20 // bytes of all attachments of a message together
	BodyLimit          = 32 << 20
	maxVariables       = 100
	maxTools           = 200
	maxNameBytes       = 255
)

// checkTurn fails with Validation if a turn request exceeds a limit or is empty.
func checkTurn(r reeve.TurnRequest) error {
	switch {
	case isBlank(r.Content) && len(r.Attachments) == 0:
		return newFieldError("/content", "is empty", "a message or an attachment")
	case len(r.Content) > MaxContentBytes:
		return newFieldError("/content", fmt.Sprintf("has %d bytes", len(r.Content)),
			fmt.Sprintf("at most %d", MaxContentBytes))
	case len(r.Attachments) > MaxAttachments:
		return newFieldError("/attachments", fmt.Sprintf("has %d", len(r.Attachments)),
			fmt.Sprintf("at most %d", MaxAttachments))
	case len(r.Variables) > maxVariables:
		return newFieldError("/variables", fmt.Sprintf("has %d", len(r.Variables)),
			fmt.Sprintf("at most %d", maxVariables))
	case len(r.Tools) > maxTools:
		return newFieldError("/tools", fmt.Sprintf("has %d", len(r.Tools)), fmt.Sprintf("at most %d", maxTools))
	}
	return CheckAttachments(r.Attachments, func(i int) string { return fmt.Sprintf("/attachments/%d", i) })
}

// CheckAttachments fails with Validation if models cannot use an attachment, and with TooLarge if the attachments have
// too many bytes. The function path returns the position of an attachment in the request, for errors.
func CheckAttachments(list []reeve.Attachment, path func(int) string) error {
	sum := 0
	for i, a := range list {
		if err := checkAttachment(path(i), a); err != nil {
			return err
		}
		sum += len(a.Data)
	}
	if sum > MaxAttachmentBytes {
		return reeve.Errorf(reeve.TooLarge, "the attachments have %d bytes in total", sum).
			Hintf("send at most %d MiB in one turn", MaxAttachmentBytes>>20)
	}
	return nil
}

func newFieldError(path, message, expected string) error {
	return &reeve.Error{Code: reeve.Validation, Message: "the request is not valid: " + path + " " + message,
		Fields: []reeve.Field{{Path: path, Message: message, Expected: expected}}}
}

// checkAttachment fails with Validation if models cannot use an attachment. Such an attachment would make all later
// turns of the conversation fail too.
func checkAttachment(path string, a reeve.Attachment) error {
	kind, _, err := mime.ParseMediaType(a.MediaType)
	switch {
	case err != nil || !strings.Contains(kind, "/"):
		return newFieldError(path+"/media_type", "is not a media type", "such as image/png or text/plain")
	case len(a.Name) > maxNameBytes:
		return newFieldError(path+"/name", "is too long", fmt.Sprintf("at most %d bytes", maxNameBytes))
	case a.Hash != "" || a.Size != 0 || a.ID != "" || a.Number != 0 || a.Caption != "":
		return newFieldError(path, "has an id, number, hash, size or caption, which only the server sets",
			"data or url")
	case (a.URL == "") == (len(a.Data) == 0):
		return newFieldError(path, "must have either data or url", "the content in base64, or a URL")
	case a.URL != "":
		if u, err := url.Parse(a.URL); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
			return newFieldError(path+"/url", "is not a web address", "an http or https URL")
		}
		return nil
	}
	isValid, detected := true, http.DetectContentType(a.Data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf":
		isValid = detected == kind
	case "application/json", "application/xml", "application/yaml", "application/toml":
		isValid = utf8.Valid(a.Data)
	default:
		switch family, _, _ := strings.Cut(kind, "/"); family {
		case "text":
			isValid = utf8.Valid(a.Data)
		case "audio", "video": // checked by the model
		default:
			return newFieldError(path+"/media_type", "is not supported",
				"a PNG, JPEG, GIF or WebP image, a PDF, text, audio or video")
		}
	}
	if !isValid {
		return newFieldError(path+"/data", "is not "+kind+" but "+detected, "content of the type in media_type")
	}
	return nil
}
