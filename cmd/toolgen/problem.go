package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"slices"
)

// problems collects all problems of a package, so that one run reports all of them.
type problems struct {
	fset *token.FileSet
	list []problem
}

type problem struct {
	at   token.Position
	text string
}

func (p *problems) add(pos token.Pos, format string, args ...any) {
	p.list = append(p.list, problem{p.fset.Position(pos), fmt.Sprintf(format, args...)})
}

// err returns the problems in source order as one error, or nil.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Line, b.at.Line),
			cmp.Compare(a.at.Column, b.at.Column))
	})
	var errs []error
	for _, p := range slices.Compact(p.list) {
		errs = append(errs, fmt.Errorf("%s: %s", p.at, p.text))
	}
	return errors.Join(errs...)
}
