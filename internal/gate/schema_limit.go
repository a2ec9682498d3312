package gate

import (
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps and stepsEach bound how much a value is compared with: so much, and so much for each of its parts. Where
// several ways lead to one part of a schema, each level of the schema, or of the value, can ask for a multiple of what
// the one before it does.
const maxSteps, stepsEach = 250_000, 10

// stepLimit counts what a value is compared with. The library that checks has no limit and takes no context; but wherever
// it goes further down it first asks whether the value has the schema's format, so there the count is kept, and there a
// check without end is ended. A compiled schema has one count, so values take turns.
type stepLimit struct {
	mu   sync.Mutex
	left int
}

var errTooManySteps = errors.New("too much to compare")

// install has the count kept wherever a schema leads. A dynamic reference leads to no other place than the one it was
// compiled with:
// that takes several resources, and a schema is one (see onlyFragments).
func (b *stepLimit) install(root *jsonschema.Schema) {
	c := cycleFinder{terminating: map[*jsonschema.Schema]bool{}, anchors: map[string]int{}}
	c.collect(root)
	for _, s := range c.all {
		must, either := schemasOfSameValue(s, nil)
		ways := 1 + len(must) + len(s.PatternProperties)
		for _, list := range either {
			ways += len(list)
		}
		format := jsonschema.Format{Validate: func(any) error { return nil }}
		if s.Format != nil {
			format = *s.Format
		}
		s.Format = &jsonschema.Format{Name: format.Name, Validate: func(v any) error {
			if b.left -= ways + countParts(v); b.left < 0 {
				return errTooManySteps
			}
			return format.Validate(v)
		}}
	}
}

// isExceeded tells whether checking a value takes more than it may.
func (b *stepLimit) isExceeded(v any, check func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = maxSteps + stepsEach*countAllParts(v)
	check()
	return b.left < 0
}

// countParts is how many parts a value has, and size how many with theirs.
func countParts(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

func countAllParts(v any) int {
	n := countParts(v)
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			n += countAllParts(part)
		}
	case []any:
		for _, part := range v {
			n += countAllParts(part)
		}
	}
	return n
}
