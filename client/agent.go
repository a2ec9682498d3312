package client

import (
	"context"
	"net/http"

	"reeve"
)

// Where an agent is asked for, its id and its name both serve.

// Agents lists the workspace's agents.
func (c *Client) Agents(ctx context.Context, p Page) (reeve.AgentList, error) {
	return get[reeve.AgentList](ctx, c, path("agents"), p.query())
}

// Agent gives one agent.
func (c *Client) Agent(ctx context.Context, agent string) (reeve.Agent, error) {
	return get[reeve.Agent](ctx, c, path("agents", agent), nil)
}

// CreateAgent makes an agent.
func (c *Client) CreateAgent(ctx context.Context, a reeve.AgentRequest) (reeve.Agent, error) {
	return post[reeve.Agent](ctx, c, path("agents"), a)
}

// UpdateAgent changes what the request names, and leaves the rest.
func (c *Client) UpdateAgent(ctx context.Context, agent string, a reeve.AgentRequest) (out reeve.Agent, err error) {
	return out, c.do(ctx, &request{method: http.MethodPatch, path: path("agents", agent), body: a}, &out)
}

// DeleteAgent removes an agent.
func (c *Client) DeleteAgent(ctx context.Context, agent string) error {
	return c.remove(ctx, path("agents", agent))
}

// AgentTools lists the tools an agent has.
func (c *Client) AgentTools(ctx context.Context, agent string) (reeve.ToolList, error) {
	return get[reeve.ToolList](ctx, c, path("agents", agent, "tools"), nil)
}

// Attach gives an agent a tool.
func (c *Client) Attach(ctx context.Context, agent string, a reeve.AttachRequest) (reeve.ToolView, error) {
	return post[reeve.ToolView](ctx, c, path("agents", agent, "tools"), a)
}

// Detach takes a tool from an agent.
func (c *Client) Detach(ctx context.Context, agent, tool string) error {
	return c.remove(ctx, path("agents", agent, "tools", tool))
}

// AgentState gives what an agent remembers of itself.
func (c *Client) AgentState(ctx context.Context, agent string) (reeve.AgentState, error) {
	return get[reeve.AgentState](ctx, c, path("agents", agent, "state"), nil)
}

// PutAgentState replaces an agent's slots, if nobody has changed them since the revision that the request names: an error with
// the code Stale says that somebody has, and nothing is changed.
func (c *Client) PutAgentState(ctx context.Context, agent string, r reeve.AgentStateRequest) (reeve.AgentState, error) {
	return put[reeve.AgentState](ctx, c, path("agents", agent, "state"), r)
}

// AgentRuntime tells how an agent is on the server's node.
func (c *Client) AgentRuntime(ctx context.Context, agent string) (reeve.AgentRuntime, error) {
	return get[reeve.AgentRuntime](ctx, c, path("agents", agent, "runtime"), nil)
}
