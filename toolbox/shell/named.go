package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainPrograms only read, copy or print what they are given: none of them runs a file. A line that uses no other
// program runs nothing that the workspace holds.
var plainPrograms = []string{
	"[", "basename", "base64", "cat", "cd", "chmod", "cksum", "cmp", "comm", "cp", "cut", "date", "df",
	"diff", "dirname", "du", "echo", "exit", "expand", "expr", "false", "file", "fold", "grep", "head",
	"id", "ln", "ls", "md5sum", "mkdir", "mv", "nl", "paste", "printf", "pwd", "readlink", "realpath",
	"rev", "rm", "rmdir", "seq", "sha1sum", "sha256sum", "sha512sum", "sleep", "stat", "tac", "tail", "tee",
	"test", "touch", "tr", "true", "truncate", "uname", "uniq", "wc", "whoami",
}

// obeyed are files that programs run or obey though no command names them.
var obeyed = map[string][]string{
	"make":   {"GNUmakefile", "makefile", "Makefile"},
	"gmake":  {"GNUmakefile", "makefile", "Makefile"},
	"ninja":  {"build.ninja"},
	"just":   {"justfile", "Justfile"},
	"rake":   {"Rakefile"},
	"npm":    {"package.json"},
	"npx":    {"package.json"},
	"yarn":   {"package.json"},
	"pnpm":   {"package.json"},
	"bun":    {"package.json"},
	"cargo":  {"Cargo.toml", "build.rs"},
	"cmake":  {"CMakeLists.txt"},
	"meson":  {"meson.build"},
	"mvn":    {"pom.xml"},
	"gradle": {"build.gradle", "build.gradle.kts"},
	"ant":    {"build.xml"},
	"tox":    {"tox.ini"},
	"nox":    {"noxfile.py"},
	"pytest": {"conftest.py", "pytest.ini", "pyproject.toml"},
	"go":     {"go.mod"},
}

// named is what a line says of the files that it may run.
type named struct {
	words    []string // that may be names of files, in the order of the line
	programs []string // that are run, but for plain ones
	unclear  []string // words whose meaning is known only when the line runs
	setsPath bool     // it sets a variable that decides which programs are run
}

// token is what may be the name of a file in a text that is not read as shell, such as a script in quotes.
var token = regexp.MustCompile("[^\\s;|&<>()$`\"'\\\\{}*?\\[\\]#=:,!]+")

// onlyWrite are the redirections that write to a file and do not read it.
var onlyWrite = []syntax.RedirOperator{syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll}

// namedIn reads a line.
func namedIn(line string) (n named, err error) {
	file, err := parse(line)
	if err != nil {
		return n, err
	}
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Redirect: // what is only written to is not run by this
			if _, ok := literal(node.Word); ok && slices.Contains(onlyWrite, node.Op) {
				return false
			}
		case *syntax.Assign:
			n.setsPath = n.setsPath || node.Name != nil && decides(node.Name.Value)
		case *syntax.Word:
			if text, ok := literal(node); ok {
				add(&n.words, text)
			} else {
				add(&n.unclear, line[node.Pos().Offset():node.End().Offset()])
			}
		case *syntax.CallExpr:
			if len(node.Args) == 0 {
				break
			}
			text, ok := literal(node.Args[0])
			name := path.Base(text)
			known := name == text || slices.Contains(folders, path.Dir(text))
			if !ok || !known || !slices.Contains(plainPrograms, name) {
				add(&n.programs, line[node.Args[0].Pos().Offset():node.Args[0].End().Offset()])
			}
		case *syntax.DeclClause, *syntax.FuncDecl, *syntax.CoprocClause, *syntax.ProcSubst:
			// A function may have a plain program's name.
			add(&n.programs, strings.Fields(line[node.Pos().Offset():node.End().Offset()])[0])
		}
		return true
	})
	for _, t := range token.FindAllString(line, -1) {
		add(&n.words, t)
	}
	return n, nil
}

// plain tells whether a line runs nothing but programs that run no files.
func (n named) plain() bool { return len(n.programs) == 0 && !n.setsPath }

// spellings are the names that a word may hold: itself, or what follows an option.
func spellings(word string) []string {
	list := []string{word}
	if _, value, ok := strings.Cut(word, "="); ok && value != "" {
		list = append(list, value)
	}
	if strings.HasPrefix(word, "-") && len(word) > 2 {
		list = append(list, word[2:])
	}
	return list
}
