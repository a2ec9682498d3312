package shell

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// SessionStore keeps what the shell of a thread had when its last command ended.
type SessionStore interface {
	Load(ctx context.Context, workspace, thread string) ([]byte, error)
	Save(ctx context.Context, workspace, thread string, state []byte) error
}

// mostState is how much a shell may keep.
const mostState = 256 << 10

// stateEnd closes a state that was written to its end.
const stateEnd = "\n# end\n"

// A command of a session takes up what the one before it left, and writes down what it leaves itself: directory,
// variables, functions, aliases and options (but tracing), as commands that bring them back. So no process lives
// between two commands; one that is killed changes nothing of it, and neither does a restart of the server.

// sessionLine is what bash is given, on one line so that the command's own lines are counted right. Its arguments are
// the command, the names that are given anew each time, and whether to stay where it starts.
const sessionLine = `__reeve_command=$1 __reeve_skip=" $2 " __reeve_stay=$3; set --; eval "$(cat)"; exec </dev/null; eval "$__reeve_command"; { __reeve_end; } 2>/dev/null`

// sessionScript is what it reads first; the state of before follows, and sessionStart.
const (
	sessionScript = `__reeve_save() {
	local __reeve_flags=$- __reeve_out; set +eux
	__reeve_out=$(
		printf '__reeve_cd=%q\n' "$PWD"
		for __reeve_n in $(compgen -A variable); do
			case $__reeve_n in
			__reeve_*|BASH*|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|HOME|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TMPDIR|UID|_) continue ;;
			esac
			[[ $__reeve_skip == *" $__reeve_n "* ]] || declare -p "$__reeve_n"
		done
		for __reeve_n in $(compgen -A function); do
			[[ $__reeve_n == __reeve_* ]] || declare -f "$__reeve_n"
		done
		alias -p
		umask -p
		shopt -p
		set +o
		for __reeve_n in e u; do [[ $__reeve_flags != *$__reeve_n* ]] || echo "set -$__reeve_n"; done
		echo 'set +xv'
		echo '# end'
	)
	local LC_ALL=C
	(( ${#__reeve_out} < 262000 )) && printf '%s\n' "$__reeve_out" >&198
}
__reeve_end() {
	local __reeve_code=$?
	[[ $(trap -p EXIT) != *__reeve_save* ]] || trap - EXIT
	__reeve_save
	return $__reeve_code
}
__reeve_cd=$PWD
trap '{ __reeve_save; } 2>/dev/null' EXIT
`
	sessionStart = `[[ -n $__reeve_stay ]] || cd -- "$__reeve_cd" 2>/dev/null || printf 'reeve: %s is gone, so this starts in %s\n' "$__reeve_cd" "$PWD" >&2`
)

// session runs commands of one thread, one after another, each taking up where the one before ended.
type session struct {
	pack    *Pack
	inv     *reeve.Invocation
	command *confine.Command
	state   *os.File
}

// kept gives what a command may take up of a state. Where programs are listed, that is the directory, options, and
// variables that can run nothing: functions, aliases and whatever else stands there may come from a time of other
// lists, or from a command that wrote it itself, and is run without anybody having seen it.
func (p policy) kept(state []byte, line string) []byte {
	if !p.listed() {
		return state
	}
	file, err := parse(string(state))
	if err != nil {
		return nil
	}
	command, err := parse(line)
	if err != nil {
		return nil
	}
	counted := numbers(command)
	may := policy{allow: []string{"declare", "set", "shopt", "umask"}, operators: []string{assignment}}
	var out []byte
	for _, s := range file.Stmts {
		text := state[s.Pos().Offset():s.End().Offset()]
		if may.check(string(text)) != nil {
			continue
		}
		odd := false // a variable that the line counts with holds something else
		for name, number := range numbers(s) {
			odd = odd || counted[name] && !number
		}
		if !odd {
			out = append(append(out, text...), '\n')
		}
	}
	return out
}

// open gets a command ready to go on from the last one of its thread. Close it.
func (p *Pack) open(ctx context.Context, inv *reeve.Invocation, c *confine.Command, judge policy, line string,
	stay bool) (s session, err error) {
	before, err := p.Shells.Load(ctx, inv.Workspace, inv.Thread)
	if err != nil {
		return s, err
	}
	state, err := confine.NewMemoryFile(mostState)
	if err != nil {
		return s, err
	}
	s = session{p, inv, c, state}
	var names []string
	for _, kv := range c.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	here := ""
	if stay {
		here = "here"
	}
	c.Args = []string{program, "--noprofile", "--norc", "-c", sessionLine, program, line, strings.Join(names, " "),
		here}
	c.Stdin, c.Keep = slices.Concat([]byte(sessionScript), judge.kept(before, line), []byte(sessionStart)), s.state
	return s, nil
}

// keep stores what the command left. It gives a word for the agent if that is nothing.
func (s session) keep(ctx context.Context, r confine.Result) (note string, err error) {
	const before = "the shell's directory and variables are as they were before this command"
	if r.TimedOut || r.DiskFull {
		return before, nil
	}
	b := make([]byte, mostState)
	n, _ := s.state.ReadAt(b, 0)
	b, _, _ = bytes.Cut(b[:n], []byte{0})
	b = b[max(0, bytes.LastIndex(b, []byte("__reeve_cd="))):] // before it is what the command itself wrote there
	switch {
	case len(b) == 0:
		return before + ": together they are over " + strconv.Itoa(mostState>>10) +
			" KiB, or the shell did not come to its end", nil
	case !bytes.HasSuffix(b, []byte(stateEnd)):
		return before, nil
	}
	return "", s.pack.Shells.Save(ctx, s.inv.Workspace, s.inv.Thread, b)
}

func (s session) close() { _ = s.state.Close() }
