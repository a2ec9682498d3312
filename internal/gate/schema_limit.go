package gate

import (
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps and stepsEach limit the validation of a value to maxSteps comparisons plus stepsEach for each part of the
// value. Without a limit, a schema with several references to one subschema multiplies the work at each level.
const maxSteps, stepsEach = 250_000, 10

// stepLimit counts the comparisons during a validation. The library has no limit and accepts no context, but it calls
// the format of each schema that it visits. The count is therefore kept in these formats, which end the validation when
// the limit is reached. A compiled schema has one counter, so validations with it run one at a time.
type stepLimit struct {
	mu   sync.Mutex
	left int
}

var errTooManySteps = errors.New("too many comparisons")

// install adds the counter to all schemas that can be reached from root. A dynamic reference always leads to the schema
// with which it was compiled, because a schema consists of one resource; see checkReferences.
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

// isExceeded runs check on a value and reports whether it exceeded the limit.
func (b *stepLimit) isExceeded(v any, check func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = maxSteps + stepsEach*countAllParts(v)
	check()
	return b.left < 0
}

// countParts counts the direct parts of a value.
func countParts(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// countAllParts counts the parts of a value recursively.
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
