// Package contract holds Reeve's contracts as files for other programs: tools.yaml with all built-in tools,
// tools.schema.json with its JSON Schema, and config.schema.json with the schema of reeve.yaml. The tests fail if a
// file differs from the running server. Run go test ./contract -update to regenerate the files.
package contract
