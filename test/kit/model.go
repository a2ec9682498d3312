package kit

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	seq "slices"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/model"
	"reeve/reevetest"
)

// RecordingModel is a model that records its requests.
type RecordingModel struct {
	model.Model
	mu       sync.Mutex
	Requests []model.Request
}

// LastMedia returns the media of the last request.
func (l *RecordingModel) LastMedia() (list []model.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.Requests[len(l.Requests)-1].Messages {
		for _, p := range m.Parts {
			if p.Type == model.Media {
				list = append(list, p)
			}
		}
	}
	return list
}

// MediaShownTo returns name, type and content of the media in the last request whose system prompt contains a text.
func (l *RecordingModel) MediaShownTo(system string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range seq.Backward(l.Requests) {
		if !strings.Contains(r.System, system) {
			continue
		}
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if p.Type == model.Media {
					list = append(list, p.Name+" "+p.MediaType+" "+base64.StdEncoding.EncodeToString(p.Data)+p.URL)
				}
			}
		}
		return list
	}
	return nil
}

// Answer records the request and passes it on.
func (l *RecordingModel) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	l.mu.Lock()
	l.Requests = append(l.Requests, r)
	l.mu.Unlock()
	return l.Model.Answer(ctx, r, watch)
}

// LastPrompt returns the messages of the last request whose system prompt contains a text, as one line.
func (l *RecordingModel) LastPrompt(system string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range seq.Backward(l.Requests) {
		if !strings.Contains(r.System, system) {
			continue
		}
		var lines []string
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				line := string(m.Role) + ": "
				switch p.Type {
				case model.ToolCall:
					line += p.Name
				case model.Result:
					line += "= " + p.Text
				default:
					line += p.Text
				}
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, " | ")
	}
	return ""
}

// RunOnBothDatabases runs a test on SQLite and on PostgreSQL, with an agent bot that has all tools and whose model
// follows a script and records its requests.
func RunOnBothDatabases(t *testing.T, answers string, tools []reeve.Tool, f func(t *testing.T, h *reevetest.Host,
	heard *RecordingModel)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			heard := &RecordingModel{Model: ScriptedModel(t, "answers:\n"+answers)}
			cfg := FastConfig(t)
			cfg.Model = heard
			if name == "postgres" {
				cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
			}
			h := reevetest.Run(t, cfg, tools...)
			var ids []string
			for _, tool := range tools {
				ids = append(ids, tool.ID)
			}
			h.Agent("bot", ids...)
			f(t, h, heard)
		})
	}
}

// RunWithRecordingModel runs a host whose model follows a script and records its requests.
func RunWithRecordingModel(t *testing.T, script string) (*reevetest.Host, *RecordingModel) {
	t.Helper()
	parsed, err := model.ParseScript([]byte("answers:\n" + script))
	if err != nil {
		t.Fatal(err)
	}
	heard := &RecordingModel{Model: model.Rehearsal(parsed)}
	return reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard}), heard
}

// RunMediaAgent runs a host with an agent bot that sends media when a message asks for the picture, and with a picture
// in the shared folder. more adds answers to its script.
func RunMediaAgent(t *testing.T, more ...string) *reevetest.Host {
	t.Helper()
	dir := t.TempDir()
	h := RunScriptedIn(t, dir, `- {when: {tool: send_media}, text: Done.}
- {when: {said: picture}, calls: [{name: send_media, args: {path: /shared/chart.png, caption: The chart}}]}
- {when: {said: secret}, calls: [{name: send_media, args: {path: /shared/../../../secret.key}}]}
- {when: {said: absent}, calls: [{name: send_media, args: {path: /shared/absent.png}}]}
`+strings.Join(more, ""))
	h.Agent("bot", "send_media", "schedule_create")
	if err := os.MkdirAll(filepath.Join(dir, "workspaces", "default", "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workspaces", "default", "shared", "chart.png"),
		[]byte("\x89PNG\r\n\x1a\n<script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// ScriptedModel returns a rehearsal model that follows a script.
func ScriptedModel(t testing.TB, text string) model.Model {
	t.Helper()
	s, err := model.ParseScript([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return model.Rehearsal(s)
}

// RunScripted runs a host whose model follows a script, with an agent bot that has all tools.
func RunScripted(t *testing.T, script string, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	h := RunScriptedIn(t, t.TempDir(), script, tools...)
	var ids []string
	for _, tool := range tools {
		ids = append(ids, tool.ID)
	}
	h.Agent("bot", ids...)
	return h
}

// RunScriptedIn runs a host in a directory whose model follows a script.
func RunScriptedIn(t *testing.T, dir, script string, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	cfg := host.Config{Dir: dir}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", WriteScript(t, script)
	return reevetest.Run(t, cfg, tools...)
}

// WriteScript writes the answers of a model to a script file and returns its path.
func WriteScript(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("answers:\n"+script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
