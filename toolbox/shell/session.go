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

// SessionStore stores the state of a thread's shell after each command.
type SessionStore interface {
	Load(ctx context.Context, workspace, thread string) ([]byte, error)
	Save(ctx context.Context, workspace, thread string, state []byte) error
}

// maxState is the maximum size of a shell's state in bytes.
const maxState = 256 << 10

// stateEnd ends a state that was written completely.
const stateEnd = "\n# end\n"

// A command of a session starts from the state of the command before it, and saves its own state at the end. A state
// holds the directory, variables, functions, aliases and options (except tracing), as commands that restore them. No
// process runs between two commands. A killed command and a restart of the server leave the state unchanged.

// sessionLine is the script that bash runs. It is one line, so that line numbers in errors are those of the command.
// Its arguments are the command, the names of variables that are set anew for each command, and whether to stay in the
// start folder.
const sessionLine = `__reeve_command=$1 __reeve_skip=" $2 " __reeve_stay=$3; set --; eval "$(cat)"; exec </dev/null; eval "$__reeve_command"; { __reeve_end; } 2>/dev/null`

const (
	// sessionScript is read first. The saved state and sessionStart follow it.
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
	sessionStart = `[[ -n $__reeve_stay ]] || cd -- "$__reeve_cd" 2>/dev/null || printf 'reeve: %s does not exist any more; starting in %s\n' "$__reeve_cd" "$PWD" >&2`
)

// session runs one command of a thread from the state that the previous command left.
type session struct {
	pack    *Pack
	inv     *reeve.Invocation
	command *confine.Command
	state   *os.File
}

// filterState returns the part of a saved state that a command may use. If the policy restricts programs, only the
// directory, options, and variables that cannot run anything remain. Functions, aliases and other commands may date
// from different lists, or a command may have written them itself, and they would run unchecked.
func (p policy) filterState(state []byte, line string) []byte {
	if !p.restrictsPrograms() {
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
	lineNumbers := numericVariables(command)
	may := policy{allow: []string{"declare", "set", "shopt", "umask"}, operators: []string{assignmentOp}}
	var out []byte
	for _, s := range file.Stmts {
		text := state[s.Pos().Offset():s.End().Offset()]
		if may.check(string(text)) != nil {
			continue
		}
		unsafe := false // the line uses the variable as a number, and it is not one
		for name, isNumber := range numericVariables(s) {
			unsafe = unsafe || lineNumbers[name] && !isNumber
		}
		if !unsafe {
			out = append(append(out, text...), '\n')
		}
	}
	return out
}

// openSession prepares a command to start from the state of its thread. The caller must close the session.
func (p *Pack) openSession(ctx context.Context, inv *reeve.Invocation, c *confine.Command, statePolicy policy,
	line string, stay bool) (s session, err error) {
	before, err := p.Shells.Load(ctx, inv.Workspace, inv.Thread)
	if err != nil {
		return s, err
	}
	state, err := confine.NewMemoryFile(maxState)
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
	c.Args = []string{bashProgram, "--noprofile", "--norc", "-c", sessionLine, bashProgram, line,
		strings.Join(names, " "),
		here}
	c.Stdin, c.Keep = slices.Concat([]byte(sessionScript), statePolicy.filterState(before, line), []byte(sessionStart)),
		s.state
	return s, nil
}

// save stores the state that the command left. If it stores nothing, it returns a note for the agent.
func (s session) save(ctx context.Context, r confine.Result) (note string, err error) {
	const unchanged = "the directory and variables of the shell are unchanged by this command"
	if r.TimedOut || r.DiskFull {
		return unchanged, nil
	}
	b := make([]byte, maxState)
	n, _ := s.state.ReadAt(b, 0)
	b, _, _ = bytes.Cut(b[:n], []byte{0})
	b = b[max(0, bytes.LastIndex(b, []byte("__reeve_cd="))):] // drop bytes that the command itself wrote to the file
	switch {
	case len(b) == 0:
		return unchanged + ": the state is over " + strconv.Itoa(maxState>>10) +
			" KiB, or the shell was stopped before it could save it", nil
	case !bytes.HasSuffix(b, []byte(stateEnd)):
		return unchanged, nil
	}
	return "", s.pack.Shells.Save(ctx, s.inv.Workspace, s.inv.Thread, b)
}

func (s session) close() { _ = s.state.Close() }
