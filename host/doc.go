// Package host assembles Reeve. It opens the data directory and the store, creates the services, registers the built-in
// tools, and serves the HTTP API. It is the only package that knows all others.
//
// The main types are [Config], the settings of an operator, and [Host], an assembled server. The package also contains
// what concerns the server as a whole: the data directory, backup and restore, health checks (doctor), metrics and
// traces.
//
// A Go program runs Reeve with its own tools like this:
//
//	h, err := host.New(ctx, host.Config{Dir: "data"})
//	err = h.AddTool(tool) // made with reeve.NewTool or by toolgen
//	err = h.Run(ctx, nil)
package host
