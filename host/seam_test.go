package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/reevetest"
)

// sliced is what file_read says of a part of a file.
type sliced struct {
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset"`
	Text       string `json:"text"`
}

func readFile(h *reevetest.Host, args object) (s sliced) {
	h.T.Helper()
	res := h.Call("clerk", "file_read", args)
	if err := json.Unmarshal([]byte(res.Content), &s); err != nil || res.IsError {
		h.T.Fatalf("%v: %+v, %v", args, res, err)
	}
	return s
}

// A secret in a file is taken out however the file is read: where a slice would end or begin within one, it ends or begins elsewhere. Nothing else is
// lost, and nothing is given twice.
func TestG21_NoSliceOfAFilePartsASecret(t *testing.T) {
	dir := t.TempDir()
	h := talkerIn(t, dir, "- {text: hello}\n")
	h.Agent("clerk", "file_read", "file_search")
	shared := filepath.Join(dir, "workspaces", "default", "shared")
	if err := os.MkdirAll(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 11) + "x2/z0Q==\n-----END PRIVATE KEY-----"
	for name, c := range map[string]struct {
		secret string
		stride int
	}{
		"word":     {"plainlowercasewordthatisstored", 1},
		"spaced":   {"a \"stored\" pass phrase of some words", 1},
		"form":     {"ghp_abcdefghijklmnopqrstuvwxyz012345", 1},
		"random":   {"Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A", 1},
		"labelled": {"password=correcthorse99batterystaple", 1},
		"key":      {key, 23},
	} {
		if name == "word" || name == "spaced" {
			h.Want(204, nil, "PUT", "/api/secrets/"+name, object{"value": c.secret})
		}
		// see gives a text as it should be seen: filler that is in no secret, and marks.
		see := func(text string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, "[REDACTED]", "#"), "password=#", "#")
		}
		shown := func(where string, s sliced) {
			if left := strings.Trim(see(s.Text), "!, \n#é"); left != "" {
				t.Fatalf("%s, %s: %q is shown of the secret", name, where, left)
			}
		}
		write := func(before, after string) (whole, want string) {
			whole = before + " " + c.secret + " " + after
			if err := os.WriteFile(filepath.Join(shared, "a.txt"), []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			return whole, before + " # " + after
		}
		filler := strings.Repeat("!!, é! !!!\n", 3000)
		// By next_offset alone, with the default limit and the secret across it in every way.
		for i := 0; i <= len(c.secret); i += c.stride {
			n := 12288 - 1 - i
			for filler[n]&0xc0 == 0x80 {
				n--
			}
			_, want := write(filler[:n], filler[:9000])
			var all strings.Builder
			for offset, first := 0, true; first || offset > 0; first = false {
				s := readFile(h, object{"path": "/shared/a.txt", "offset": offset})
				shown("by next_offset", s)
				if s.Offset != offset {
					t.Fatalf("%s: %d became %d", name, offset, s.Offset)
				}
				all.WriteString(see(s.Text))
				offset = s.NextOffset
			}
			if all.String() != want {
				t.Fatalf("%s, %d before the cut: the slices are not the file", name, i)
			}
		}
		// By offset and limit, wherever they are.
		whole, _ := write(filler[:1100], filler[:1100])
		for i := 1090; i <= 1110+len(c.secret); i += c.stride {
			for _, limit := range []int{1, 9, 600} {
				s := readFile(h, object{"path": "/shared/a.txt", "offset": i, "limit": limit})
				shown("by offset", s)
				if s.NextOffset != 0 && s.NextOffset <= i {
					t.Fatalf("%s: after %d comes %d", name, i, s.NextOffset)
				}
				if i >= limit {
					shown("by limit", readFile(h, object{"path": "/shared/a.txt", "offset": i - limit, "limit": limit}))
				}
			}
			if shown("by limit", readFile(h, object{"path": "/shared/a.txt", "limit": i})); i > len(whole) {
				break
			}
		}
		// A line that a search shows in part.
		if !strings.Contains(c.secret, "\n") {
			for i := 0; i <= len(c.secret); i++ {
				write("needle"+strings.Repeat("! ", 150)[:300-7-i], "!!!")
				res := h.Call("clerk", "file_search", object{"query": "needle", "path": "/shared/a.txt"})
				var found struct{ Matches []struct{ Text string } }
				if err := json.Unmarshal([]byte(res.Content), &found); err != nil || len(found.Matches) != 1 {
					t.Fatalf("%+v, %v", res, err)
				}
				shown("by search", sliced{Text: strings.TrimSuffix(strings.TrimPrefix(found.Matches[0].Text, "needle"), "…")})
			}
		}
	}
}
