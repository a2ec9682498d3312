package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fileSafePrograms read, copy or print their input and never execute a file. A line that uses only these programs runs
// no file of the workspace.
var fileSafePrograms = []string{
	"[", "basename", "base64", "cat", "cd", "chmod", "cksum", "cmp", "comm", "cp", "cut", "date", "df",
	"diff", "dirname", "du", "echo", "exit", "expand", "expr", "false", "file", "fold", "grep", "head",
	"id", "ln", "ls", "md5sum", "mkdir", "mv", "nl", "paste", "printf", "pwd", "readlink", "realpath",
	"rev", "rm", "rmdir", "seq", "sha1sum", "sha256sum", "sha512sum", "sleep", "stat", "tac", "tail", "tee",
	"test", "touch", "tr", "true", "truncate", "uname", "uniq", "wc", "whoami",
}

// implicitFiles are the files that a program executes or reads as configuration although the command line does not name
// them.
var implicitFiles = map[string][]string{
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

// commandNames are the names in a command line that matter for the files it may run.
type commandNames struct {
	words        []string // possible file names, in the order of the line
	programs     []string // programs that the line runs, without fileSafePrograms
	dynamicWords []string // words whose value is known only when the line runs
	setsPath     bool     // the line sets a variable that decides which programs run
}

// fileToken matches a possible file name in text that is not parsed as shell, such as a quoted script.
var fileToken = regexp.MustCompile("[^\\s;|&<>()$`\"'\\\\{}*?\\[\\]#=:,!]+")

// writeOnlyRedirects are the redirections that write to a file and do not read it.
var writeOnlyRedirects = []syntax.RedirOperator{syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll,
	syntax.AppAll}

// parseNames returns the names in a command line.
func parseNames(line string) (n commandNames, err error) {
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
		case *syntax.Redirect: // a file that is only written is not executed
			if _, ok := literalText(node.Word); ok && slices.Contains(writeOnlyRedirects, node.Op) {
				return false
			}
		case *syntax.Assign:
			n.setsPath = n.setsPath || node.Name != nil && isProtected(node.Name.Value)
		case *syntax.Word:
			if text, ok := literalText(node); ok {
				add(&n.words, text)
			} else {
				add(&n.dynamicWords, line[node.Pos().Offset():node.End().Offset()])
			}
		case *syntax.CallExpr:
			if len(node.Args) == 0 {
				break
			}
			text, ok := literalText(node.Args[0])
			name := path.Base(text)
			known := name == text || slices.Contains(systemFolders, path.Dir(text))
			if !ok || !known || !slices.Contains(fileSafePrograms, name) {
				add(&n.programs, line[node.Args[0].Pos().Offset():node.Args[0].End().Offset()])
			}
		case *syntax.DeclClause, *syntax.FuncDecl, *syntax.CoprocClause, *syntax.ProcSubst:
			// A function may have the name of a file-safe program.
			add(&n.programs, strings.Fields(line[node.Pos().Offset():node.End().Offset()])[0])
		}
		return true
	})
	for _, t := range fileToken.FindAllString(line, -1) {
		add(&n.words, t)
	}
	return n, nil
}

// runsNoFiles reports whether the line runs only programs that execute no files.
func (n commandNames) runsNoFiles() bool { return len(n.programs) == 0 && !n.setsPath }

// candidateNames returns the file names that a word may contain: the word itself, and the value of an option.
func candidateNames(word string) []string {
	list := []string{word}
	if _, value, ok := strings.Cut(word, "="); ok && value != "" {
		list = append(list, value)
	}
	if strings.HasPrefix(word, "-") && len(word) > 2 {
		list = append(list, word[2:])
	}
	return list
}
