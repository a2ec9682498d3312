package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// registerRoutes registers every route under /api. The routes of conversations, the journal, automations, mail and
// branches have their own functions.
func registerRoutes(router huma.API, s *services) {
	const (
		get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete
		viewer, member, owner = reeve.Viewer, reeve.Member, reeve.Owner
		created, noContent    = http.StatusCreated, http.StatusNoContent
	)
	tools := &toolHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/tools", "listTools", "List the tools of the catalogue", "tools", viewer, 0},
		tools.list)
	handle(router, route{post, "/api/tools", "createTool", "Define a tool", "tools", member, created}, tools.create)
	handle(router, route{get, "/api/tools/export", "exportTools", "Export tools in the format of another program",
		"tools", viewer, 0}, tools.export)
	handle(router, route{get, "/api/tools/{id}", "getTool", "Get a tool", "tools", viewer, 0}, tools.get)
	handle(router, route{put, "/api/tools/{id}", "updateTool", "Update a defined tool", "tools", member, 0},
		tools.update)
	handle(router, route{del, "/api/tools/{id}", "deleteTool", "Delete a defined tool", "tools", member, noContent},
		tools.remove)

	agents := &agentHandlers{db: s.DB, gate: s.Gate, scheduler: s.Scheduler, jobs: s.ScriptJobs,
		delegations: s.Delegations,
		announcer:   s.announcer}
	handle(router, route{get, "/api/agents", "listAgents", "List agents", "agents", viewer, 0}, agents.list)
	handle(router, route{post, "/api/agents", "createAgent", "Create an agent", "agents", member, created},
		agents.create)
	handle(router, route{get, "/api/agents/{agentId}", "getAgent", "Get an agent", "agents", viewer, 0}, agents.get)
	handle(router, route{patch, "/api/agents/{agentId}", "updateAgent", "Update an agent", "agents", member, 0},
		agents.update)
	handle(router, route{del, "/api/agents/{agentId}", "deleteAgent", "Delete an agent", "agents", member, noContent},
		agents.remove)
	handle(router, route{get, "/api/agents/{agentId}/tools", "listAgentTools", "List an agent's tools", "agents",
		viewer, 0}, tools.listAttached)
	handle(router, route{post, "/api/agents/{agentId}/tools", "attachTool", "Attach a tool to an agent", "agents",
		member,
		created}, tools.attach)
	handle(router, route{del, "/api/agents/{agentId}/tools/{toolId}", "detachTool", "Detach a tool from an agent",
		"agents", member, noContent}, tools.detach)
	handle(router, route{get, "/api/agents/{agentId}/state", "getAgentState", "Get an agent's state slots",
		"agents", viewer, 0}, agents.getState)
	handle(router, route{put, "/api/agents/{agentId}/state", "putAgentState", "Replace an agent's state slots",
		"agents",
		member, 0}, agents.putState)
	handle(router, route{put, "/api/agents/{agentId}/wake-plan", "putAgentWakePlan",
		"Set until when an agent sleeps and when it wakes itself", "agents", member, 0}, agents.putWakePlan)
	handle(router, route{get, "/api/agents/{agentId}/runtime", "getAgentRuntime",
		"Get an agent's runtime state on this node",
		"agents", viewer, 0}, agents.getRuntime)
	summaries := &summaryHandlers{db: s.DB, onRetry: s.OnSummaryDue}
	handle(router, route{get, "/api/agents/{agentId}/summaries", "listSummaries",
		"List an agent's summaries of turns and runs", "agents", viewer, 0}, summaries.list)
	handle(router, route{post, "/api/agents/{agentId}/summaries/{summaryId}/retry", "retrySummary",
		"Try a failed summary again", "agents", member, 0}, summaries.retry)
	handle(router, route{get, "/api/agents/{agentId}/messages", "listMessages", "List the messages of a thread",
		"agents", viewer, 0},
		agents.listMessages)

	calls := &callHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{post, "/api/agents/{agentId}/calls", "callTool", "Call a tool", "calls", member, 0},
		calls.call)
	handle(router, route{post, "/api/agents/{agentId}/calls/batch", "callTools", "Call several tools in order",
		"calls", member, 0}, calls.callAll)
	handle(router, route{post, "/api/agents/{agentId}/calls/explain", "previewCall",
		"Preview the gate's decision on a call",
		"calls", viewer, 0}, calls.preview)
	handle(router, route{get, "/api/calls/{id}/explanation", "explainCall", "Explain a past call", "calls", viewer, 0},
		calls.explain)
	handle(router, route{get, "/api/outputs/{hash}", "getOutput", "Read a stored output", "calls", viewer, 0},
		calls.readOutput)

	operations := &operationHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/operations", "listOperations", "List operations", "operations", viewer, 0},
		operations.list)
	handle(router, route{get, "/api/operations/{id}", "getOperation", "Get an operation", "operations", viewer, 0},
		operations.get)
	handle(router, route{post, "/api/operations/{id}/resolve", "resolveOperation",
		"Resolve an operation with an unknown outcome",
		"operations", member, 0}, operations.resolve)
	handle(router, route{post, "/api/operations/{id}/result", "deliverOperationResult",
		"Deliver the result of an operation",
		"operations", member, 0}, operations.deliver)
	handle(router, route{post, "/api/operations/{id}/undo", "undoOperation", "Undo an operation", "operations",
		member, 0}, operations.undo)
	handle(router, route{get, "/api/operations/{id}/undo", "planUndo", "Preview the undo of an operation", "operations",
		member, 0}, operations.planUndo)
	handle(router, route{post, "/api/operations/{id}/lookup", "lookUpOperation",
		"Ask the tool whether an operation of unknown outcome took effect", "operations", member, 0}, operations.lookUp)
	handle(router, route{get, "/api/runs/{id}/undo", "planRunUndo", "Preview the undo of a whole run", "runs", member,
		0}, operations.planUndoOfRun)
	handle(router, route{post, "/api/runs/{id}/undo", "undoRun",
		"Undo what can be undone of a run, the latest change first", "runs", member, 0}, operations.undoRun)

	approvals := &approvalHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{get, "/api/inbox", "getInbox", "List everything that waits for a person", "approvals", viewer,
		0},
		approvals.inbox)
	handle(router, route{get, "/api/inbox/count", "countInbox", "Count what waits for a person, by kind", "approvals",
		viewer, 0}, approvals.countInbox)
	handle(router, route{get, "/api/approvals", "listApprovals", "List approvals", "approvals", viewer, 0},
		approvals.list)
	handle(router, route{get, "/api/approvals/{id}", "getApproval", "Get an approval", "approvals", viewer, 0},
		approvals.get)
	handle(router, route{get, "/api/approvals/{id}/card", "getApprovalCard",
		"Get an approval with everything that a person needs to decide", "approvals", viewer, 0}, approvals.card)
	handle(router, route{post, "/api/approvals/decisions", "decideApprovals", "Approve or deny several parked calls",
		"approvals", member, 0}, approvals.decideAll)
	handle(router, route{post, "/api/approvals/{id}/decision", "decideApproval", "Approve or deny a parked call",
		"approvals",
		member, 0},
		approvals.decide)

	handle(router, route{post, "/api/approvals/{id}/edit", "editApproval",
		"Replace a parked call by one with other arguments", "approvals", member, 0}, approvals.edit)
	handle(router, route{get, "/api/approvals/{id}/revealed", "revealApproval",
		"Show a parked call with the secrets that its approval hides", "approvals", owner, 0}, approvals.reveal)

	proposals := &proposalHandlers{db: s.DB, gate: s.Gate, redactor: s.redactor}
	handle(router, route{get, "/api/proposals", "listProposals", "List proposals", "proposals", viewer, 0},
		proposals.list)
	handle(router, route{get, "/api/proposals/{id}", "getProposal", "Get a proposal", "proposals", viewer, 0},
		proposals.get)
	handle(router, route{post, "/api/proposals/{id}/accept", "acceptProposal", "Accept a proposal",
		"proposals", member, 0}, proposals.accept)
	handle(router, route{post, "/api/proposals/{id}/reject", "rejectProposal", "Reject a proposal",
		"proposals", member, 0}, proposals.reject)
	handle(router, route{post, "/api/proposals/{id}/reopen", "reopenProposal",
		"Reopen a rejected proposal", "proposals", member, 0}, proposals.reopen)
	handle(router, route{get, "/api/change-sets", "listChangeSets", "List change sets", "proposals", viewer, 0},
		proposals.listSets)
	handle(router, route{get, "/api/change-sets/{id}", "getChangeSet", "Get a change set and its items", "proposals",
		viewer, 0}, proposals.getSet)
	handle(router, route{post, "/api/change-sets/{id}/accept", "acceptChangeSet",
		"Accept some or all items of a change set", "proposals", member, 0}, proposals.acceptSet)
	handle(router, route{post, "/api/change-sets/{id}/reject", "rejectChangeSet",
		"Reject some or all items of a change set", "proposals", member, 0}, proposals.rejectSet)

	runs := &runHandlers{db: s.DB, scheduler: s.Scheduler, requests: s.Requests}
	wakes := &wakeHandlers{db: s.DB, queue: s.Queue}
	changes := &changeHandlers{db: s.DB, gate: s.Gate}
	reach := subscriptionReach{openTokens: s.OpenTokens}
	subscriptions := &subscriptionHandlers{reach, s.DB, changes, s.Scheduler}
	handle(router, route{get, "/api/runs", "listRuns", "List runs", "runs", viewer, 0}, runs.list)
	handle(router, route{get, "/api/runs/{id}", "getRun", "Get a run", "runs", viewer, 0}, runs.get)
	handle(router, route{get, "/api/runs/{id}/requests", "listRunRequests",
		"List what the model was asked in a run, with what was left out", "runs", viewer, 0}, runs.listRequests)
	handle(router, route{get, "/api/runs/{id}/wakes", "listRunWakes", "List the wakes that a run serves", "runs",
		viewer, 0}, wakes.listForRun)
	handle(router, route{post, "/api/runs/{id}/cancel", "cancelRun", "Cancel a run", "runs", member, 0}, runs.cancel)
	handle(router, route{post, "/api/agents/{agentId}/wake", "wakeAgent", "Wake an agent", "runs", member, created},
		wakes.create)
	handle(router, route{get, "/api/agents/{agentId}/wakes", "listAgentWakes", "List an agent's wakes", "runs", viewer,
		0}, wakes.listForAgent)
	handle(router, route{get, "/api/wakes/{runKey}", "getWake", "Get a wake by its run key", "runs", viewer, 0},
		wakes.get)
	handle(router, route{get, "/api/agents/{agentId}/subscriptions", "listSubscriptions",
		"List an agent's subscriptions",
		"runs", viewer, 0}, subscriptions.list)
	handle(router, route{post, "/api/agents/{agentId}/subscriptions", "createSubscription",
		"Subscribe an agent to changes", "runs", member, created}, subscriptions.create)
	handle(router, route{get, "/api/agents/{agentId}/subscriptions/trial", "trySubscription",
		"Test the predicate of a subscription on past changes", "runs", viewer, 0}, subscriptions.try)
	handle(router, route{del, "/api/subscriptions/{id}", "deleteSubscription", "Delete a subscription", "runs", member,
		noContent},
		subscriptions.remove)

	handle(router, route{get, "/api/changes", "listChanges", "List what changed, newest first", "runs", viewer, 0},
		changes.list)
	handle(router, route{get, "/api/changes/{id}", "getChange", "Get a change: who, why, and the changed fields",
		"runs", viewer, 0}, changes.get)

	schedules := &scheduleHandlers{db: s.DB, timetable: s.Timetable, queue: s.Queue, announcer: s.announcer}
	handle(router, route{get, "/api/schedules", "listSchedules", "List schedules", "schedules", viewer, 0},
		schedules.list)
	handle(router, route{post, "/api/schedules", "createSchedule", "Create a schedule", "schedules", member, created},
		schedules.create)
	handle(router, route{get, "/api/schedules/preview", "previewSchedule", "Get when a schedule would fire",
		"schedules", viewer, 0}, schedules.preview)
	handle(router, route{get, "/api/schedules/{id}", "getSchedule", "Get a schedule and its next run times",
		"schedules",
		viewer, 0}, schedules.get)
	handle(router, route{patch, "/api/schedules/{id}", "updateSchedule", "Update, pause or resume a schedule",
		"schedules", member, 0}, schedules.update)
	handle(router, route{del, "/api/schedules/{id}", "deleteSchedule", "Delete a schedule", "schedules", member,
		noContent},
		schedules.remove)
	handle(router, route{post, "/api/schedules/{id}/run", "runSchedule", "Fire a schedule now", "schedules", member,
		created}, schedules.run)
	handle(router, route{get, "/api/schedules/{id}/runs", "listScheduleRuns", "List a schedule's runs", "schedules",
		viewer, 0}, schedules.listRuns)

	notes := &noteHandlers{db: s.DB, searcher: s.Notes, consolidator: s.Consolidator, announcer: s.announcer}
	handle(router, route{get, "/api/notes", "listNotes", "List your notes", "notes", viewer, 0}, notes.list)
	handle(router, route{get, "/api/notes/search", "searchNotes", "Search your notes by words and meaning", "notes",
		viewer, 0}, notes.search)
	handle(router, route{post, "/api/notes", "createNote", "Save a note", "notes", member, created}, notes.create)
	handle(router, route{get, "/api/notes/{id}", "getNote", "Get a note", "notes", viewer, 0}, notes.get)
	handle(router, route{patch, "/api/notes/{id}", "updateNote", "Change, tag or pin a note", "notes", member, 0},
		notes.update)
	handle(router, route{del, "/api/notes/{id}", "deleteNote", "Delete a note; it can be restored", "notes", member,
		noContent}, notes.remove)
	handle(router, route{get, "/api/notes/{id}/history", "getNoteHistory", "Get where a note comes from", "notes",
		viewer, 0}, notes.history)
	handle(router, route{post, "/api/notes/{id}/restore", "restoreNote", "Restore a deleted or replaced note", "notes",
		member, 0}, notes.restore)
	handle(router, route{post, "/api/notes/import", "importNotes", "Import notes", "notes", member, 0},
		notes.importNotes)
	handle(router, route{get, "/api/notes/export", "exportNotes", "List all your notes with their history", "notes",
		viewer, 0}, notes.export)
	handle(router, route{post, "/api/notes/consolidate", "consolidateNotes", "Propose merges of your notes", "notes",
		member, 0}, notes.consolidate)
	handle(router, route{post, "/api/notes/{id}/forget", "forgetNote", "Erase a note and every quote of it", "notes",
		member, 0}, notes.forget)

	notifications := &notificationHandlers{db: s.DB}
	handle(router, route{get, "/api/notifications", "listNotifications", "List your notifications", "schedules", viewer,
		0}, notifications.list)
	handle(router, route{get, "/api/notifications/{id}", "getNotification", "Get a notification", "schedules", viewer,
		0}, notifications.get)
	handle(router, route{post, "/api/notifications/{id}/read", "markNotificationRead", "Mark a notification as read",
		"schedules", member, noContent}, notifications.markRead)

	control := &controlHandlers{db: s.DB, gate: s.Gate, scheduler: s.Scheduler}
	handle(router, route{post, "/api/stop", "stopAgents", "Stop one agent, or all agents of the workspace", "control",
		member,
		noContent}, control.stop)
	handle(router, route{post, "/api/resume", "resumeAgents", "Resume after a stop, or release a held server",
		"control", member, noContent}, control.resume)
	handle(router, route{get, "/api/hold", "getHold", "List the work that a held server would resume", "control",
		viewer,
		0},
		control.showHold)

	profiles := &profileHandlers{db: s.DB, gate: s.Gate}
	handle(router, route{get, "/api/profiles", "listProfiles", "List capability profiles", "control", viewer, 0},
		profiles.list)
	handle(router, route{put, "/api/profiles/{kind}", "putProfile", "Set the capability profile of an agent kind",
		"control",
		owner, 0}, profiles.put)

	budgets := &budgetHandlers{db: s.DB}
	handle(router, route{get, "/api/budgets", "listBudgets", "List budgets", "control", viewer, 0}, budgets.list)
	handle(router, route{put, "/api/budgets/{subject}", "putBudget", "Set a budget", "control", owner, 0}, budgets.put)
	handle(router, route{del, "/api/budgets/{subject}", "deleteBudget", "Delete a budget", "control", owner, noContent},
		budgets.remove)

	tokens := &tokenHandlers{db: s.DB, streams: s.Streams}
	handle(router, route{get, "/api/tokens", "listTokens", "List bearer tokens", "access", owner, 0}, tokens.list)
	handle(router, route{post, "/api/tokens", "createToken", "Create a bearer token", "access", owner, created},
		tokens.create)
	handle(router, route{patch, "/api/tokens/{id}", "updateToken", "Change the role of a token", "access", owner, 0},
		tokens.update)
	handle(router, route{del, "/api/tokens/{id}", "revokeToken", "Revoke a bearer token", "access", owner, noContent},
		tokens.revoke)

	registerSessionRoutes(router, &sessionHandlers{db: s.DB, auth: s.auth, streams: s.Streams, version: s.Version})
	links := &consoleLinkHandlers{db: s.DB}
	handle(router, route{post, linksPath, "createConsoleLink", "Make a link that signs in to the console once",
		"access", viewer, created}, links.create)

	events := &eventHandlers{feed: s.Feed, permits: s.permits, streams: s.Streams}
	handle(router, route{get, workspaceEventsPath, "streamChanges", "Stream what changes in a workspace", "server",
		viewer, 0}, events.stream)
	documentStream(router, workspaceEventsPath, get, "200", nil)

	secrets := &secretHandlers{db: s.DB}
	handle(router, route{get, "/api/secrets", "listSecrets", "List the names of secrets", "access", owner, 0},
		secrets.list)
	handle(router, route{put, "/api/secrets/{name}", "putSecret", "Store a secret", "access", owner, noContent},
		secrets.put)
	handle(router, route{del, "/api/secrets/{name}", "deleteSecret", "Delete a secret", "access", owner, noContent},
		secrets.remove)

	workspaces := &workspaceHandlers{db: s.DB}
	handle(router, route{get, "/api/workspaces", "listWorkspaces", "List the token's workspaces", "access", viewer, 0},
		workspaces.list)
	handle(router, route{post, "/api/workspaces", "createWorkspace", "Create a workspace", "access", owner, created},
		workspaces.create)

	status := &statusHandlers{db: s.DB, gate: s.Gate, version: s.Version, startedAt: s.StartedAt}
	doctor := &doctorHandlers{db: s.DB, gate: s.Gate, timetable: s.Timetable, checkParts: s.Doctor,
		reach: reach}
	backup := &backupHandlers{db: s.DB, copy: s.Backup, log: s.Log}
	handle(router, route{get, "/api/status", "getStatus", "Get the server's status", "server", viewer, 0},
		status.status)
	handle(router, route{get, "/api/doctor", "getDoctorReport", "Check the health of the server and the workspace",
		"server",
		viewer, 0}, doctor.doctor)
	handle(router, route{get, "/api/backup", "downloadBackup", "Download a copy of the database", "server", owner, 0},
		backup.backup)

	registerConversationRoutes(router, s)
	registerJournalRoutes(router, s)
	registerAutomationRoutes(router, s)
	registerMailRoutes(router, s)
	registerBranchRoutes(router, s)

	documentAccepted(router, "/api/agents/{agentId}/calls", "/api/operations/{id}/undo")
}

// documentAccepted adds the response 202 to the POST routes whose call may have to wait for a person or an outcome.
func documentAccepted(router huma.API, paths ...string) {
	for _, p := range paths {
		responses := router.OpenAPI().Paths[p].Post.Responses
		responses["202"] = &huma.Response{Description: "The call waits; state and code say for what",
			Content: responses["200"].Content}
	}
}
