package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// Automations changes automations and runs them.
type Automations interface {
	Create(ctx context.Context, workspace, user string, agent reeve.Agent, q reeve.AutomationRequest) (reeve.Automation,
		error)
	Save(ctx context.Context, workspace, id, user string, q reeve.ScriptRequest) (reeve.ScriptVersion, error)
	AutomationControl
}

// ScriptJobs manages the jobs of the planner and the maintainer.
type ScriptJobs interface {
	Plan(ctx context.Context, workspace, id, user string, q reeve.PlanRequest) (reeve.ScriptJob, error)
	Answer(ctx context.Context, workspace, id, answer string) (reeve.ScriptJob, error)
	CloseJobsOfAgent(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error
}

// AutomationControl changes the state of an existing automation and of its items.
type AutomationControl interface {
	Activate(ctx context.Context, workspace, id, version string) (reeve.Automation, error)
	Pause(ctx context.Context, workspace, id string) (reeve.Automation, error)
	Resume(ctx context.Context, workspace, id, user string) (reeve.Automation, error)
	ResolveItem(ctx context.Context, workspace, id, item string, to reeve.ItemState, why string) (reeve.Item, error)
	AutomationStarter
}

// AutomationStarter starts runs and applies the plans of dry runs.
type AutomationStarter interface {
	Start(ctx context.Context, workspace, id, user string, q reeve.AutomationRunRequest) (reeve.AutomationRun, error)
	Apply(ctx context.Context, workspace, run, user string) (reeve.AutomationRun, error)
}

// registerAutomationRoutes registers the routes of automations, their runs, items, files and script jobs.
func registerAutomationRoutes(router huma.API, s *services) {
	const (
		get, post      = http.MethodGet, http.MethodPost
		viewer, member = reeve.Viewer, reeve.Member
		created        = http.StatusCreated
		tag, at        = "automations", "/api/automations"
	)
	automations := &automationHandlers{db: s.DB, automations: s.Automations}
	automationRuns := newAutomationRunHandlers(s)
	items := &itemHandlers{db: s.DB, automations: s.Automations}
	automationFiles := &automationFileHandlers{db: s.DB, gate: s.Gate}
	jobs := &scriptJobHandlers{db: s.DB, jobs: s.ScriptJobs}
	handle(router, route{get, at, "listAutomations", "List automations", tag, viewer, 0}, automations.list)
	handle(router, route{post, at, "createAutomation", "Create an automation, for a new or an existing agent",
		tag, member, created}, automations.create)
	handle(router, route{get, at + "/{id}", "getAutomation", "Get an automation", tag, viewer, 0}, automations.get)
	handle(router, route{get, at + "/{id}/versions", "listScriptVersions", "List an automation's versions", tag, viewer,
		0},
		automations.listVersions)
	handle(router, route{post, at + "/{id}/versions", "createScriptVersion", "Save a version of the script", tag,
		member,
		created},
		automations.saveVersion)
	handle(router, route{get, at + "/{id}/versions/{version}", "getScriptVersion", "Get a version with its script", tag,
		viewer,
		0}, automations.getVersion)
	handle(router, route{post, at + "/{id}/activate", "activateScriptVersion", "Activate a version", tag, member,
		0}, automations.activateVersion)
	handle(router, route{post, at + "/{id}/pause", "pauseAutomation", "Pause an automation", tag, member, 0},
		automations.pause)
	handle(router, route{post, at + "/{id}/resume", "resumeAutomation", "Resume an automation", tag, member, 0},
		automations.resume)
	handle(router, route{get, at + "/{id}/runs", "listAutomationRuns", "List an automation's runs", tag, viewer, 0},
		automationRuns.list)
	handle(router, route{post, at + "/{id}/runs", "startAutomationRun", "Start a run", tag, member, created},
		automationRuns.start)
	handle(router, route{get, runPath, "getAutomationRun", "Get a run and its progress", tag, viewer, 0},
		automationRuns.get)
	handle(router, route{get, runEventsPath, "streamRun",
		"Follow a run's progress until it ends (server-sent events)", tag, viewer, 0},
		automationRuns.stream)
	documentStream(router, runEventsPath, get, "200", nil)
	handle(router, route{get, at + "/{id}/items", "listItems", "List an automation's items", tag, viewer, 0},
		items.list)
	handle(router, route{get, at + "/{id}/items/{item}", "getItem", "Get an item and its attempts", tag, viewer,
		0}, items.get)
	handle(router, route{post, at + "/{id}/items/skip", "skipItem", "Skip an item", tag, member, 0}, items.skip)
	handle(router, route{post, at + "/{id}/items/reprocess", "reprocessItem", "Process an item again", tag,
		member, 0}, items.reprocess)
	handle(router, route{get, at + "/{id}/files", "listAutomationFiles",
		"List the files that an automation has written", tag,
		viewer, 0}, automationFiles.list)
	handle(router, route{get, at + "/{id}/files/content", "getAutomationFile", "Read a file of an automation", tag,
		viewer, 0},
		automationFiles.get)
	handle(router, route{post, at + "/{id}/plan", "planAutomation",
		"Start a job in which the planner writes the script", tag, member,
		created}, jobs.plan)
	handle(router, route{get, at + "/{id}/script-jobs", "listScriptJobs",
		"List an automation's script jobs", tag, viewer, 0}, jobs.list)
	handle(router, route{get, "/api/script-jobs/{id}", "getScriptJob", "Get a script job", tag, viewer, 0}, jobs.get)
	handle(router, route{post, "/api/script-jobs/{id}/answer", "answerScriptJob", "Answer a script job's question",
		tag, member, 0}, jobs.answer)
	handle(router, route{get, "/api/plans/{id}", "getRunPlan", "Get the plan of a dry run", tag, viewer, 0},
		automationRuns.getPlan)
	handle(router, route{post, "/api/plans/{id}/apply", "applyRunPlan", "Apply the plan of a dry run", tag, member,
		created},
		automationRuns.applyPlan)
}

// automationHandlers serves automations and the versions of their scripts.
type automationHandlers struct {
	db          *store.DB
	automations Automations
}

func (h *automationHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
}) (*body[api.AutomationList], error) {
	after, err := parseNameCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &body[api.AutomationList]{}
	err = h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Automations, err = snap.Automations().ListAutomations(ctx, who.Workspace, after, in.Limit)
		for _, m := range out.Body.Automations {
			err = errors.Join(err, hideFailure(ctx, snap, who, m))
		}
		return err
	})
	if n := len(out.Body.Automations); n == in.Limit {
		out.Body.Next = nameCursor + out.Body.Automations[n-1].Name
	}
	return out, err
}

