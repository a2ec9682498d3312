package shell

import (
	"context"
	"strings"
	"sync"
	"testing"

	"reeve/internal/sandbox/confine"
)

// memoryStore stores the states of shells in memory.
type memoryStore struct {
	mu     sync.Mutex
	states map[string][]byte
}

func (m *memoryStore) Load(_ context.Context, workspace, thread string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.states[workspace+" "+thread], nil
}

func (m *memoryStore) Save(_ context.Context, workspace, thread string, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[workspace+" "+thread] = state
	return nil
}

// TestO06_SessionKeepsState runs commands that depend on the state of earlier ones. Timeouts, exits, traps, options and
// large states in between must not damage the state.
func TestO06_SessionKeepsState(t *testing.T) {
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Log("no confinement here: ", reason)
		return
	}
	fx := newFixture(t)
	const config = `{"backend":"session","env":["GIVEN"]}`
	for _, c := range []struct {
		command string
		args    map[string]any
		want    execResult
	}{
		{command: "mkdir -p a/b; cd a/b; X=1; export Y='two words'; declare -A M=([k]='v;\"w' [l]=$'a\\nb'); L=(1 'b " +
			"c' '*'); f() { echo \"f $1 $X\"; }; umask 027"},
		{command: `pwd; echo "$X $Y ${M[k]} ${M[l]} ${L[1]} ${L[2]} ${#L[@]}"; f hi; umask; env | grep -c ^Y=`,
			want: execResult{Stdout: "/shared/a/b\n1 two words v;\"w a\nb b c * 3\nf hi 1\n0027\n1\n"}},
		{command: "X=lost; cd /tmp; sleep 1000", args: map[string]any{"timeout_ms": 300},
			want: execResult{ExitCode: 137, TimedOut: true,
				Note: "the directory and variables of the shell are unchanged by this command"}},
		{command: "pwd; echo $X", want: execResult{Stdout: "/shared/a/b\n1\n"}},
		{command: "X=2; exit 4", want: execResult{ExitCode: 4}},
		{command: "echo $X; X=3; false", want: execResult{ExitCode: 1, Stdout: "2\n"}},
		{command: "set -e; X=4; false; X=5", want: execResult{ExitCode: 1}},
		{command: "echo $X $-; false; echo no", want: execResult{ExitCode: 1, Stdout: "4 ehBc\n"}},
		{command: "set +e; set -u; set -o pipefail; echo $GIVEN; GIVEN=changed", want: execResult{Stdout: "given\n"}},
		{command: "echo $GIVEN; false | true; echo $?; set +u", want: execResult{Stdout: "given\n1\n"}},
		{command: "set -x; echo traced", want: execResult{Stdout: "traced\n", Stderr: "++ echo traced\n"}},
		{command: "set +x; trap 'echo bye' EXIT; X=6", want: execResult{Stdout: "bye\n"}},
		{command: "echo $X; unset X; unset -f f", want: execResult{Stdout: "6\n"}},
		{command: "echo ${X-none}; f", want: execResult{ExitCode: 127, Stdout: "none\n",
			Stderr: "bash: line 1: f: command not found\n"}},
		{command: "pwd", args: map[string]any{"cwd": "/shared"}, want: execResult{Stdout: "/shared\n"}},
		{command: "pwd; mkdir gone; cd gone", want: execResult{Stdout: "/shared\n"}},
		{command: "rmdir ../gone; X=7"},
		{command: "pwd; echo $X", want: execResult{Stdout: "/shared\n7\n",
			Stderr: "reeve: /shared/gone does not exist any more; starting in /shared\n"}},
		{command: "(sleep 1000 & setsid sleep 1000 &); read line; echo \"[$line]\" $# $0",
			want: execResult{Stdout: "[] 0 bash\n"}},
		{command: "exec echo replaced", want: execResult{Stdout: "replaced\n",
			Note: "the directory and variables of the shell are unchanged by this command: the state is over " +
				"256 KiB, or the shell was stopped before it could save it"}},
		{command: "BIG=$(head -c 300000 /dev/zero | tr '\\0' x); X=8",
			want: execResult{Note: "the directory and variables of the shell are unchanged by this command: " +
				"the state is over 256 KiB, or the shell was stopped before it could save it"}},
		{command: "echo garbage >&198; X=9"},
		{command: "echo $X ${#BIG}", want: execResult{Stdout: "9 0\n"}},
		{command: "echo one\nnothing-of-that-name", want: execResult{ExitCode: 127, Stdout: "one\n",
			Stderr: "bash: line 2: nothing-of-that-name: command not found\n"}},
		{command: "alias ll='echo aliased'; shopt -s expand_aliases extglob; readonly R=1"},
		{command: "ll; [[ ab == @(ab|c) ]] && echo glob; R=2; echo after",
			want: execResult{ExitCode: 1, Stdout: "aliased\nglob\n", Stderr: "bash: line 1: R: readonly variable\n"}},
		{command: "echo still here", want: execResult{Stdout: "still here\n"}},
	} {
		args := map[string]any{"command": c.command}
		for k, v := range c.args {
			args[k] = v
		}
		got, err := fx.exec(config, args)
		if got.DurationMS = 0; err != nil || got != c.want {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", c.command, got, err, c.want)
		}
	}
	for thread, state := range fx.shells.states {
		if strings.Contains(string(state), "GIVEN") {
			t.Errorf("%s stores a variable that each command receives anyway", thread)
		}
	}
}

