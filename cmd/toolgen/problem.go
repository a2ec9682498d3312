package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"slices"
)

// problems collects all that is wrong, because somebody who mends a package wants the whole list at once.
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

// err gives the problems in the order of the source, or nil.
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
