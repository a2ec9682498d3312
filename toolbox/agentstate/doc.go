// Package agentstate is the pack of tools with which an agent reads and changes its own state: its slots, until when it
// sleeps and when it wakes itself. No tool reaches the state of another agent.
package agentstate
