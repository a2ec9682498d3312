// Package cell runs inside a sandbox process of package confine. [Exec] restricts the process and then executes either
// a command (described by [Job]) or a worker program (described by [Program]):
//
//  1. With namespaces, it replaces the file system by a small one (root_linux.go).
//  2. It drops all capabilities.
//  3. It restricts file access by Landlock (landlock_linux.go).
//  4. It sets resource limits and installs the seccomp filter (filter_linux.go).
//
// The package imports very little, so that the sandbox process starts fast.
package cell

import (
	"embed"
	"encoding/hex"
	"hash/fnv"
)

//go:embed *.go
var files embed.FS

// Version returns the version of the sandbox program, a hash of this package's sources. A host starts only programs of
// its own version.
func Version() string {
	h := fnv.New128a()
	entries, _ := files.ReadDir(".") // reading embedded files does not fail
	for _, e := range entries {
		text, _ := files.ReadFile(e.Name())
		_, _ = h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Job is a command to execute, as the host sends it to the sandbox process. Package confine describes the fields.
type Job struct {
	Args       []string // the program and its arguments
	Env        []string
	Root       string   // the one folder that the command may write
	At         string   // path of Root inside namespaces
	Dir        string   // working directory, relative to Root
	ReadOnly   []string // paths that it may read, besides the system's own
	Network    bool
	Namespaces bool // the process was started in namespaces
	Trees      int  // number of open files from TreeFile on: Root and each of ReadOnly, or 0
	Kept       bool // the next open file is passed to the command as KeepFile
	TempDir    string
	Seconds    int64 // processor time
	Memory     int64
	FileSize   int64
	Temp       int64
	Processes  int
}

// Descriptors that a process with a Job inherits, besides stdin, stdout and stderr.
const (
	JobFile    = 3 // the Job as JSON
	StatusFile = 4 // receives the error if the command cannot be executed
	TreeFile   = 5 // first of the files counted by Job.Trees
)

// Program is a worker program to execute, as the host passes it to the sandbox process by its command line.
type Program struct {
	Args       []string // command line, beginning with the program's name
	Folder     string   // folder that it may read; empty means none
	Opened     bool     // FolderFile is a copy of Folder, to be mounted at FolderPath
	Libraries  bool     // it is dynamically linked and needs the system's libraries
	Namespaces bool     // the process was started in namespaces
}

// Descriptors that a process with a Program inherits, besides stdin, stdout and stderr.
const (
	ProgramFile = 3 // the program
	FolderFile  = 4 // its folder, if the host opened it
)

// Paths at which a program sees its folder.
const (
	FolderPath = "/folder"         // with namespaces
	FolderOpen = "/proc/self/fd/4" // without namespaces: FolderFile
)

// InsideID is the user and group id of a command inside its user namespace.
const InsideID = 1000

// KeepFile is the descriptor at which a command finds the file of Command.Keep. Programs rarely use this number.
const KeepFile = 198

// Trial is the name of a command that ends successfully once the sandbox has been set up.
const Trial = "reeve-trial"

// Path is the list of folders in which programs are looked up.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
