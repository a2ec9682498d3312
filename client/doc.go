// Package client speaks to a Reeve server over its REST API, in the words of package reeve.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:7410", Token: token})
//	res, err := c.Calls().Call(ctx, "clerk", api.CallRequest{Tool: "file_list", Args: []byte(`{"path":"/"}`)})
//
// The methods are grouped by resource: c.Agents().Create, c.Runs().List, c.Conversations().Follow.
//
// Every error is a *reeve.Error with the code the server gave, so errors.Is works across the wire as it does inside the
// server. [ProblemOf] returns what else the server said, such as the request id.
//
// Every POST carries an Idempotency-Key. When the answer to a call is lost, the error has the code UnknownOutcome and
// its hint names the key: asking again with it does nothing twice.
package client
