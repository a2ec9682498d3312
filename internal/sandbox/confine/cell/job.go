// Package cell is the inside of a sandbox: a process that builds a world of its own, gives up every right, and becomes
// a command. It imports next to nothing, so that it starts fast: package confine says what it is for.
package cell

import (
	"embed"
	"encoding/hex"
	"hash/fnv"
)

//go:embed *.go
var files embed.FS

// Version tells programs apart by the text that they were made from: a host starts only one that was made from the same
// as itself.
func Version() string {
	h := fnv.New128a()
	entries, _ := files.ReadDir(".") // never fails, both of them
	for _, e := range entries {
		text, _ := files.ReadFile(e.Name())
		_, _ = h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Job is what the process is told.
type Job struct {
	Args       []string // the program and its arguments
	Env        []string
	Root       string   // the one folder it may write
	At         string   // where it sees Root, in namespaces
	Dir        string   // where it starts, relative to Root
	ReadOnly   []string // what it may read besides the system's own
	Network    bool
	Namespaces bool // whether it was started in them
	Trees      int  // how many files were opened for it, from TreeFile on: Root and ReadOnly
	Kept       bool // the file after those is for the command
	TempDir    string
	Seconds    int64 // of processor time
	Memory     int64
	FileSize   int64
	Temp       int64
	Processes  int
}

// What the process finds open besides stdin, stdout and stderr.
const (
	JobFile    = 3 // what to do
	StatusFile = 4 // where to say what went wrong before the command began
	TreeFile   = 5 // what was opened for it
)

// Program is what a process is told that becomes a program of ours.
type Program struct {
	Args       []string // its command line, beginning with its name
	Folder     string   // a folder that it may read; empty means none
	Opened     bool     // FolderFile is a copy of Folder, to be put into the process's own world
	Libraries  bool     // it cannot do without the system's libraries
	Namespaces bool     // whether it was started in them
}

// What a process that becomes a program finds open besides stdin, stdout and stderr. It has neither JobFile nor
// StatusFile.
const (
	ProgramFile = 3 // the program
	FolderFile  = 4 // its folder, if it has one that was opened for it
)

// Where a program finds its folder: in a world of its own, and where it has none.
const (
	FolderPath = "/folder"
	FolderOpen = "/proc/self/fd/4"
)

// Inside is who a command believes to be.
const Inside = 1000

// KeepFile is where a command finds a file that it was given: a number that few use.
const KeepFile = 198

// Trial is the command of a process that only has to come so far.
const Trial = "reeve-trial"

// Path is where programs are looked for.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
