// Package guest is the inside of a script's worker: the JavaScript engine, and the loop that runs one script in it. It
// imports as little as it can, so that the worker, built as a program of its own, stays small: two hundred of them are
// alive at once.
package guest

import (
	"embed"
	"time"

	"reeve/internal/sandbox/js/wire"
)

// Grace is how long a worker may take to say that the time is over before it is killed.
const Grace = 500 * time.Millisecond

//go:embed *.go prelude.js
var files embed.FS

// Version tells workers apart by what they were made from: a host takes only one that was made from the same text as
// itself.
func Version() string { return wire.Version("js", files, ".") }
