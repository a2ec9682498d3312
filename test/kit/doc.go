// Package kit has the helpers that the tests under test/ share.
//
// Tests start a host with [reeve/reevetest] and use its public surfaces: REST, sockets and the Go API. The kit adds
// tools whose effects can be counted ([Counter], [Witness], [BlockingTool]), models that follow a script or record what
// they are asked ([RunScripted], [RecordingModel]), hosts in testing/synctest bubbles ([BubbleHost]), automations
// ([Automation]), and functions that read the ledger, turns, runs and wakes over REST.
//
// A function that cannot do its work fails the test. Helpers that only one subject needs are in helpers_test.go of that
// subject.
package kit
