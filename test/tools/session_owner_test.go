package tools_test

import (
	"strings"
	"testing"

	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Scratchpad and session files of a member are the member's own, in the default session and in a session with a name.
// A session whose name begins with shared: is one for all.
func TestO12_SessionsBelongToUsers(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg)
		h.Agent("aide", "scratchpad_read", "scratchpad_write", "read_file", "write_file")
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		call := func(who []string, session, tool string, args kit.Object) string {
			t.Helper()
			res, p, status := kit.TryCall(h, "aide", kit.Call{"tool": tool, "args": args, "session": session}, who...)
			if status != 200 {
				t.Fatalf("%s: %d %+v", tool, status, p)
			}
			return res.Content + res.Message
		}
		for _, session := range []string{"", "default", "work", "shared:team"} {
			call(ann, session, "scratchpad_write", kit.Object{"items": []string{"ann's step " + session}})
			call(ann, session, "write_file", kit.Object{"path": "/a.txt", "content": "ann's file " + session})
			isShared := session == "shared:team"
			pad := call(ben, session, "scratchpad_read", kit.Object{})
			file := call(ben, session, "read_file", kit.Object{"path": "/a.txt"})
			if strings.Contains(pad, "ann's step") != isShared || strings.Contains(file, "ann's file") != isShared {
				t.Errorf("%q: ben sees %s and %s", session, pad, file)
			}
			if pad = call(ann, session, "scratchpad_read", kit.Object{}); !strings.Contains(pad, "ann's step "+session) {
				t.Errorf("%q: ann sees %s", session, pad)
			}
		}
	})
}
