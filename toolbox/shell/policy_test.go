package shell

import (
	"slices"
	"testing"

	"reeve"
)

// TestO04_DenyHoldsWhateverTheSpelling denies one program to an agent that may run all others.
func TestO04_DenyHoldsWhateverTheSpelling(t *testing.T) {
	p := policy{allow: []string{"*"}, deny: []string{"rm"}, operators: operators()}
	for _, line := range []string{
		"rm x", "/bin/rm x", "/usr/bin/../bin/rm x", "ls && rm x", "ls; rm x", "ls\nrm x", "ls | rm x", "ls || rm x", "rm x &", "(rm x)", "{ rm x; }", "! rm x",
		`\rm x`, `r\m x`, `r""m x`, `'rm' x`, `"rm" x`, `r''m`, "$(echo rm) x", "`echo rm` x", "a=rm; $a x", "${a:-rm} x", "echo $(rm x)", "echo `rm x`", `echo "$(rm x)"`, "cat <(rm x)",
		"echo ${a:-$(rm x)}", "echo $((a[$(rm x)]))", "if rm x; then :; fi", "if :; then rm x; fi", "for i in 1; do rm x; done", "while rm x; do :; done", "case x in x) rm x;; esac",
		"f() { rm x; }; f", "rm() { ls; }; rm", "eval rm x", "eval 'r''m x'", "sh -c 'rm x'", "bash -c 'rm x'", "command rm x", "exec rm x", "env rm x", "env A=1 rm x", "builtin command rm x",
		"xargs rm < list", "find . -exec rm {} +", "nohup rm x", "timeout 5 rm x", "nice rm x", "busybox rm x", "time rm x", ". ./script", "source script", "alias ls=rm; ls", "trap 'rm x' EXIT",
		"hash -p /bin/rm ls; ls", "PATH=.:$PATH ls", "export PATH=.", "declare PATH=.", "LD_PRELOAD=./x.so ls", "A=1 rm x", "./rm", "./script", "r?", "/bin/r?", "{rm,x}", "~/rm", "python3 -c 1",
		`printf -v 'a[$(rm x)]' x`, `test -v 'a[$(rm x)]'`, `x="a[\$(rm x)]"; echo $((x))`, `let "a[\$(rm x)]=1"`, "unset 'a[`rm x`]'",
		"cat <<E | sh\nrm x\nE", "cat <<E\n$(rm x)\nE", "coproc rm x", "$'rm' x", `$"rm" x`,
	} {
		if err := p.check(line); reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"ls", "/bin/ls", "ls rm", "echo 'rm x'", "grep rm file | sort > out", "git rm x", "ls && echo rm", "f() { ls; }; f", "A=1 ls", "cat <<'E'\nrm x\nE", "echo $HOME # rm"} {
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
			t.Errorf("nothing is denied, but %q: %v", line, err)
		}
	}
}

// TestO04_AllowNamesAllThereIs allows three programs.
func TestO04_AllowNamesAllThereIs(t *testing.T) {
	p := policy{allow: []string{"ls", "env", "./build.sh"}, operators: operators()}
	for line, ok := range map[string]bool{
		"ls": true, "/usr/bin/ls -l": true, "./build.sh": true, "ls | ls": true, "env A=1": true,
		"./ls": false, "/tmp/ls": false, "cat x": false, "ls; cat x": false, "sh": false, "./other.sh": false, "build.sh": false, "echo hi": false, "cd /": false, "export A=1": false,
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

// TestO04_OperatorsOffIsReadOffTheTree switches all operators off: what is an operator is refused, what only looks like one is not.
func TestO04_OperatorsOffIsReadOffTheTree(t *testing.T) {
	by := map[string][]string{
		pipes:        {"a | b", "a |& b"},
		lists:        {"a; b", "a;", "a && b", "a || b", "a\nb", "! a"},
		redirections: {"a > b", "a >> b", "a < b", "a 2>&1", "a <<E\nx\nE", "a <<< b", "a &> b"},
		substitution: {"a $(b)", "a `b`", `a "$(b)"`, "a <(b)", "a $b", "a ${b}", "a $((1))", `a "$b"`},
		background:   {"a &"},
		control:      {"if a; then b; fi", "for i in a; do b; done", "while a; do b; done", "case a in b) c;; esac", "f() { a; }", "{ a; }", "(a)", "[[ a ]]", "((1))", "time a"},
		assignment:   {"A=b c", "A=b", "export A=b"},
	}
	for name, lines := range by {
		for _, line := range lines {
			off := policy{allow: []string{"*"}, operators: slices.DeleteFunc(operators(), func(o string) bool { return o == name })}
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
