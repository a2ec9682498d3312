package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// agentSession calls the file tools in one session of an agent.
type agentSession struct {
	t           *testing.T
	h           *reevetest.Host
	agent, name string
}

func (s agentSession) call(tool string, args object) reeve.Result {
	s.t.Helper()
	body := object{"tool": tool, "args": args, "session": s.name}
	return decode[reeve.Result](s.t, s.h.Want(200, nil, "POST", "/api/agents/"+s.agent+"/calls", body))
}

func (s agentSession) write(path, content string) {
	s.t.Helper()
	r := s.call("write_file", object{"path": path, "content": content})
	if r.IsError || r.State != reeve.Committed ||
		!strings.Contains(r.Content, fmt.Sprintf("(%d bytes)", len(content))) {
		s.t.Fatalf("write %q: %+v", path, r)
	}
}

func (s agentSession) wantContent(path, content string) {
	s.t.Helper()
	if r := s.call("read_file", object{"path": path}); r.IsError || r.Content != content {
		s.t.Errorf("read %q: %+v", path, r)
	}
}

func (s agentSession) wantMissing(path string) {
	s.t.Helper()
	if r := s.call("read_file", object{"path": path}); !r.IsError || r.Code != reeve.ToolFailed ||
		!strings.Contains(r.Message, "not found") {
		s.t.Errorf("read %q: %+v", path, r)
	}
}

func (s agentSession) list(path string) []string {
	s.t.Helper()
	r := s.call("list_files", object{"path": path})
	if r.IsError {
		s.t.Fatalf("list %q: %+v", path, r)
	}
	return strings.Split(r.Content, "\n")[1:]
}

func (s agentSession) wantList(path string, want ...string) {
	s.t.Helper()
	if got := strings.Join(s.list(path), "\n"); got != strings.Join(want, "\n") {
		s.t.Errorf("list %q:\n%s\nwant:\n%s", path, got, strings.Join(want, "\n"))
	}
}

func TestI12_SessionFiles(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		h.Agent("coach")
		s := agentSession{t, h, "coach", "one"}
		s.write("/notes.txt", "first")
		s.wantContent("/notes.txt", "first")
		s.wantContent("notes.txt", "first") // the same file
		s.write("/notes.txt", "second, longer")
		s.wantContent("/notes.txt", "second, longer")
		s.write("/empty", "")
		s.wantContent("/empty", "")
		s.write("/a/b/c/deep.txt", "deep")
		s.write("/a/b/c/deeper.txt", "x")
		s.write("/日本/ñandú 🦤.md", "Grüße, 世界 🌍\nsecond line\ttab \\ \"quote\"")
		s.wantContent("/日本/ñandú 🦤.md", "Grüße, 世界 🌍\nsecond line\ttab \\ \"quote\"")
		s.wantList("/", "[DIR]  /a", "[DIR]  /日本", "[FILE] /empty (0 bytes)", "[FILE] /notes.txt (14 bytes)")
		s.wantList("/a", "[DIR]  /a/b")
		s.wantList("/a/b/c", "[FILE] /a/b/c/deep.txt (4 bytes)", "[FILE] /a/b/c/deeper.txt (1 bytes)")
		s.wantList("/a/b/c/", "[FILE] /a/b/c/deep.txt (4 bytes)", "[FILE] /a/b/c/deeper.txt (1 bytes)")
		s.wantList("/日本", fmt.Sprintf("[FILE] /日本/ñandú 🦤.md (%d bytes)",
			len("Grüße, 世界 🌍\nsecond line\ttab \\ \"quote\"")))
		s.wantList("/nothing")
		s.wantMissing("/missing")
		s.wantMissing("/a")
		s.wantMissing("/Notes.txt")

		// Percent signs and underscores are ordinary characters.
		s.write("/50%_off/x", "1")
		s.write("/50AB_off/y", "1")
		s.wantList("/50%_off", "[FILE] /50%_off/x (1 bytes)")

		two, other := agentSession{t, h, "coach", "two"}, agentSession{t, h, h.Agent("other").ID, "one"}
		for _, apart := range []agentSession{two, other} {
			apart.wantMissing("/notes.txt")
			apart.wantList("/")
			apart.write("/notes.txt", "mine")
		}
		s.wantContent("/notes.txt", "second, longer")
		two.wantContent("/notes.txt", "mine")
		h.Stop()

		h = env.start(t)
		s = agentSession{t, h, "coach", "one"}
		s.wantContent("/notes.txt", "second, longer")
		s.wantContent("/日本/ñandú 🦤.md", "Grüße, 世界 🌍\nsecond line\ttab \\ \"quote\"")
		s.wantContent("/a/b/c/deep.txt", "deep")
		agentSession{t, h, "coach", "two"}.wantContent("/notes.txt", "mine")
	})
}

