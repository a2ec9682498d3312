// Package contract holds what Reeve promises in files that other programs can read: tools.yaml, every built-in tool,
// with its JSON Schema; and config.schema.json, the schema of reeve.yaml. The tests beside them fail when a file and
// the running server disagree; go test ./contract -update writes the files anew.
package contract
