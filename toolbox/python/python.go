package python

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/sandbox"
	"reeve/internal/sandbox/py"
)

// spareTime is added to the timeout for waiting in the queue and for the first start of the interpreter.
const spareTime = time.Minute

// Pack is the pack of execute_python.
type Pack struct {
	Pool   *py.Pool
	Limits py.Limits // limits of every run
	Off    string    // why Python is not available; empty if it is
}

type codeArgs struct {
	Code string `json:"code" maxLength:"1048576" doc:"Python 3.12 source. Print the result: only output is returned"`
}

// codeResult lists short fields first, because a long result is cut at its end.
type codeResult struct {
	ExitCode   int        `json:"exit_code" doc:"0 success, 1 uncaught exception, 137 killed"`
	Error      *exception `json:"error,omitempty" doc:"The uncaught exception"`
	TimedOut   bool       `json:"timed_out,omitempty" doc:"The code exceeded the time limit"`
	Truncated  bool       `json:"truncated,omitempty" doc:"The output was longer than is kept"`
	Binary     bool       `json:"binary,omitempty" doc:"Bytes that are not text were replaced"`
	StdoutSize int64      `json:"stdout_bytes,omitempty" doc:"Full size, if truncated"`
	StderrSize int64      `json:"stderr_bytes,omitempty" doc:"Full size, if truncated"`
	DurationMS int64      `json:"duration_ms"`
	Stdout     string     `json:"stdout"`
	Stderr     string     `json:"stderr"`
}

type exception struct {
	Type    string `json:"type" doc:"Class, such as ValueError"`
	Message string `json:"message,omitempty"`
	Line    int    `json:"line,omitempty" doc:"Line of the code, from 1"`
}

// Tools returns execute_python. Without an interpreter the tool is marked as broken, with the reason.
func (p *Pack) Tools() []reeve.Tool {
	limit := p.Limits.Time
	if limit == 0 {
		limit = py.DefaultTime
	}
	t := reeve.MustTool(reeve.Tool{ID: "execute_python", Name: "Execute Python", Category: "code", Pack: "python",
		Effect: reeve.Read, Tier: reeve.ReadOnly, Risk: reeve.LowRisk,
		Description: "Run Python code and return its stdout and stderr. Use it to compute: arithmetic, text, JSON, " +
			"regular expressions. Only json, re and typing can be imported. There are no files, network, processes, " +
			"clock or random numbers. Each call starts fresh.",
		TimeoutMS: (limit + spareTime).Milliseconds()}, p.execute)
	t.Broken = p.Off
	return []reeve.Tool{t}
}

// execute runs the code and redacts its output.
func (p *Pack) execute(ctx context.Context, in codeArgs) (codeResult, error) {
	inv, l := reeve.InvocationFrom(ctx), p.Limits
	most := cmp.Or(l.Output, py.DefaultOutput)
	l.Output = most + reeve.RedactWindow
	r, err := p.Pool.Run(ctx, py.Code{Owner: inv.Workspace, Source: in.Code}, l)
	if err != nil {
		return codeResult{}, err
	}
	out := codeResult{ExitCode: r.ExitCode, TimedOut: r.TimedOut, Truncated: max(r.StdoutSize, r.StderrSize) > most,
		DurationMS: r.Duration.Milliseconds()}
	text := func(b []byte, size int64) string {
		s, odd := sandbox.DecodeText(b)
		// The output of a killed process may end within a secret.
		if out.Binary = out.Binary || odd; size > most || r.TimedOut {
			s = inv.RedactedHead(s, int(most))
		}
		return s
	}
	out.Stdout, out.Stderr = text(r.Stdout, r.StdoutSize), text(r.Stderr, r.StderrSize)
	if out.Truncated {
		out.StdoutSize, out.StderrSize = r.StdoutSize, r.StderrSize
	}
	if e := r.Exception; e != nil {
		out.Error = &exception{Type: e.Type, Message: redactMessage(inv, e.Message, r.Stderr), Line: e.Line}
	}
	return out, nil
}

// redactMessage returns an exception's message without secrets. The sandbox reports only the beginning of a long
// message, so redactMessage looks for the rest in stderr.
func redactMessage(inv *reeve.Invocation, message string, stderr []byte) string {
	if utf8.RuneCountInString(message) < py.MaxExceptionMessage {
		return message
	}
	all := message
	if i := strings.Index(string(stderr), message); i >= 0 {
		all, _ = sandbox.DecodeText(stderr[i:min(len(stderr), i+len(message)+reeve.RedactWindow)])
	}
	return inv.RedactedHead(all, len(message))
}
