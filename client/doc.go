// Package client calls the REST API of a Reeve server with the types of packages reeve and api.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:7410", Token: token})
//	res, err := c.Calls().Call(ctx, "clerk", api.CallRequest{Tool: "file_list", Args: []byte(`{"path":"/"}`)})
//
// The methods are grouped by resource: c.Agents().Create, c.Runs().List, c.Conversations().Follow.
//
// Every error is a *reeve.Error with the code that the server sent, so errors.Is works as inside the server.
// [ProblemOf] returns the rest of the server's problem, such as the request id.
//
// Every POST has an Idempotency-Key. When the response to a call is lost, the error has the code UnknownOutcome, and
// its hint names the key. Repeating the call with this key does not execute it twice.
package client
