package host

import (
	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/js"
	"reeve/toolbox/web/document"
)

// ServeWorker turns this process into a sandbox worker if a Host has started it as one. In that case it does not
// return. Scripts, commands and conversions of web pages run in worker processes, which are the same program started
// again. A program that embeds Reeve calls ServeWorker first in main. Without it they do not work.
func ServeWorker() {
	confine.Serve()
	js.ServeWorker()
	document.ServeWorker()
}
