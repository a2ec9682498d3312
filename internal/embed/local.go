package embed

import (
	"context"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/embed/uselite"
)

const (
	idleTime   = 5 * time.Minute // how long unused weights stay in memory
	maxWindows = 8               // maximum number of windows that are encoded of one text
	maxBytes   = 8 << 10         // bytes that are read of a text; the windows cover less of most texts
)

// Local encodes texts with the model that is built into this program. The model knows English best. Of a long text it
// encodes the first 1,024 tokens, about 4,000 letters, in windows of equal size. The result is the mean of the windows'
// vectors.
//
// The first Encode loads the weights. They are unloaded after five minutes without an Encode. Local is safe for
// concurrent use. It encodes at most GOMAXPROCS texts at once.
type Local struct {
	files fs.FS
	slots chan struct{} // limits the texts that are encoded at the same time

	mu    sync.Mutex
	model *uselite.Model      // nil when it is not loaded
	free  []*uselite.Encoding // idle encodings of this model
	users int                 // calls of Encode that use the model
	uses  int                 // calls so far
	timer *time.Timer         // unloads the model when it fires
}

// NewLocal returns an encoder with the embedded model. Encode returns ErrMissing if this program has none.
func NewLocal() *Local { return newLocal(assets) }

func newLocal(files fs.FS) *Local {
	return &Local{files: files, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Model implements Encoder.
func (l *Local) Model() string { return uselite.Name }

// Dimensions implements Encoder.
func (l *Local) Dimensions() int { return uselite.Dimensions }

// Encode implements Encoder. An empty text has a vector too.
func (l *Local) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	if len(texts) == 0 {
		return vectors, nil
	}
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	model, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer l.release()
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(texts)); i = next.Add(1) - 1 {
			if vectors[i] = l.encode(ctx, model, texts[i]); vectors[i] == nil {
				return
			}
		}
	}
	var group sync.WaitGroup
	for range min(len(texts), cap(l.slots)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	return vectors, nil
}

// encode returns the vector of one text, or nil if the context is done.
func (l *Local) encode(ctx context.Context, model *uselite.Model, text string) []float32 {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return nil
	}
	e := l.takeEncoding(model)
	defer l.putEncoding(e)
	var sum []float32
	for _, window := range windows(model.Tokens(head(text))) {
		if ctx.Err() != nil {
			return nil
		}
		v := e.Encode(window)
		if sum == nil {
			sum = v
			continue
		}
		for i, x := range v {
			sum[i] += x
		}
	}
	scaleToUnit(sum)
	return sum
}

// head returns the beginning of a text, which is the part that is encoded.
func head(text string) string {
	if len(text) <= maxBytes {
		return text
	}
	end := maxBytes
	for end > maxBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// windows splits tokens into as few parts as possible, of about equal size. It returns at least one part, which is
// empty if there are no tokens.
func windows(tokens []int32) [][]int32 {
	tokens = tokens[:min(len(tokens), maxWindows*uselite.MaxTokens)]
	n := max(1, (len(tokens)+uselite.MaxTokens-1)/uselite.MaxTokens)
	parts := make([][]int32, n)
	for i := range parts {
		parts[i] = tokens[i*len(tokens)/n : (i+1)*len(tokens)/n]
	}
	return parts
}

// acquire loads the model if necessary and returns it. The model stays loaded until release.
func (l *Local) acquire() (*uselite.Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.model == nil {
		m, err := load(l.files)
		if err != nil {
			return nil, err
		}
		l.model = m
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.users++
	l.uses++
	return l.model, nil
}

func load(files fs.FS) (m *uselite.Model, err error) {
	defer reeve.Wrap(&err, "embed.load")
	if err := available(files); err != nil {
		return nil, err
	}
	f, err := files.Open(weightsName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the file was only read, so an error has no effect
	return uselite.Read(f)
}

// release ends one use of the model. When the last use ends, it starts the timer that unloads the model after idleTime.
func (l *Local) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	uses := l.uses
	l.timer = time.AfterFunc(idleTime, func() { l.drop(uses) })
}

// drop unloads the model, unless it was used since the timer started.
func (l *Local) drop(uses int) {
	l.mu.Lock()
	isIdle := l.uses == uses
	if isIdle {
		l.model, l.free, l.timer = nil, nil, nil
	}
	l.mu.Unlock()
	if isIdle {
		debug.FreeOSMemory() // otherwise an idle server would keep the memory for a long time
	}
}

func (l *Local) takeEncoding(model *uselite.Model) *uselite.Encoding {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		e := l.free[n-1]
		l.free = l.free[:n-1]
		return e
	}
	return model.NewEncoding()
}

func (l *Local) putEncoding(e *uselite.Encoding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, e)
}
