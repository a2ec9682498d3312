package automation

import (
	"errors"
	"slices"

	"reeve"
	"reeve/internal/sandbox/js"
)

// callFailure is a change that failed within an item.
type callFailure struct {
	tool string
	err  error
}

// asItemError returns the error of an item whose script caught the failure and continued.
func (f callFailure) asItemError() *reeve.Error {
	e := reeve.AsError(f.err)
	return reeve.Errorf(e.Code, "%s failed, and the script continued without ctx.ignore(error): %s", f.tool, e.Message)
}

// ignore implements ctx.ignore: the failure of a change does not make the item failed. An error that is not the error
// of a change needs no permission.
func (w *execution) ignore(o *openItem, args []js.Arg) error {
	if len(args) != 1 || args[0].Err == nil && (args[0].JSON == nil || string(args[0].JSON) == "null") {
		return reeve.Errorf(reeve.Validation, "ctx.ignore requires the caught error").
			Hintf("write: catch (error) { await ctx.ignore(error) }")
	}
	if o == nil || args[0].Err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o.failures = slices.DeleteFunc(o.failures, func(f callFailure) bool { return isSameError(f.err, args[0].Err) })
	return nil
}

// isSameError reports whether two errors stem from the same failure. errors.Is is too weak: it takes two errors with
// the same code for equal.
func isSameError(a, b error) bool {
	x, isTyped := errors.AsType[*reeve.Error](a)
	y, _ := errors.AsType[*reeve.Error](b)
	if isTyped {
		return x == y
	}
	return errors.Is(a, b)
}
