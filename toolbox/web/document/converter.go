package document

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
)

// Kind is the kind of a source.
type Kind string

// The kinds of source.
const (
	HTML Kind = "html"
	PDF  Kind = "pdf"
)

// Source is a document to convert.
type Source struct {
	Kind    Kind   `json:"kind"`
	Address string `json:"address,omitempty"` // of the page, to resolve its links
	Body    []byte `json:"body"`              // HTML in UTF-8, or a PDF file
}

// Converter converts documents in worker processes. A document can be made so that its conversion takes hours or all
// memory, so each conversion has its own process, a time limit and a memory limit. It is safe for concurrent use.
type Converter struct {
	confine child.Confine
	free    chan struct{} // one entry for each process that may start
}

const (
	convertTime   = 10 * time.Second
	convertMemory = 512 << 20
	maxAtOnce     = 4        // processes
	maxResult     = 48 << 20 // bytes of JSON that a process returns
)

// NewConverter returns a converter. confine restricts its processes further; it may be nil.
func NewConverter(confine child.Confine) *Converter {
	return &Converter{confine: confine, free: make(chan struct{}, maxAtOnce)}
}

// Convert converts a document. It fails with TOOL_FAILED if the document is damaged or its conversion takes too much
// time or memory.
func (c *Converter) Convert(ctx context.Context, s Source) (d Document, err error) {
	if !servesWorkers.Load() {
		return d, reeve.Errorf(reeve.Unsupported,
			"this program cannot convert documents: its main function does not call host.ServeWorker").
			Hintf("call host.ServeWorker() at the start of main")
	}
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return d, ctx.Err()
	}
	path, err := child.ExecutablePath()
	if err != nil {
		return d, reeve.Errorf(reeve.Unavailable, "cannot find the file of this program: %w", err)
	}
	p, err := child.Start(child.Command{Binary: path, Args: []string{"reeve-document-worker"},
		Env: []string{workerVariable + "=1", "GOMAXPROCS=1", "TZ=UTC"}, Confine: c.confine})
	if err != nil {
		return d, reeve.Errorf(reeve.Unavailable, "cannot start a process that converts documents: %w", err)
	}
	defer p.End()
	defer context.AfterFunc(ctx, p.Kill)()
	defer time.AfterFunc(convertTime, p.Kill).Stop()
	var a answer
	if err = json.NewEncoder(p.In).Encode(s); err == nil {
		err = json.NewDecoder(io.LimitReader(p.Read, maxResult)).Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return d, ctx.Err()
	case err != nil:
		return d, reeve.Errorf(reeve.ToolFailed, "the document takes too much time or memory to convert")
	case a.Problem != "":
		return d, reeve.Errorf(reeve.ToolFailed, "the document is damaged: %s", a.Problem)
	}
	return a.Document, nil
}

// answer is what a worker process returns.
type answer struct {
	Document Document `json:"document"`
	Problem  string   `json:"problem,omitempty"`
}

// workerVariable is the environment variable that a converter sets in its processes.
const workerVariable = "REEVE_DOCUMENT_WORKER"

// servesWorkers is set once this program has called ServeWorker.
var servesWorkers atomic.Bool

// ServeWorker runs this process as a worker and exits, if a [Converter] started it as one. Otherwise it returns at
// once.
func ServeWorker() {
	servesWorkers.Store(true)
	if os.Getenv(workerVariable) != "" {
		serve(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// convert converts a document in this process.
func convert(s Source) (a answer) {
	if s.Kind == PDF {
		return readPDF(s.Body)
	}
	address, err := url.Parse(s.Address)
	if err != nil {
		address = &url.URL{}
	}
	return answer{Document: convertHTML(string(s.Body), address)}
}
