package files

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"regexp/syntax"
)

// matcher tells whether a line has what is looked for. What it says when ctx has ended means nothing.
type matcher func(ctx context.Context, line []byte) bool

// mostSteps is how many steps a comparison may take that cannot be stopped: some hundredths of a second.
const mostSteps = 1 << 20

// expression makes a matcher of a regular expression. A short one can have a hundred thousand states ((a?){1000} and so
// on), with each of which every character of a line is compared: a long line takes hours, and ends with whoever waits
// for it.
func expression(query string) (matcher, error) {
	re, err := regexp.Compile(query)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return nil, err
	}
	states, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, line []byte) bool {
		if len(line) <= mostSteps/len(states.Inst) {
			return re.Match(line)
		}
		return re.MatchReader(patient{ctx, bytes.NewReader(line)})
	}, nil
}

// patient gives a line's characters for as long as somebody waits.
type patient struct {
	ctx  context.Context
	line *bytes.Reader
}

func (p patient) ReadRune() (rune, int, error) {
	if p.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return p.line.ReadRune()
}
