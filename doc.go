// Package reeve defines the domain of the Reeve agent runtime. Its main types are [Tool], [Call], [Operation], [Agent],
// [Run], [Message], [Approval], [Automation], [Budget] and [Error].
//
// The package also defines the legal transitions between states, for example [State.CheckTransition], and the ids and
// keys that make an operation the same operation after a crash ([Key], [PlanKey], [ItemKey]). It does no I/O. All other
// packages of the module import it, and it imports only small helpers.
//
// Fields with json tags are bodies of the REST API. Their doc tags become descriptions in the OpenAPI document, and
// [SchemaFor] turns the arguments of a tool into a JSON Schema in the same way.
//
// To run Reeve inside a Go program, create tools with [NewTool] and add them to a host of package reeve/host.
package reeve
