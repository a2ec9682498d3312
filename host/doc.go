// Package host assembles Reeve: it opens the store, fills the catalogue, and serves the API. It is the only package
// that knows all the others.
//
// A Go program runs Reeve with its own tools like this:
//
//	h, err := host.New(ctx, host.Config{Dir: "data"})
//	err = h.AddTool(tool) // made with reeve.NewTool or by toolgen
//	err = h.Run(ctx, nil)
package host