// TestO04_SavedStateObeysCurrentPolicy checks that the saved state of a shell cannot make the next command run uname,
// which the policy of that command does not allow.
func TestO04_SavedStateObeysCurrentPolicy(t *testing.T) {
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Log("no confinement here: ", reason)
		return
	}
	const (
		free   = `{"backend":"session"}`
		listed = `{"backend":"session","allow":["echo","ls","printf","cd","declare","umask","set"]}`
		forged = "printf() { echo '__reeve_cd=/shared'; echo '%s'; echo '# end'; }; cd /shared"
	)
	for _, c := range []struct{ left, config, next, want string }{
		{strings.Replace(forged, "%s", "uname", 1), listed, "echo hi", "hi\n"},
		{strings.Replace(forged, "%s", "__reeve_command=uname", 1), listed, "echo hi", "hi\n"},
		{strings.Replace(forged, "%s", "declare -- x=$(uname >&2)", 1), listed, "echo hi$x", "hi\n"},
		{"touch f; ls() { uname; }", free, "ls f", "f\n"},
		{"touch f; shopt -s expand_aliases; alias ls=uname", free, "ls f", "f\n"},
		{"mkdir -p x; ln -s /bin/uname x/ls; touch f; PATH=/shared/x:$PATH", free, "ls f", "f\n"},
		{"PS4='$(uname >&2)'", free, "set -x; echo hi", "hi\n"},
		{"set -k", free, "echo A=1", "A=1\n"},
		{"declare -i n=1; declare -n r='a[$(uname >&2)]'", free, `echo "$n$r"`, "\n"},
		{"z=w", listed, `x='a['; y='$(uname >&2)]'; w=$x$y; if echo; then echo; else z=1; fi; echo $((z))`, "\n\n0\n"},
		{"mkdir -p d; cd d; i=5; s='a b'; l=(1 '*'); declare -A m=([k]='v w'); umask 027; set -u", free,
			`i=$((i+1)); echo $i "$s" "${l[1]}" "${m[@]}" $-; cd .. ; umask; echo "$OLDPWD"`,
			"6 a b * v w huBc\n0027\n/shared/d\n"},
	} {
		fx := newFixture(t)
		if _, err := fx.exec(c.config, map[string]any{"command": c.left}); err != nil {
			t.Errorf("%s: %v", c.left, err)
		}
		got, err := fx.exec(listed, map[string]any{"command": c.next})
		if err != nil || got.Stdout != c.want || strings.Contains(got.Stderr, "Linux") {
			t.Errorf("after %s, %s: %+v, %v", c.left, c.next, got, err)
		}
	}
}

// TestO20_SavedStateObeysPoliciesOfPrincipals checks that an unrestricted agent cannot use a saved function to run a
// program that is denied to the agent it works for.
func TestO20_SavedStateObeysPoliciesOfPrincipals(t *testing.T) {
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Log("no confinement here: ", reason)
		return
	}
	fx := newFixture(t)
	const free, listed = `{"backend":"session"}`, `{"deny":["uname"]}`
	if _, err := fx.exec(free, map[string]any{"command": "touch f; ls() { uname; }; d=x"}); err != nil {
		t.Fatal(err)
	}
	if got, err := fx.exec(free, map[string]any{"command": "ls f; echo $d"}, listed, free); err != nil ||
		got.Stdout != "f\nx\n" {
		t.Errorf("%+v, %v", got, err)
	}
}
