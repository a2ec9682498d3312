// Package report holds what a Python worker and its host share, besides the frames of package wire: the message that
// ends a run, and the layout of the interpreter's folder. It imports nothing, because the host must not link the
// engine.
package report

// Ending is the message by which a worker ends a run.
type Ending struct {
	Exit   int        `json:"exit"` // exit code
	Error  *Exception `json:"error,omitempty"`
	Stdout int64      `json:"stdout"` // bytes written, including those not sent
	Stderr int64      `json:"stderr"`
	Broken bool       `json:"broken,omitempty"` // the interpreter itself failed, and the worker ends
}

// Exception is a Python exception that the code did not catch.
type Exception struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Line    int    `json:"line"` // 0 means unknown
}

// Names in the folder of an interpreter.
const (
	FileName = "python" // the frozen interpreter
	CodeName = "code"   // the directory of its machine code
)

// Translate is the first argument of a worker process that only compiles the interpreter to machine code. The other
// arguments are the file of the frozen interpreter, its checksum, and the directory for the machine code.
const Translate = "translate"