func (h *automationHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.AutomationRequest
}) (*body[reeve.Automation], error) {
	if !agentNamePattern.MatchString(in.Body.Name) {
		return nil, reeve.InvalidField("/name", "is not a valid name",
			"letters, digits, and _ . - after the first character")
	}
	a := reeve.Agent{WorkspaceID: who.Workspace, Name: in.Body.Name, Kind: "assistant", Lifecycle: reeve.AgentActive,
		Mode: reeve.Hybrid, Categories: []string{}, Config: json.RawMessage("{}")}
	m, err := h.automations.Create(ctx, who.Workspace, who.User, a, in.Body)
	return &body[reeve.Automation]{m}, err
}

func (h *automationHandlers) get(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.Automation], error) {
	out := &body[reeve.Automation]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		return errors.Join(err, hideFailure(ctx, snap, who, out.Body))
	})
}

// hideFailure hides why an automation failed if the caller may not see the run that failed.
func hideFailure(ctx context.Context, snap *store.Snap, who reeve.Principal, m reeve.Automation) error {
	if m.Failure == nil {
		return nil
	}
	return hideMessage(ctx, snap, who, m.Failure.RunID, &m.Failure.Message)
}

// maxVersions is the most versions that listVersions returns.
const maxVersions = 1000

func (h *automationHandlers) listVersions(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[api.ScriptVersionList], error) {
	out := &body[api.ScriptVersionList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.Active = m.Version
		out.Body.Versions, err = snap.Automations().ListVersions(ctx, m.AgentID, maxVersions)
		return err
	})
}

func (h *automationHandlers) saveVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ScriptRequest
}) (*body[reeve.ScriptVersion], error) {
	v, err := h.automations.Save(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.ScriptVersion]{v}, err
}

func (h *automationHandlers) getVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Version string `path:"version" maxLength:"20" doc:"Version, such as 1.0"`
}) (*body[reeve.ScriptVersion], error) {
	out := &body[reeve.ScriptVersion]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		major, minor, err := reeve.ParseVersion(in.Version)
		if err != nil {
			return err
		}
		out.Body, err = snap.Automations().GetVersion(ctx, m.AgentID, major, minor)
		return err
	})
}

func (h *automationHandlers) activateVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.VersionRequest
}) (*body[reeve.Automation], error) {
	m, err := h.automations.Activate(ctx, who.Workspace, in.ID, in.Body.Version)
	return &body[reeve.Automation]{m}, err
}

func (h *automationHandlers) pause(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.Automation], error) {
	m, err := h.automations.Pause(ctx, who.Workspace, in.ID)
	return &body[reeve.Automation]{m}, err
}

func (h *automationHandlers) resume(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.Automation], error) {
	m, err := h.automations.Resume(ctx, who.Workspace, in.ID, who.User)
	return &body[reeve.Automation]{m}, err
}