func TestI12_ParallelWritesAreKept(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		h.Agent("coach")
		s := agentSession{t, h, "coach", "one"}
		const n = 50
		runConcurrently(n, func(i int) reeve.Result {
			return s.call("write_file", object{"path": fmt.Sprintf("/p/%02d.txt", i),
				"content": fmt.Sprintf("content %d", i)})
		})
		if got := s.list("/p"); len(got) != n {
			t.Errorf("%d files were kept: %v", len(got), got)
		}
		for i := range n {
			s.wantContent(fmt.Sprintf("/p/%02d.txt", i), fmt.Sprintf("content %d", i))
		}
		// Of several writers of one file, the last one wins. Contents are not mixed.
		runConcurrently(20, func(i int) reeve.Result {
			return s.call("write_file", object{"path": "/same", "content": strings.Repeat(string(rune('a'+i)), 5000)})
		})
		got := s.call("read_file", object{"path": "/same"}).Content
		if len(got) != 5000 || strings.Trim(got, got[:1]) != "" {
			t.Errorf("writes were mixed: %d bytes", len(got))
		}
	})
}

func TestI12_BadPathsAndSizes(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Agent("coach")
	s := agentSession{t, h, "coach", "one"}
	for _, p := range []string{"/", "//", "/../etc", "/a/../b", "/a//b", "/a/./b", "/a/", "/nul\x00", "/line\nbreak",
		"/plan.md\n", " /plan.md", "/del\x7f", strings.Repeat("ü", 400)} {
		for _, tool := range []string{"read_file", "write_file"} {
			r := s.h.Do("POST", "/api/agents/coach/calls",
				object{"tool": tool, "args": object{"path": p, "content": "x"}, "session": "one"})
			if tool == "read_file" {
				r = s.h.Do("POST", "/api/agents/coach/calls", object{"tool": tool, "args": object{"path": p},
					"session": "one"})
			}
			var res reeve.Result
			if r.Decode(t, &res); r.Status == 200 && !res.IsError {
				t.Errorf("%s accepted the path %q: %s", tool, p, r.Body)
			}
			if r.Status >= 500 {
				t.Errorf("%s %q: %d %s", tool, p, r.Status, r.Body)
			}
		}
	}
	s.wantList("/")
	most := strings.Repeat("x", 1<<20)
	s.write("/most", most)
	if r := s.call("write_file", object{"path": "/most", "content": most + "x"}); !r.IsError ||
		r.Code != reeve.TooLarge {
		t.Errorf("too large: code %s, error %v", r.Code, r.IsError)
	}
	s.wantList("/", fmt.Sprintf("[FILE] /most (%d bytes)", 1<<20))
	if r := s.call("write_file", object{"path": "/nul", "content": "a\x00b"}); !r.IsError ||
		r.Code != reeve.Validation {
		t.Errorf("NUL in content: %+v", r) // such a file could not be read
	}
}

// Concurrent first messages of a playground session all succeed: one creates the session, the others use it.
func TestI17_ConcurrentSessionStarts(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		h.Agent("coach")
		for i := range 5 {
			got := runConcurrently(6, func(j int) reevetest.Reply {
				return h.Do("POST", fmt.Sprintf("/api/playground/sessions/s%d/chat", i),
					object{"agentId": "coach", "message": fmt.Sprint("hi ", j), "detach": true})
			})
			for _, r := range got {
				if r.Status != 200 {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			}
		}
		list := decode[api.ConversationList](t, h.Want(200, nil, "GET", "/api/conversations", nil)).Conversations
		if len(list) != 5 {
			t.Errorf("%d conversations, want 5", len(list))
		}
	})
}
