package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// FuzzClientFrame checks that any input is decoded to a complete frame of a known type, or refused with a validation
// error.
func FuzzClientFrame(f *testing.F) {
	for _, s := range []string{`{"type":"message","content":"hi"}`, `{"type":"ping"}`,
		`{"type":"cancel","turn_id":"run_1"}`, `{"type":"approve","approval_id":"apr_1","comment":"ok"}`,
		`{"type":"message","attachments":[{"media_type":"image/png","data":"aGk="}],"id":"k","variables":{"a":"b"}}`,
		`{"type":"deny"}`, `{}`, `[]`, `null`, `"x"`, `{"type":7}`,
		`{"type":"message","content":"\ud800"}`, "\xff", "", `{"type":"ping","type":"message"}`, `{"TYPE":"ping"}`,
		`{"type":"message","content":{"a":[1]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := decodeClientFrame(b)
		if err != nil {
			if e := reeve.AsError(err); e.Code != reeve.Validation || e.Message == "" || len(e.Fields) == 0 {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		switch frame.Type {
		case api.ClientMessage:
			if frame.Content == "" && len(frame.Attachments) == 0 {
				t.Fatalf("%q: message without content", b)
			}
		case api.ClientPing:
		case api.ClientCancel:
			if frame.TurnID == "" {
				t.Fatalf("%q: cancel without a turn", b)
			}
		case api.ClientApprove, api.ClientDeny:
			if frame.ApprovalID == "" {
				t.Fatalf("%q: decision without an approval", b)
			}
		default:
			t.Fatalf("%q is of type %q", b, frame.Type)
		}
		if again, err := json.Marshal(frame); err != nil {
			t.Fatal(err)
		} else if _, err := decodeClientFrame(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// The error of an invalid frame names the field as the client wrote it.
func TestW21_InvalidFrames(t *testing.T) {
	t.Parallel()
	for text, path := range map[string]string{`{"TYPE":"ping"}`: "/TYPE",
		`{"type":"message","Content":"hi"}`: "/Content", `{"type":"message","content":7}`: "/content",
		`{"type":"message","content":"hi","variables":{"a":1}}`: "/variables/a", `{"type":7}`: "/type",
		`{"type":"message","content":{"a":[1]}}`: "/content", `{"type":"message","variables":7}`: "/variables",
		`{"type":"message","content":"hi","variables":{"a":"x","a/b":{"b":1}}}`: "/variables/a~1b",
		`{"type":"message","tools":["a",1]}`:                                    "/tools/1",
		`{"type":"message","attachments":[{"name":"a"},{"name":7}]}`:            "/attachments/1/name",
		`{"type":"message","attachments":[{"data":{}}]}`:                        "/attachments/0/data", `[1]`: ""} {
		if _, err := decodeClientFrame([]byte(text)); err == nil || reeve.AsError(err).Fields[0].Path != path {
			t.Errorf("%s: %v", text, err)
		}
	}
	long := strings.Repeat("x", 1<<20)
	for _, text := range []string{`{"type":"` + long + `"}`, `{"type":"ping","` + long + `":1}`, `{"type":"ping","X` +
		long + `":1}`, `{"type":"message","variables":{"` + long + `":1}}`, `{"` + long + `":1,"` + long + `":2}`} {
		if _, err := decodeClientFrame([]byte(text)); err == nil || len(reeve.AsError(err).Message) > 1000 ||
			len(reeve.AsError(err).Fields[0].Path) > 1000 {
			t.Errorf("%s…: error has %d bytes", text[:30], len(fmt.Sprint(err)))
		}
	}
}
