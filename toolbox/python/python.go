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

// spareTime is for waiting in line, and for the interpreter's very first start.
const spareTime = time.Minute

// Pack is the Python tool.
type Pack struct {
	Pool   *py.Pool
	Limits py.Limits // of every run
	Off    string    // why there is no Python; empty means that there is
}

type codeArgs struct {
	Code string `json:"code" maxLength:"1048576" doc:"Python 3.12. Print what you want to see: only output is given back"`
}

// codeResult has what is short first: what callers are shown is cut at the end.
type codeResult struct {
	ExitCode   int        `json:"exit_code" doc:"0 is success; 1 an exception; 137 that it was ended"`
	Error      *exception `json:"error,omitempty" doc:"What was raised and not caught"`
	TimedOut   bool       `json:"timed_out,omitempty" doc:"It did not end in time, and was killed"`
	Truncated  bool       `json:"truncated,omitempty" doc:"There was more output than is kept"`
	Binary     bool       `json:"binary,omitempty" doc:"The output is not all text; what is not was replaced"`
	StdoutSize int64      `json:"stdout_bytes,omitempty" doc:"How much there was, if not all is here"`
	StderrSize int64      `json:"stderr_bytes,omitempty" doc:"How much there was, if not all is here"`
	DurationMS int64      `json:"duration_ms"`
	Stdout     string     `json:"stdout"`
	Stderr     string     `json:"stderr"`
}

type exception struct {
	Type    string `json:"type" doc:"Its class, as ValueError"`
	Message string `json:"message,omitempty"`
	Line    int    `json:"line,omitempty" doc:"Of the code, counting from 1"`
}

// Tools gives the pack's tool. Where there is no Python it is broken, and says why.
func (p *Pack) Tools() []reeve.Tool {
	limit := p.Limits.Time
	if limit == 0 {
		limit = py.DefaultTime
	}
	t := reeve.MustTool(reeve.Tool{ID: "execute_python", Name: "Execute Python", Category: "code", Pack: "python",
		Effect: reeve.Read, Tier: reeve.ReadOnly, Risk: reeve.LowRisk,
		Description: "Runs Python code and gives back its stdout and stderr. For computing: arithmetic, text, JSON, " +
			"regular expressions. json, re and typing can be imported, nothing else. " +
			"There are no files, no network, no processes, no clock and no randomness, and nothing is kept from one " +
			"call to the next.",
		TimeoutMS: (limit + spareTime).Milliseconds()}, p.execute)
	t.Broken = p.Off
	return []reeve.Tool{t}
}

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
		s, odd := sandbox.Text(b)
		// one that was killed may have been saying a secret
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
		out.Error = &exception{Type: e.Type, Message: words(inv, e.Message, r.Stderr), Line: e.Line}
	}
	return out, nil
}

// words is what an exception says, as it may be shown. Of a long one only the beginning is told; stderr has the rest,
// if the code left that alone.
func words(inv *reeve.Invocation, message string, stderr []byte) string {
	if utf8.RuneCountInString(message) < py.MostWords {
		return message
	}
	all := message
	if i := strings.Index(string(stderr), message); i >= 0 {
		all, _ = sandbox.Text(stderr[i:min(len(stderr), i+len(message)+reeve.RedactWindow)])
	}
	return inv.RedactedHead(all, len(message))
}
