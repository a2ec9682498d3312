package files

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"regexp/syntax"
)

// lineMatcher reports whether a line matches. After ctx has ended, the result is meaningless.
type lineMatcher func(ctx context.Context, line []byte) bool

// maxAtomicSteps limits the steps of a match that cannot be cancelled, to some hundredths of a second.
const maxAtomicSteps = 1 << 20

// compileRegexp returns a lineMatcher for a regular expression. A short expression such as (a?){1000} can have a
// hundred thousand states, and a match compares each character of a line with each state. A long line could take hours,
// so a long match stops when ctx ends.
func compileRegexp(query string) (lineMatcher, error) {
	re, err := regexp.Compile(query)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, line []byte) bool {
		if len(line) <= maxAtomicSteps/len(program.Inst) {
			return re.Match(line)
		}
		return re.MatchReader(cancelableReader{ctx, bytes.NewReader(line)})
	}, nil
}

// cancelableReader reads the characters of a line until ctx ends.
type cancelableReader struct {
	ctx  context.Context
	line *bytes.Reader
}

func (p cancelableReader) ReadRune() (rune, int, error) {
	if p.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return p.line.ReadRune()
}
