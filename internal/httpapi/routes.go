package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// routes is the contents page of the API.
func (s *server) routes(api huma.API) {
	const (
		get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
		viewer, member, owner      = reeve.Viewer, reeve.Member, reeve.Owner
		made, gone                 = http.StatusCreated, http.StatusNoContent
	)
	handle(api, route{get, "/api/tools", "listTools", "List the catalogue", "tools", viewer, 0}, s.listTools)
	handle(api, route{post, "/api/tools", "createTool", "Define a tool", "tools", member, made}, s.createTool)
	handle(api, route{get, "/api/tools/{id}", "getTool", "Get a tool", "tools", viewer, 0}, s.getTool)
	handle(api, route{put, "/api/tools/{id}", "updateTool", "Change a defined tool", "tools", member, 0}, s.updateTool)
	handle(api, route{del, "/api/tools/{id}", "deleteTool", "Remove a defined tool", "tools", member, gone}, s.deleteTool)

	handle(api, route{get, "/api/agents", "listAgents", "List agents", "agents", viewer, 0}, s.listAgents)
	handle(api, route{post, "/api/agents", "createAgent", "Make an agent", "agents", member, made}, s.createAgent)
	handle(api, route{get, "/api/agents/{agentId}", "getAgent", "Get an agent", "agents", viewer, 0}, s.getAgent)
	handle(api, route{patch, "/api/agents/{agentId}", "updateAgent", "Change an agent", "agents", member, 0}, s.updateAgent)
	handle(api, route{del, "/api/agents/{agentId}", "deleteAgent", "Remove an agent", "agents", member, gone}, s.deleteAgent)
	handle(api, route{get, "/api/agents/{agentId}/tools", "listAgentTools", "List an agent's tools", "agents", viewer, 0}, s.listAgentTools)
	handle(api, route{post, "/api/agents/{agentId}/tools", "attachTool", "Give an agent a tool", "agents", member, made}, s.attachTool)
	handle(api, route{del, "/api/agents/{agentId}/tools/{toolId}", "detachTool", "Take a tool from an agent", "agents", member, gone}, s.detachTool)
	handle(api, route{get, "/api/agents/{agentId}/state", "getAgentState", "What an agent remembers of itself", "agents", viewer, 0}, s.getAgentState)
	handle(api, route{put, "/api/agents/{agentId}/state", "putAgentState", "Replace an agent's slots", "agents", member, 0}, s.putAgentState)
	handle(api, route{get, "/api/agents/{agentId}/runtime", "getAgentRuntime", "How an agent is on this node", "agents", viewer, 0}, s.getAgentRuntime)
	handle(api, route{get, "/api/agents/{agentId}/messages", "listMessages", "Read a thread", "agents", viewer, 0}, s.listMessages)

	handle(api, route{post, "/api/agents/{agentId}/calls", "call", "Call a tool", "calls", member, 0}, s.call)
	handle(api, route{post, "/api/agents/{agentId}/calls/batch", "callAll", "Call tools as one model response does", "calls", member, 0}, s.callAll)
	handle(api, route{post, "/api/agents/{agentId}/calls/explain", "judge", "Explain a call without making it", "calls", viewer, 0}, s.judge)
	handle(api, route{get, "/api/calls/{id}/explanation", "explain", "Explain a past call", "calls", viewer, 0}, s.explain)
	handle(api, route{get, "/api/outputs/{hash}", "readOutput", "Read a kept output", "calls", viewer, 0}, s.readOutput)

	handle(api, route{get, "/api/operations", "listOperations", "List operations", "operations", viewer, 0}, s.listOperations)
	handle(api, route{get, "/api/operations/{id}", "getOperation", "Get an operation", "operations", viewer, 0}, s.getOperation)
	handle(api, route{post, "/api/operations/{id}/resolve", "resolveOperation", "Say what became of an operation", "operations", member, 0}, s.resolve)
	handle(api, route{post, "/api/operations/{id}/result", "deliverResult", "Bring the outcome of an operation", "operations", member, 0}, s.deliver)
	handle(api, route{post, "/api/operations/{id}/undo", "undoOperation", "Take an operation back", "operations", member, 0}, s.undo)

	handle(api, route{get, "/api/inbox", "inbox", "Everything that waits for a person", "approvals", viewer, 0}, s.inbox)
	handle(api, route{get, "/api/approvals", "listApprovals", "List approvals", "approvals", viewer, 0}, s.listApprovals)
	handle(api, route{get, "/api/approvals/{id}", "getApproval", "Get an approval", "approvals", viewer, 0}, s.getApproval)
	handle(api, route{post, "/api/approvals/{id}/decision", "decide", "Answer an approval", "approvals", member, 0}, s.decide)
	handle(api, route{get, "/api/proposals", "listProposals", "List proposals", "proposals", viewer, 0}, s.listProposals)
	handle(api, route{get, "/api/proposals/{id}", "getProposal", "Get a proposal", "proposals", viewer, 0}, s.getProposal)
	handle(api, route{post, "/api/proposals/{id}/accept", "acceptProposal", "Let a proposed call be applied", "proposals", member, 0}, s.acceptProposal)
	handle(api, route{post, "/api/proposals/{id}/reject", "rejectProposal", "Refuse a proposed call for good", "proposals", member, 0}, s.rejectProposal)
	handle(api, route{post, "/api/proposals/{id}/reopen", "reopenProposal", "Let a rejected proposal be decided on again", "proposals", member, 0}, s.reopenProposal)
	handle(api, route{get, "/api/change-sets", "listChangeSets", "List change sets", "proposals", viewer, 0}, s.listChangeSets)
	handle(api, route{get, "/api/change-sets/{id}", "getChangeSet", "Get a change set and its items", "proposals", viewer, 0}, s.getChangeSet)
	handle(api, route{post, "/api/change-sets/{id}/accept", "acceptChangeSet", "Accept several items of a change set, or all", "proposals", member, 0}, s.acceptChangeSet)
	handle(api, route{post, "/api/change-sets/{id}/reject", "rejectChangeSet", "Reject several items of a change set, or all", "proposals", member, 0}, s.rejectChangeSet)

	handle(api, route{get, "/api/runs", "listRuns", "List runs", "runs", viewer, 0}, s.listRuns)
	handle(api, route{get, "/api/runs/{id}", "getRun", "Get a run", "runs", viewer, 0}, s.getRun)
	handle(api, route{get, "/api/runs/{id}/wakes", "listRunWakes", "Why a run ran: the wakes it serves", "runs", viewer, 0}, s.listRunWakes)
	handle(api, route{post, "/api/runs/{id}/cancel", "cancelRun", "End a run", "runs", member, 0}, s.cancelRun)
	handle(api, route{post, "/api/agents/{agentId}/wake", "wakeAgent", "Wake an agent", "runs", member, made}, s.wakeAgent)
	handle(api, route{get, "/api/agents/{agentId}/wakes", "listAgentWakes", "List an agent's wakes", "runs", viewer, 0}, s.listAgentWakes)
	handle(api, route{get, "/api/wakes/{runKey}", "getWake", "Get a wake by its run key", "runs", viewer, 0}, s.getWake)
	handle(api, route{get, "/api/agents/{agentId}/subscriptions", "listSubscriptions", "List what an agent watches", "runs", viewer, 0}, s.listSubscriptions)
	handle(api, route{post, "/api/agents/{agentId}/subscriptions", "createSubscription", "Let an agent watch something", "runs", member, made}, s.createSubscription)
	handle(api, route{del, "/api/subscriptions/{id}", "deleteSubscription", "Stop watching", "runs", member, gone}, s.deleteSubscription)

	handle(api, route{get, "/api/schedules", "listSchedules", "List schedules", "schedules", viewer, 0}, s.listSchedules)
	handle(api, route{post, "/api/schedules", "createSchedule", "Make a schedule", "schedules", member, made}, s.createSchedule)
	handle(api, route{get, "/api/schedules/{id}", "getSchedule", "Get a schedule and its next firings", "schedules", viewer, 0}, s.getSchedule)
	handle(api, route{patch, "/api/schedules/{id}", "updateSchedule", "Change, pause or resume a schedule", "schedules", member, 0}, s.updateSchedule)
	handle(api, route{del, "/api/schedules/{id}", "deleteSchedule", "Remove a schedule", "schedules", member, gone}, s.deleteSchedule)
	handle(api, route{get, "/api/schedules/{id}/runs", "listScheduleRuns", "List a schedule's runs", "schedules", viewer, 0}, s.listScheduleRuns)
	handle(api, route{get, "/api/notes", "listNotes", "List what agents remember of you", "conversations", viewer, 0}, s.listNotes)
	handle(api, route{post, "/api/notes", "createNote", "Have an agent remember something of you", "conversations", member, made}, s.createNote)
	handle(api, route{del, "/api/notes/{id}", "deleteNote", "Have an agent forget a note", "conversations", member, gone}, s.deleteNote)
	handle(api, route{get, "/api/notifications", "listNotifications", "List your notifications", "schedules", viewer, 0}, s.listNotifications)
	handle(api, route{get, "/api/notifications/{id}", "getNotification", "Get a notification", "schedules", viewer, 0}, s.getNotification)
	handle(api, route{post, "/api/notifications/{id}/read", "readNotification", "Note that you have seen it", "schedules", member, gone}, s.readNotification)

	handle(api, route{post, "/api/stop", "stop", "Turn the kill switch on", "control", member, gone}, s.stop)
	handle(api, route{post, "/api/resume", "resume", "Let a held server go on, or turn the kill switch off", "control", member, gone}, s.resume)
	handle(api, route{get, "/api/hold", "hold", "What a held server would go on with", "control", viewer, 0}, s.held)
	handle(api, route{get, "/api/profiles", "listProfiles", "List capability profiles", "control", viewer, 0}, s.listProfiles)
	handle(api, route{put, "/api/profiles/{kind}", "putProfile", "Set what agents of a kind may do", "control", owner, 0}, s.putProfile)
	handle(api, route{get, "/api/budgets", "listBudgets", "List budgets", "control", viewer, 0}, s.listBudgets)
	handle(api, route{put, "/api/budgets/{subject}", "putBudget", "Set a budget", "control", owner, 0}, s.putBudget)
	handle(api, route{del, "/api/budgets/{subject}", "deleteBudget", "Remove a budget", "control", owner, gone}, s.deleteBudget)

	handle(api, route{get, "/api/tokens", "listTokens", "List bearer tokens", "access", owner, 0}, s.listTokens)
	handle(api, route{post, "/api/tokens", "createToken", "Make a bearer token", "access", owner, made}, s.createToken)
	handle(api, route{del, "/api/tokens/{id}", "revokeToken", "Revoke a bearer token", "access", owner, gone}, s.revokeToken)
	handle(api, route{get, "/api/secrets", "listSecrets", "List the names of secrets", "access", owner, 0}, s.listSecrets)
	handle(api, route{put, "/api/secrets/{name}", "putSecret", "Store a secret", "access", owner, gone}, s.putSecret)
	handle(api, route{del, "/api/secrets/{name}", "deleteSecret", "Remove a secret", "access", owner, gone}, s.deleteSecret)
	handle(api, route{get, "/api/workspaces", "listWorkspaces", "List the token's workspaces", "access", viewer, 0}, s.listWorkspaces)
	handle(api, route{post, "/api/workspaces", "createWorkspace", "Make a workspace", "access", owner, made}, s.createWorkspace)

	handle(api, route{get, "/api/status", "status", "How the server is", "server", viewer, 0}, s.status)
	handle(api, route{get, "/api/doctor", "doctor", "Check the server's parts", "server", viewer, 0}, s.doctor)
	handle(api, route{get, "/api/backup", "backup", "Copy the database", "server", owner, 0}, s.backup)

	s.conversationRoutes(api)
	s.journalRoutes(api)
	s.automationRoutes(api)
	s.mailRoutes(api)
	s.branchRoutes(api)

	mayWait(api, "/api/agents/{agentId}/calls", "/api/operations/{id}/undo")
}

// mayWait documents that what is posted there may have to wait, for a person or for its outcome.
func mayWait(api huma.API, paths ...string) {
	for _, p := range paths {
		responses := api.OpenAPI().Paths[p].Post.Responses
		responses["202"] = &huma.Response{Description: "It waits: state and code say for what", Content: responses["200"].Content}
	}
}
