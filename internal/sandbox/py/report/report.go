// Package report is what a Python worker tells its host when a run is over.
package report

// Ending is a worker's last word about a run.
type Ending struct {
	Exit   int        `json:"exit"`
	Error  *Exception `json:"error,omitempty"`
	Stdout int64      `json:"stdout"` // how much there was, in bytes
	Stderr int64      `json:"stderr"`
	Broken bool       `json:"broken,omitempty"` // the interpreter itself failed, and the worker ends
}

// Exception is what code failed with.
type Exception struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Line    int    `json:"line"` // 0 means not known
}

// How the folder of an interpreter is laid out.
const (
	FileName = "python" // the frozen interpreter
	CodeName = "code"   // the directory of its machine code
)

// Translate is the first argument of a process that makes the machine code, and runs nobody's: then come the file of
// the frozen interpreter, its checksum, and the directory.
const Translate = "translate"
