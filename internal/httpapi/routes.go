package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// routes is the contents page of the API.
func routes(router huma.API, s *services) {
	const (
		get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete
		viewer, member, owner = reeve.Viewer, reeve.Member, reeve.Owner
		made, gone            = http.StatusCreated, http.StatusNoContent
	)
	tools := &toolHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/tools", "listTools", "List the catalogue", "tools", viewer, 0}, tools.list)
	handle(router, route{post, "/api/tools", "createTool", "Define a tool", "tools", member, made}, tools.create)
	handle(router, route{get, "/api/tools/{id}", "getTool", "Get a tool", "tools", viewer, 0}, tools.get)
	handle(router, route{put, "/api/tools/{id}", "updateTool", "Change a defined tool", "tools", member, 0},
		tools.update)
	handle(router, route{del, "/api/tools/{id}", "deleteTool", "Remove a defined tool", "tools", member, gone},
		tools.remove)

	agents := &agentHandlers{db: s.DB, gate: s.Gate, scheduler: s.Scheduler, jobs: s.ScriptJobs,
		delegations: s.Delegations,
		announcer:   s.announcer}
	handle(router, route{get, "/api/agents", "listAgents", "List agents", "agents", viewer, 0}, agents.list)
	handle(router, route{post, "/api/agents", "createAgent", "Make an agent", "agents", member, made}, agents.create)
	handle(router, route{get, "/api/agents/{agentId}", "getAgent", "Get an agent", "agents", viewer, 0}, agents.get)
	handle(router, route{patch, "/api/agents/{agentId}", "updateAgent", "Change an agent", "agents", member, 0},
		agents.update)
	handle(router, route{del, "/api/agents/{agentId}", "deleteAgent", "Remove an agent", "agents", member, gone},
		agents.remove)
	handle(router, route{get, "/api/agents/{agentId}/tools", "listAgentTools", "List an agent's tools", "agents",
		viewer, 0}, tools.listAttached)
	handle(router, route{post, "/api/agents/{agentId}/tools", "attachTool", "Give an agent a tool", "agents", member,
		made}, tools.attach)
	handle(router, route{del, "/api/agents/{agentId}/tools/{toolId}", "detachTool", "Take a tool from an agent",
		"agents", member, gone}, tools.detach)
	handle(router, route{get, "/api/agents/{agentId}/state", "getAgentState", "What an agent remembers of itself",
		"agents", viewer, 0}, agents.getState)
	handle(router, route{put, "/api/agents/{agentId}/state", "putAgentState", "Replace an agent's slots", "agents",
		member, 0}, agents.putState)
	handle(router, route{get, "/api/agents/{agentId}/runtime", "getAgentRuntime", "How an agent is on this node",
		"agents", viewer, 0}, agents.getRuntime)
	handle(router, route{get, "/api/agents/{agentId}/messages", "listMessages", "Read a thread", "agents", viewer, 0},
		agents.listMessages)

	calls := &callHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{post, "/api/agents/{agentId}/calls", "call", "Call a tool", "calls", member, 0}, calls.call)
	handle(router, route{post, "/api/agents/{agentId}/calls/batch", "callAll", "Call tools as one model response does",
		"calls", member, 0}, calls.callAll)
	handle(router, route{post, "/api/agents/{agentId}/calls/explain", "judge", "Explain a call without making it",
		"calls", viewer, 0}, calls.judge)
	handle(router, route{get, "/api/calls/{id}/explanation", "explain", "Explain a past call", "calls", viewer, 0},
		calls.explain)
	handle(router, route{get, "/api/outputs/{hash}", "readOutput", "Read a kept output", "calls", viewer, 0},
		calls.readOutput)

	operations := &operationHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/operations", "listOperations", "List operations", "operations", viewer, 0},
		operations.list)
	handle(router, route{get, "/api/operations/{id}", "getOperation", "Get an operation", "operations", viewer, 0},
		operations.get)
	handle(router, route{post, "/api/operations/{id}/resolve", "resolveOperation", "Say what became of an operation",
		"operations", member, 0}, operations.resolve)
	handle(router, route{post, "/api/operations/{id}/result", "deliverResult", "Bring the outcome of an operation",
		"operations", member, 0}, operations.deliver)
	handle(router, route{post, "/api/operations/{id}/undo", "undoOperation", "Take an operation back", "operations",
		member, 0}, operations.undo)

	approvals := &approvalHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{get, "/api/inbox", "inbox", "Everything that waits for a person", "approvals", viewer, 0},
		approvals.inbox)
	handle(router, route{get, "/api/approvals", "listApprovals", "List approvals", "approvals", viewer, 0},
		approvals.list)
	handle(router, route{get, "/api/approvals/{id}", "getApproval", "Get an approval", "approvals", viewer, 0},
		approvals.get)
	handle(router, route{post, "/api/approvals/{id}/decision", "decide", "Answer an approval", "approvals", member, 0},
		approvals.decide)

	proposals := &proposalHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{get, "/api/proposals", "listProposals", "List proposals", "proposals", viewer, 0},
		proposals.list)
	handle(router, route{get, "/api/proposals/{id}", "getProposal", "Get a proposal", "proposals", viewer, 0},
		proposals.get)
	handle(router, route{post, "/api/proposals/{id}/accept", "acceptProposal", "Let a proposed call be applied",
		"proposals", member, 0}, proposals.accept)
	handle(router, route{post, "/api/proposals/{id}/reject", "rejectProposal", "Refuse a proposed call for good",
		"proposals", member, 0}, proposals.reject)
	handle(router, route{post, "/api/proposals/{id}/reopen", "reopenProposal",
		"Let a rejected proposal be decided on again", "proposals", member, 0}, proposals.reopen)
	handle(router, route{get, "/api/change-sets", "listChangeSets", "List change sets", "proposals", viewer, 0},
		proposals.listSets)
	handle(router, route{get, "/api/change-sets/{id}", "getChangeSet", "Get a change set and its items", "proposals",
		viewer, 0}, proposals.getSet)
	handle(router, route{post, "/api/change-sets/{id}/accept", "acceptChangeSet",
		"Accept several items of a change set, or all", "proposals", member, 0}, proposals.acceptSet)
	handle(router, route{post, "/api/change-sets/{id}/reject", "rejectChangeSet",
		"Reject several items of a change set, or all", "proposals", member, 0}, proposals.rejectSet)

	runs := &runHandlers{db: s.DB, scheduler: s.Scheduler}
	wakes := &wakeHandlers{db: s.DB, queue: s.Queue}
	subscriptions := &subscriptionHandlers{db: s.DB, scheduler: s.Scheduler, openTokens: s.OpenTokens}
	handle(router, route{get, "/api/runs", "listRuns", "List runs", "runs", viewer, 0}, runs.list)
	handle(router, route{get, "/api/runs/{id}", "getRun", "Get a run", "runs", viewer, 0}, runs.get)
	handle(router, route{get, "/api/runs/{id}/wakes", "listRunWakes", "Why a run ran: the wakes it serves", "runs",
		viewer, 0}, wakes.listForRun)
	handle(router, route{post, "/api/runs/{id}/cancel", "cancelRun", "End a run", "runs", member, 0}, runs.cancel)
	handle(router, route{post, "/api/agents/{agentId}/wake", "wakeAgent", "Wake an agent", "runs", member, made},
		wakes.create)
	handle(router, route{get, "/api/agents/{agentId}/wakes", "listAgentWakes", "List an agent's wakes", "runs", viewer,
		0}, wakes.listForAgent)
	handle(router, route{get, "/api/wakes/{runKey}", "getWake", "Get a wake by its run key", "runs", viewer, 0},
		wakes.get)
	handle(router, route{get, "/api/agents/{agentId}/subscriptions", "listSubscriptions", "List what an agent watches",
		"runs", viewer, 0}, subscriptions.list)
	handle(router, route{post, "/api/agents/{agentId}/subscriptions", "createSubscription",
		"Let an agent watch something", "runs", member, made}, subscriptions.create)
	handle(router, route{del, "/api/subscriptions/{id}", "deleteSubscription", "Stop watching", "runs", member, gone},
		subscriptions.remove)

	schedules := &scheduleHandlers{db: s.DB, planner: s.Planner, queue: s.Queue, announcer: s.announcer}
	handle(router, route{get, "/api/schedules", "listSchedules", "List schedules", "schedules", viewer, 0},
		schedules.list)
	handle(router, route{post, "/api/schedules", "createSchedule", "Make a schedule", "schedules", member, made},
		schedules.create)
	handle(router, route{get, "/api/schedules/{id}", "getSchedule", "Get a schedule and its next firings", "schedules",
		viewer, 0}, schedules.get)
	handle(router, route{patch, "/api/schedules/{id}", "updateSchedule", "Change, pause or resume a schedule",
		"schedules", member, 0}, schedules.update)
	handle(router, route{del, "/api/schedules/{id}", "deleteSchedule", "Remove a schedule", "schedules", member, gone},
		schedules.remove)
	handle(router, route{get, "/api/schedules/{id}/runs", "listScheduleRuns", "List a schedule's runs", "schedules",
		viewer, 0}, schedules.listRuns)

	notes := &noteHandlers{db: s.DB}
	handle(router, route{get, "/api/notes", "listNotes", "List what agents remember of you", "conversations", viewer,
		0}, notes.list)
	handle(router, route{post, "/api/notes", "createNote", "Have an agent remember something of you", "conversations",
		member, made}, notes.create)
	handle(router, route{del, "/api/notes/{id}", "deleteNote", "Have an agent forget a note", "conversations", member,
		gone}, notes.remove)

	notifications := &notificationHandlers{db: s.DB}
	handle(router, route{get, "/api/notifications", "listNotifications", "List your notifications", "schedules", viewer,
		0}, notifications.list)
	handle(router, route{get, "/api/notifications/{id}", "getNotification", "Get a notification", "schedules", viewer,
		0}, notifications.get)
	handle(router, route{post, "/api/notifications/{id}/read", "readNotification", "Note that you have seen it",
		"schedules", member, gone}, notifications.markRead)

	control := &controlHandlers{db: s.DB, gate: s.Gate, scheduler: s.Scheduler}
	handle(router, route{post, "/api/stop", "stop", "Turn the kill switch on", "control", member, gone}, control.stop)
	handle(router, route{post, "/api/resume", "resume", "Let a held server go on, or turn the kill switch off",
		"control", member, gone}, control.resume)
	handle(router, route{get, "/api/hold", "hold", "What a held server would go on with", "control", viewer, 0},
		control.showHold)

	profiles := &profileHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/profiles", "listProfiles", "List capability profiles", "control", viewer, 0},
		profiles.list)
	handle(router, route{put, "/api/profiles/{kind}", "putProfile", "Set what agents of a kind may do", "control",
		owner, 0}, profiles.put)

	budgets := &budgetHandlers{db: s.DB}
	handle(router, route{get, "/api/budgets", "listBudgets", "List budgets", "control", viewer, 0}, budgets.list)
	handle(router, route{put, "/api/budgets/{subject}", "putBudget", "Set a budget", "control", owner, 0}, budgets.put)
	handle(router, route{del, "/api/budgets/{subject}", "deleteBudget", "Remove a budget", "control", owner, gone},
		budgets.remove)

	tokens := &tokenHandlers{db: s.DB, streams: s.Streams}
	handle(router, route{get, "/api/tokens", "listTokens", "List bearer tokens", "access", owner, 0}, tokens.list)
	handle(router, route{post, "/api/tokens", "createToken", "Make a bearer token", "access", owner, made},
		tokens.create)
	handle(router, route{del, "/api/tokens/{id}", "revokeToken", "Revoke a bearer token", "access", owner, gone},
		tokens.revoke)

	secrets := &secretHandlers{db: s.DB}
	handle(router, route{get, "/api/secrets", "listSecrets", "List the names of secrets", "access", owner, 0},
		secrets.list)
	handle(router, route{put, "/api/secrets/{name}", "putSecret", "Store a secret", "access", owner, gone}, secrets.put)
	handle(router, route{del, "/api/secrets/{name}", "deleteSecret", "Remove a secret", "access", owner, gone},
		secrets.remove)

	workspaces := &workspaceHandlers{db: s.DB}
	handle(router, route{get, "/api/workspaces", "listWorkspaces", "List the token's workspaces", "access", viewer, 0},
		workspaces.list)
	handle(router, route{post, "/api/workspaces", "createWorkspace", "Make a workspace", "access", owner, made},
		workspaces.create)

	status := &statusHandlers{db: s.DB, gate: s.Gate, version: s.Version, startedAt: s.StartedAt}
	doctor := &doctorHandlers{db: s.DB, gate: s.Gate, planner: s.Planner, checkParts: s.Doctor}
	backup := &backupHandlers{db: s.DB, copy: s.Backup, log: s.Log}
	handle(router, route{get, "/api/status", "status", "How the server is", "server", viewer, 0}, status.status)
	handle(router, route{get, "/api/doctor", "doctor", "Check the server's parts", "server", viewer, 0}, doctor.doctor)
	handle(router, route{get, "/api/backup", "backup", "Copy the database", "server", owner, 0}, backup.backup)

	conversationRoutes(router, s)
	journalRoutes(router, s)
	automationRoutes(router, s)
	mailRoutes(router, s)
	branchRoutes(router, s)

	mayWait(router, "/api/agents/{agentId}/calls", "/api/operations/{id}/undo")
}

// mayWait documents that what is posted there may have to wait, for a person or for its outcome.
func mayWait(router huma.API, paths ...string) {
	for _, p := range paths {
		responses := router.OpenAPI().Paths[p].Post.Responses
		responses["202"] = &huma.Response{Description: "It waits: state and code say for what",
			Content: responses["200"].Content}
	}
}
