package shell

import (
	"slices"
	"testing"

	"reeve"
)

// TestO04_DenyCoversAllSpellings denies one program to an agent that may run all others.
func TestO04_DenyCoversAllSpellings(t *testing.T) {
	p := policy{allow: []string{"*"}, deny: []string{"rm"}, operators: operators()}
	for _, line := range []string{
		"rm x", "/bin/rm x", "/usr/bin/../bin/rm x", "ls && rm x", "ls; rm x", "ls\nrm x", "ls | rm x", "ls || rm x",
		"rm x &", "(rm x)", "{ rm x; }", "! rm x",
		`\rm x`, `r\m x`, `r""m x`, `'rm' x`, `"rm" x`, `r''m`, "$(echo rm) x", "`echo rm` x", "a=rm; $a x",
		"${a:-rm} x", "echo $(rm x)", "echo `rm x`", `echo "$(rm x)"`, "cat <(rm x)",
		"echo ${a:-$(rm x)}", "echo $((a[$(rm x)]))", "if rm x; then :; fi", "if :; then rm x; fi",
		"for i in 1; do rm x; done", "while rm x; do :; done", "case x in x) rm x;; esac",
		"f() { rm x; }; f", "rm() { ls; }; rm", "eval rm x", "eval 'r''m x'", "sh -c 'rm x'", "bash -c 'rm x'",
		"command rm x", "exec rm x", "env rm x", "env A=1 rm x", "builtin command rm x",
		"xargs rm < list", "find . -exec rm {} +", "nohup rm x", "timeout 5 rm x", "nice rm x", "busybox rm x",
		"time rm x", ". ./script", "source script", "alias ls=rm; ls", "trap 'rm x' EXIT",
		"hash -p /bin/rm ls; ls", "PATH=.:$PATH ls", "export PATH=.", "declare PATH=.", "LD_PRELOAD=./x.so ls",
		"A=1 rm x", "./rm", "./script", "r?", "/bin/r?", "{rm,x}", "~/rm", "python3 -c 1",
		`printf -v 'a[$(rm x)]' x`, `test -v 'a[$(rm x)]'`, `x="a[\$(rm x)]"; echo $((x))`, `let "a[\$(rm x)]=1"`,
		"unset 'a[`rm x`]'",
		"cat <<E | sh\nrm x\nE", "cat <<E\n$(rm x)\nE", "coproc rm x", "$'rm' x", `$"rm" x`,
	} {
		if err := p.check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"ls", "/bin/ls", "ls rm", "echo 'rm x'", "grep rm file | sort > out", "git rm x",
		"ls && echo rm", "f() { ls; }; f", "A=1 ls", "cat <<'E'\nrm x\nE", "echo $HOME # rm"} {
		if err := p.check(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{`printf -v 'a[$(id >&2)]' x`, `test -v 'a[$(id >&2)]'`} {
		if err := (policy{allow: []string{"printf", "test"}, operators: []string{}}).check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	free := policy{allow: []string{"*"}, operators: operators()}
	for _, line := range []string{"$a x", `echo 'a[$(b)]'`, "sh -c 'rm x'", "./script", "PATH=. ls", "eval ls"} {
		if err := free.check(line); err != nil {
			t.Errorf("without a deny list, %q: %v", line, err)
		}
	}
}

// TestO04_RefusesEvaluatedText checks lines in which the shell would evaluate text as a command: in arithmetic, in
// names of variables, and through aliases, functions and PATH.
func TestO04_RefusesEvaluatedText(t *testing.T) {
	const halves = `x='a['; y='$(rm f >&2)]'; z=$x$y; `
	denies := policy{allow: []string{"*"}, deny: []string{"rm"}, operators: operators()}
	for _, line := range []string{
		"BASH_CMDS[x]=/bin/rm; x f", "shopt -s expand_aliases\nBASH_ALIASES[x]=rm\nx f", `x='$(rm f)'; echo "${x@P}"`,
		`x='$(rm f)'; y='a[${x@P}]'; echo $((y))`, `x='b[a[0]+$(rm f >&2)]'; echo $((x))`,
		halves + "(( $x$y ))", halves + "echo $((z))", halves + "echo $[z]", halves + "let z", halves + "let $z",
		halves + `\let "$z"`, halves + "for ((i=z;i<1;i++)); do :; done",
		halves + `: "$z"; echo $((_))`, halves + `echo "${q[z]}"`, halves + `echo "${q:z:1}"`,
		halves + `echo "${@:1:z}"`, halves + "b[z]=1", halves + "b[$z]=1", halves + "b=([z]=1)",
		halves + "declare b=([z]=1) -A", halves + "q=($z); echo $((q))",
		halves + "[[ $z -eq 1 ]]", halves + "[[ z -lt 1 ]]", halves + "[[ -v $z ]]",
		halves + "[[ $z =~ (.*) ]]; echo $((BASH_REMATCH))", halves + `echo "${!z}"`,
		halves + `test -v "$z"`, halves + `[ -v "$z" ]`, halves + `v=-v; [ "$v" "$z" ]`, halves + "v='-v '; [ $v$z ]",
		halves + `set -- -v "$z"; [ "$@" ]`, halves + "test -v 'q[z]'", "[ * ]",
		halves + `read "$z"`, halves + "read z; echo $((z))", halves + `printf -v "$z" 1`,
		halves + `f="-v$z"; printf "$f" 1`, halves + "printf -vn %s $z; echo $((n))", halves + `unset "$z"`,
		halves + `wait -p "$z" -n`,
		halves + `declare "$z=1"`, halves + `declare -n r="$z"; echo $r`, halves + `declare -i i="$z"`,
		halves + `f() { local -i i="$z"; }; f`, halves + `\typeset -ri i="$z"`,
		halves + `RANDOM="$z"`, halves + `SRANDOM="$z"`, halves + `OPTIND="$z"`, halves + `HISTCMD="$z"`,
		halves + `for RANDOM in "$z"; do :; done`, halves + "n=1; for n in $z; do echo $((n)); done",
		halves + ": ${n:=$z}; echo $((n))",
		"mapfile -C 'rm f; :' -c 1 q < list", "readarray -C 'rm f; :' -c 1 q < list", "compgen -W '$(rm f)' x",
		"jobs -x /bin/r''m f", "set -o history\nhistory -s 'rm f'\nfc -s",
		"set -o history -o histexpand\nhistory -s 'rm f'\n!rm",
		"set -H", "shopt -so histexpand", "set -k; ls PATH=/shared/x", "set -o keyword; ls PATH=/shared/x",
		`o=-k; set "$o"; ls PATH=/shared/x`, `LC_ALL=C.UTF-8 TEXTDOMAIN=x TEXTDOMAINDIR=/shared; echo $"hi"`,
		"for PATH in /shared/x; do ls; done", "select PATH in /shared/x; do ls; done", "read PATH < list; ls",
		"read -aPATH < list; ls", "printf -v PATH /shared/x; ls", "printf -v a -vPATH /shared/x; ls",
		`o=-vPATH; printf "$o" /shared/x; ls`,
		`export "PATH=/shared/x"; ls`, `\export PATH=/shared/x; ls`, "'declare' PATH=/shared/x; ls",
		"declare -n r=PATH; r=/shared/x; ls", "unset PATH; ls", ": ${PATH:=/shared/x}; ls", "((PATH=5)); ls",
		": {PATH}>f; ls", "coproc PATH { ls; }",
		halves + ": {q[z]}>f", halves + ": {q[$z]}>f", ": {PATH[0]}>f; ls", halves + `r=("$z"); echo "${!r[@]:-x}"`,
		halves + `r=("$z"); echo "${!r[*]@Q}"`, halves + `r=("$z"); echo "${!r[@]:0:1}"`,
		halves + `r=("$z"); echo "${!r[@]/x/y}"`,
		"printf 'xx%n' PATH; ls", "printf -- 'xx%5ln' PATH; ls", "x='%n PATH'; printf -- $x; ls",
		`f=%n; printf "a$f" PATH; ls`, `n=PATH; printf %n "$n"; ls`,
		"getopts a PATH -a; ls", ": ${BASH_CMDS[ls]:=/bin/rm}; ls", "read 'BASH_CMDS[ls]' < list; ls",
		"set -x; for PS4 in '$(rm f)'; do ls; done",
	} {
		if err := denies.check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{
		halves + "echo $z", "for ((i=0; i<3; i++)); do echo $((i*2)) ${#i} $((16#ff + 0x1F)); done",
		"i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", "for i in {1..3}; do echo $((i+1)); done",
		"((n=2, n<<=1)); [[ $n -gt $# ]]", "n=${#PWD}; echo $((n % 7))",
		`[ "$a" = "$b" ] && [ -n "$a" -a ! -f ~/x ]`, `test "$(wc -l < f)" -gt 5`, `[[ $a == *.txt && -n $b ]]`,
		`printf '%s\n' "$a"`, `printf "a $b\n"`, "printf -v a %s x", `printf '100%%n%s\n' "$a"`, "ls & p=$!; wait $p",
		`while read -r line; do echo "$line"; done < f`,
		`export A="$b" C`, "declare -A m=([k]=v [l]=w); declare -a l=(1 2)",
		`echo "${l[@]}" "${l[0]}" "${!l[@]}" "${a:1:2}" "${a:-x}" "${a@Q}" "${!A@}"`, "unset a 'l[0]'",
		"set -euo pipefail; shopt -s nullglob", `set -- "$a"`, "f() { local a=$1; ls; }; f x",
	} {
		if err := denies.check(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	allows := policy{allow: []string{"echo", "ls", "env", "command"}, operators: operators()}
	for _, line := range []string{
		"date; date() { echo x; }", "(date() { echo x; }); date", "date() { echo x; }; unset -f date; date",
		"BASH_CMDS[ls]=/usr/bin/date; ls", "env PATH=/shared/x ls", "command printf -v PATH /shared/x; ls",
		"command -p export PATH=/shared/x; ls",
	} {
		if err := allows.check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := allows.check("ls() { echo x; }; ls"); err != nil {
		t.Error(err)
	}
	free := policy{allow: []string{"*"}, operators: operators()}
	if err := free.check(halves + `read PATH; set -k; echo $((z)) ${!z} ${z@P} $"hi"; declare -i i=$z; [ $z ]`); err != nil {
		t.Error("without lists:", err)
	}
}

// TestO04_RefusesAmbiguousSyntax checks lines whose syntax tree lacks a command that bash runs. Each refused line ran
// rm in bash.
func TestO04_RefusesAmbiguousSyntax(t *testing.T) {
	denies := policy{allow: []string{"*"}, deny: []string{"rm"}, operators: operators()}
	for _, line := range []string{
		"ls # a\\\nrm f", "echo a\r#; rm f", "echo \\\r\nrm f", "a=()#`rm f`", "[[ x == @($(rm f)) ]]",
		"[[ x == @(`rm f`) ]]", "[[ x == @(')' ) ]]; rm f # ' ]]", "shopt -s extglob\necho @($(rm f))",
		"shopt -s extglob\ncase x in @($(rm f))) ;; esac", "time -- rm f", "time -p -- rm f", "coproc rm f|&ls",
		"coproc a=! rm f", "ls >&1'$(rm f)'", ">&-rm f", "<&-rm f", "x='1`rm f`'; ls 2>&$x", "() ls",
		`echo "${y:-'$(rm f)'}"`, "echo \"${y+'`rm f`'}\"", `echo "${y:=$'$(rm f)'}"`, `cat <<< "${y:-'$(rm f)'}"`,
		"cat <<E\n${y:-'$(rm f)'}\nE", `echo "${y:-${z:-'$(rm f)'}}"`, `echo "${y:-'}"; rm f; echo "'}"`,
		`echo "${y:-it's}" ; rm f; echo "${z:-it's}"`,
	} {
		if err := denies.check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"ls # rm f", "# a\nls", "ls;# rm", "ls 2>&1 >&2", "ls >& out", "n=3; ls >&$n 3>&-",
		"[[ $a == @(x|y) ]]", "[[ $a == *.@(jp|jpe)g ]]", "coproc c { ls; }", "time -p ls", "echo {a,b}>f",
		`echo "${a[0]}">f`, `echo "${y:-'a b'}"`, `echo ${y:-'a;b'} "${y:-$(echo 'a}$b')}"`} {
		if err := denies.check(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"ls # a\\\nid", "!(ls;id)", "ls \\\r\nid"} {
		if err := (policy{allow: []string{"*"}}).check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("with all operators off, %q: %v", line, err)
		}
		if err := (policy{allow: []string{"*"}, operators: operators()}).check(line); err != nil {
			t.Errorf("without restrictions, %q: %v", line, err)
		}
	}
}

// TestO04_AllowListsPrograms allows three programs.
func TestO04_AllowListsPrograms(t *testing.T) {
	p := policy{allow: []string{"ls", "env", "./build.sh"}, operators: operators()}
	for line, ok := range map[string]bool{
		"ls": true, "/usr/bin/ls -l": true, "./build.sh": true, "ls | ls": true, "env A=1": true,
		"./ls": false, "/tmp/ls": false, "cat x": false, "ls; cat x": false, "sh": false, "./other.sh": false,
		"build.sh": false, "echo hi": false, "cd /": false, "export A=1": false,
	} {
		if err := p.check(line); (err == nil) != ok {
			t.Errorf("%q: %v", line, err)
		}
	}
	none := policy{allow: []string{}, operators: operators()}
	if none.check("ls") == nil {
		t.Error("an empty list allows something")
	}
}

// TestO04_DisabledOperators checks that disabled operators are refused, and that text that only looks like an operator
// is allowed.
func TestO04_DisabledOperators(t *testing.T) {
	linesByOperator := map[string][]string{
		pipeOp:         {"a | b", "a |& b"},
		listOp:         {"a; b", "a;", "a && b", "a || b", "a\nb", "! a"},
		redirectOp:     {"a > b", "a >> b", "a < b", "a 2>&1", "a <<E\nx\nE", "a <<< b", "a &> b"},
		substitutionOp: {"a $(b)", "a `b`", `a "$(b)"`, "a <(b)", "a $b", "a ${b}", "a $((1))", `a "$b"`},
		backgroundOp:   {"a &"},
		controlOp: {"if a; then b; fi", "for i in a; do b; done", "while a; do b; done", "case a in b) c;; esac",
			"f() { a; }", "{ a; }", "(a)", "[[ a ]]", "((1))", "time a"},
		assignmentOp: {"A=b c", "A=b", "export A=b"},
	}
	for name, lines := range linesByOperator {
		for _, line := range lines {
			off := policy{allow: []string{"*"}, operators: slices.DeleteFunc(operators(),
				func(o string) bool { return o == name })}
			if err := off.check(line); reeve.CodeOf(err) != reeve.Denied {
				t.Errorf("without %s, %q: %v", name, line, err)
			}
			if err := (policy{allow: []string{"*"}}).check(line); reeve.CodeOf(err) != reeve.Denied {
				t.Errorf("with all off, %q: %v", line, err)
			}
			if err := (policy{allow: []string{"*"}, operators: operators()}).check(line); err != nil {
				t.Errorf("with all on, %q: %v", line, err)
			}
		}
	}
	for _, line := range []string{"a 'b; c'", `a "b && c"`, `a b\;c`, `a '$(b)'`, "a b # ; c", `a '|' '>' '&'`, `a "x
y"`, "a *.txt"} {
		if err := (policy{allow: []string{"*"}}).check(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"a 'b", "a $(", "if a", "a )", "", "  # nothing"} {
		if err := (policy{allow: []string{"*"}, operators: operators()}).check(line); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%q: %v", line, err)
		}
	}
}
