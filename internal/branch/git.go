package branch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// gitLimits are the resource limits of one git task.
var gitLimits = confine.Limits{Time: 3 * time.Minute, CPU: 3 * time.Minute, Memory: 2 << 30, FileSize: 1 << 30,
	Disk: 8 << 30, Files: 5_000_000, Output: 1 << 20}

// gitSettings apply to every git that Reeve runs and override the settings of repositories, so that git starts no other
// program.
var gitSettings = []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false",
	"core.alternateRefsCommand=", "core.editor=true", "core.pager=cat", "gc.auto=0",
	"maintenance.auto=false", "commit.gpgSign=false", "merge.verifySignatures=false", "merge.autoStash=false",
	"submodule.recurse=false", "protocol.allow=never", "safe.directory=*",
	"advice.addEmbeddedRepo=false", "core.quotePath=false"}

// gitTask is a shell script of Reeve that runs git.
type gitTask struct {
	root     string // the folder in which it starts and which it may write
	asOwner  bool   // run as the owner of root
	readOnly []string
	script   string
	env      []string
	from, to *os.File
	mode     confine.Mode
}

// run runs the script. An exit code other than 0 is a result, not an error.
func (t gitTask) run(ctx context.Context) (confine.Result, error) {
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_COUNT=" + itoa(len(gitSettings))}
	for i, s := range gitSettings {
		key, v, _ := strings.Cut(s, "=")
		env = append(env, "GIT_CONFIG_KEY_"+itoa(i)+"="+key, "GIT_CONFIG_VALUE_"+itoa(i)+"="+v)
	}
	r, err := confine.Run(ctx, confine.Command{Args: []string{"/bin/sh", "-c", t.script}, Root: t.root,
		Owner:    t.asOwner,
		ReadOnly: t.readOnly, Env: append(env, t.env...),
		From: t.from, To: t.to, Mode: t.mode}, gitLimits)
	switch {
	case err != nil:
		return r, err
	case r.ExitCode == 127:
		return r, reeve.Errorf(reeve.Unsupported, "git is not installed on the server").
			Hintf("install git 2.38 or newer")
	case r.TimedOut:
		return r, reeve.Errorf(reeve.Timeout, "git took longer than %s", gitLimits.Time)
	case r.DiskFull:
		return r, reeve.Errorf(reeve.TooLarge, "git used too much disk space")
	}
	return r, nil
}

// renderStderr returns the error messages of git, without the given paths of the server.
func renderStderr(r confine.Result, paths ...string) string {
	s := strings.TrimSpace(string(r.Stderr))
	for _, p := range paths {
		s = strings.ReplaceAll(s, p, "")
	}
	lines := slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool {
		return strings.HasPrefix(l, "hint:") || strings.TrimSpace(l) == ""
	})
	if i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "fatal:") || strings.HasPrefix(l, "error:")
	}); i > 0 {
		lines = lines[i:]
	}
	lines = lines[:min(len(lines), 4)]
	if s = strings.Join(lines, "; "); s == "" {
		return "git failed without a message (exit code " + itoa(r.ExitCode) + ")"
	}
	return s
}

// isCommit reports whether a text has the form of a commit id.
func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// writeEmptyRepository creates an empty repository that reads the objects of another. It does not run git. The
// directory must not have been accessible to an agent. The length of commit ids in hex digits determines the hash
// format.
func writeEmptyRepository(dir, head string, source repository, idLength int) error {
	git := filepath.Join(dir, ".git")
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(git, d), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/" + head + "\n",
		"config":                  source.renderConfig(idLength),
		"objects/info/alternates": source.objectsDir() + "\n"} {
		if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// renderConfig returns the config of a new repository whose origin is the project's repository.
func (r repository) renderConfig(idLength int) string {
	version, format := "0", ""
	if idLength == 64 {
		version, format = "1", "[extensions]\n\tobjectformat = sha256\n"
	}
	return "[core]\n\trepositoryformatversion = " + version +
		"\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" + format +
		"[remote \"origin\"]\n\turl = " + strconv.Quote(r.gitDir) + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
}
