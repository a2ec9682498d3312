package tools_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/test/kit"
)

// writeShared writes files into /shared of the default workspace.
func writeShared(t *testing.T, cfg host.Config, files map[string]string) {
	t.Helper()
	dir := filepath.Join(cfg.Dir, "workspaces", "default", "shared")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A script has a model look at pictures, documents and recordings, under the usual names.
func TestM16_ScriptsExplainMedia(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	var seen []string
	h := kit.RunWithPricedProvider(t, cfg, func(w io.Writer, body string) {
		var r struct {
			Messages []struct{ Content any }
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Error(err)
		}
		content, _ := json.Marshal(r.Messages[len(r.Messages)-1].Content)
		seen = append(seen, string(content))
		kit.WriteLastChunk(w, "seen")
	})
	writeShared(t, cfg, map[string]string{"a.png": "\x89PNG\r\n\x1a\n1", "a.pdf": "%PDF-1.7 x",
		"a.wav": "RIFF\x10\x00\x00\x00WAVEfmt x", "fake.png": "plain text", "a.ogg": "OggS\x00x"})
	a := &kit.Automation{Host: h, T: t, Name: "viewer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name,
		"tools": []string{"image_explain", "pdf_explain", "audio_explain", "web_fetch", "memory_save"}, "source": `
		const out = [];
		for (const [f, path] of [[Images.explain, 'a.png'], [PDF.explain, 'a.pdf'], [Audio.explain, 'a.wav'], [Images.explain, 'a.png'],
			[Images.explain, 'fake.png'], [PDF.explain, 'a.png'], [Images.explain, 'absent.png'], [Audio.explain, 'a.ogg']]) {
			try { out.push((await f({ path: '/shared/' + path, question: 'What?' })).text) } catch (e) { out.push(e.code) }
		}
		out.join(' ') + ' ' + typeof Web.fetchParse + ' ' + typeof Memory.createNote`})
	run := a.RunOnce()
	kit.Equal(t, run.Run.Output, "seen seen seen seen VALIDATION_ERROR VALIDATION_ERROR TOOL_FAILED UNSUPPORTED "+
		"function function", "what the script saw")
	if len(seen) != 3 || !strings.Contains(seen[0], "data:image/png") || !strings.Contains(seen[1], "%PDF") &&
		!strings.Contains(seen[1], "application/pdf") || !strings.Contains(seen[2], "input_audio") {
		t.Errorf("%q", seen)
	}
	b := h.Agent("reader", "image_explain")
	if code, _ := callCode(t, h, b.ID, "image_explain", kit.Object{"path": "/vault/x.png"}); code == "" ||
		code == reeve.Internal {
		t.Error("the vault:", code)
	}
}
