package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// Automations is the room of automations, as the API needs it: what changes them.
type Automations interface {
	Create(ctx context.Context, workspace, user string, agent reeve.Agent, q reeve.AutomationRequest) (reeve.Automation, error)
	Save(ctx context.Context, workspace, id, user string, q reeve.ScriptRequest) (reeve.ScriptVersion, error)
	Errands
	Steer
}

// Errands is what the planner and the maintainer are sent to do.
type Errands interface {
	Plan(ctx context.Context, workspace, id, user string, q reeve.PlanRequest) (reeve.Errand, error)
	Answer(ctx context.Context, workspace, id, answer string) (reeve.Errand, error)
	Retire(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error
}

// Steer is what people do with an automation that is there.
type Steer interface {
	Activate(ctx context.Context, workspace, id, version string) (reeve.Automation, error)
	Pause(ctx context.Context, workspace, id string) (reeve.Automation, error)
	Resume(ctx context.Context, workspace, id, user string) (reeve.Automation, error)
	Settle(ctx context.Context, workspace, id, item string, to reeve.ItemState, why string) (reeve.Item, error)
	Begin
}

// Begin asks for runs.
type Begin interface {
	Start(ctx context.Context, workspace, id, user string, q reeve.AutomationRunRequest) (reeve.AutomationRun, error)
	Apply(ctx context.Context, workspace, run, user string) (reeve.AutomationRun, error)
}

func (s *server) automationRoutes(api huma.API) {
	const (
		get, post      = http.MethodGet, http.MethodPost
		viewer, member = reeve.Viewer, reeve.Member
		made           = http.StatusCreated
		tag, at        = "automations", "/api/automations"
	)
	handle(api, route{get, at, "listAutomations", "List automations", tag, viewer, 0}, s.listAutomations)
	handle(api, route{post, at, "createAutomation", "Make an automation, of a new agent or of one that is there", tag, member, made}, s.createAutomation)
	handle(api, route{get, at + "/{id}", "getAutomation", "Get an automation", tag, viewer, 0}, s.getAutomation)
	handle(api, route{get, at + "/{id}/versions", "listVersions", "List an automation's versions", tag, viewer, 0}, s.listVersions)
	handle(api, route{post, at + "/{id}/versions", "saveVersion", "Save a version of its script", tag, member, made}, s.saveVersion)
	handle(api, route{get, at + "/{id}/versions/{version}", "getVersion", "Get a version with its text", tag, viewer, 0}, s.getVersion)
	handle(api, route{post, at + "/{id}/activate", "activateVersion", "Choose the version that runs", tag, member, 0}, s.activateVersion)
	handle(api, route{post, at + "/{id}/pause", "pauseAutomation", "Keep it from making calls", tag, member, 0}, s.pauseAutomation)
	handle(api, route{post, at + "/{id}/resume", "resumeAutomation", "Let it go on", tag, member, 0}, s.resumeAutomation)
	handle(api, route{get, at + "/{id}/runs", "listAutomationRuns", "List its runs", tag, viewer, 0}, s.listAutomationRuns)
	handle(api, route{post, at + "/{id}/runs", "startAutomation", "Ask for a run", tag, member, made}, s.startAutomation)
	handle(api, route{get, runPath, "getAutomationRun", "How far a run has come", tag, viewer, 0}, s.getAutomationRun)
	handle(api, route{get, runEventsPath, "streamRun", "Follow a run: how far it has come, until it has ended (server-sent events)", tag, viewer, 0}, s.streamRun)
	streams(api, runEventsPath, get, "200", nil)
	handle(api, route{get, at + "/{id}/items", "listItems", "List its items", tag, viewer, 0}, s.listItems)
	handle(api, route{get, at + "/{id}/items/{item}", "getItem", "Get an item and all attempts at it", tag, viewer, 0}, s.getItem)
	handle(api, route{post, at + "/{id}/items/skip", "skipItem", "Leave an item alone", tag, member, 0}, s.skipItem)
	handle(api, route{post, at + "/{id}/items/reprocess", "reprocessItem", "Begin another attempt at an item", tag, member, 0}, s.reprocessItem)
	handle(api, route{get, at + "/{id}/files", "listAutomationFiles", "List the files that it has written", tag, viewer, 0}, s.listAutomationFiles)
	handle(api, route{get, at + "/{id}/files/content", "getAutomationFile", "Read one of its files", tag, viewer, 0}, s.getAutomationFile)
	handle(api, route{post, at + "/{id}/plan", "planAutomation", "Have the planner write its script", tag, member, made}, s.planAutomation)
	handle(api, route{get, at + "/{id}/errands", "listErrands", "List what the planner and the maintainer do for it", tag, viewer, 0}, s.listErrands)
	handle(api, route{get, "/api/errands/{id}", "getErrand", "Get an errand", tag, viewer, 0}, s.getErrand)
	handle(api, route{post, "/api/errands/{id}/answer", "answerErrand", "Answer the question of an errand", tag, member, 0}, s.answerErrand)
	handle(api, route{get, "/api/plans/{id}", "getRunPlan", "What a dry run would have done", tag, viewer, 0}, s.getRunPlan)
	handle(api, route{post, "/api/plans/{id}/apply", "applyRunPlan", "Do exactly that", tag, member, made}, s.applyRunPlan)
}

func (s *server) listAutomations(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
}) (*body[reeve.AutomationList], error) {
	after, err := parseNameCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &body[reeve.AutomationList]{}
	err = s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Automations, err = snap.ListAutomations(ctx, who.Workspace, after, in.Limit)
		return err
	})
	if n := len(out.Body.Automations); n == in.Limit {
		out.Body.Next = nameCursor + out.Body.Automations[n-1].Name
	}
	return out, err
}

func (s *server) createAutomation(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.AutomationRequest
}) (*body[reeve.Automation], error) {
	if !agentName.MatchString(in.Body.Name) {
		return nil, reeve.Wrong("/name", "is not a name", "letters, digits, and _ . - inside")
	}
	a := reeve.Agent{WorkspaceID: who.Workspace, Name: in.Body.Name, Kind: "assistant", Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, Categories: []string{}, Config: json.RawMessage("{}")}
	m, err := s.Automations.Create(ctx, who.Workspace, who.User, a, in.Body)
	return &body[reeve.Automation]{m}, err
}

func (s *server) getAutomation(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Automation], error) {
	out := &body[reeve.Automation]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = snap.GetAutomation(ctx, who.Workspace, in.ID)
		return err
	})
}

// mostVersions is how many versions of one automation are shown.
const mostVersions = 1000

func (s *server) listVersions(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.ScriptVersionList], error) {
	out := &body[reeve.ScriptVersionList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.Active = m.Version
		out.Body.Versions, err = snap.ListVersions(ctx, m.AgentID, mostVersions)
		return err
	})
}

func (s *server) saveVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ScriptRequest
}) (*body[reeve.ScriptVersion], error) {
	v, err := s.Automations.Save(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.ScriptVersion]{v}, err
}

func (s *server) getVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Version string `path:"version" maxLength:"20" doc:"Such as 1.0"`
}) (*body[reeve.ScriptVersion], error) {
	out := &body[reeve.ScriptVersion]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		major, minor, err := reeve.ParseVersion(in.Version)
		if err != nil {
			return err
		}
		out.Body, err = snap.GetVersion(ctx, m.AgentID, major, minor)
		return err
	})
}

func (s *server) activateVersion(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.VersionRequest
}) (*body[reeve.Automation], error) {
	m, err := s.Automations.Activate(ctx, who.Workspace, in.ID, in.Body.Version)
	return &body[reeve.Automation]{m}, err
}

func (s *server) pauseAutomation(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Automation], error) {
	m, err := s.Automations.Pause(ctx, who.Workspace, in.ID)
	return &body[reeve.Automation]{m}, err
}

func (s *server) resumeAutomation(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Automation], error) {
	m, err := s.Automations.Resume(ctx, who.Workspace, in.ID, who.User)
	return &body[reeve.Automation]{m}, err
}

func (s *server) listAutomationRuns(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[reeve.AutomationRunList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.AutomationRunList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		runs, err := snap.ListRuns(ctx, who.Workspace, store.RunFilter{Agent: m.AgentID, For: eyes(who), Before: in.Cursor, Limit: in.Limit})
		out.Body.Runs = make([]reeve.AutomationRun, len(runs))
		for i := 0; i < len(runs) && err == nil; i++ {
			out.Body.Runs[i].Run = &runs[i]
			out.Body.Runs[i].Script, _, err = snap.FindScriptRunOf(ctx, who.Workspace, runs[i].ID)
		}
		if n := len(runs); n == in.Limit {
			out.Body.Next = runs[n-1].ID
		}
		return err
	})
}

func (s *server) startAutomation(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.AutomationRunRequest
}) (*body[reeve.AutomationRun], error) {
	run, err := s.Automations.Start(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.AutomationRun]{run}, err
}

func (s *server) listItems(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	State  reeve.ItemState `query:"status" enum:"processing,done,failed,skipped,needs_attention"`
	Item   string          `query:"item" maxLength:"1024" doc:"The id of one"`
	Limit  int             `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Offset int             `query:"offset" minimum:"0" maximum:"1000000000"`
}) (*body[reeve.ItemList], error) {
	out := &body[reeve.ItemList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body, err = snap.ListLedger(ctx, m.AgentID, reeve.ItemFilter{State: in.State, ID: in.Item, Limit: in.Limit, Offset: in.Offset})
		return err
	})
}

func (s *server) getItem(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Item string `path:"item" maxLength:"1024" doc:"Its id; a slash in it is written %2F"`
}) (*body[reeve.ItemHistory], error) {
	out := &body[reeve.ItemHistory]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		if out.Body.Item, err = snap.GetItem(ctx, m.AgentID, in.Item); err != nil {
			return err
		}
		out.Body.Attempts, err = snap.ListAttempts(ctx, m.AgentID, in.Item)
		return err
	})
}

// ItemBody names an item of an automation.
type ItemBody struct {
	IDPath
	Body reeve.ItemRequest
}

func (s *server) skipItem(ctx context.Context, who reeve.Principal, in *ItemBody) (*body[reeve.Item], error) {
	return s.settleItem(ctx, who, in, reeve.ItemSkipped)
}

func (s *server) reprocessItem(ctx context.Context, who reeve.Principal, in *ItemBody) (*body[reeve.Item], error) {
	return s.settleItem(ctx, who, in, reeve.ItemProcessing)
}

func (s *server) settleItem(ctx context.Context, who reeve.Principal, in *ItemBody, to reeve.ItemState) (*body[reeve.Item], error) {
	if err := reeve.CheckItemName("id", in.Body.Item); err != nil {
		return nil, reeve.Wrong("/item", reeve.AsError(err).Message, "an item's id")
	}
	v, err := s.Automations.Settle(ctx, who.Workspace, in.ID, in.Body.Item, to, in.Body.Reason)
	return &body[reeve.Item]{v}, err
}

// placeCursor begins a cursor of a list in the order of places: the number behind it is the last one that was shown.
const placeCursor = "place."

// parsePlaceCursor gives the place that the page before ended with, in a list whose places have so many bits.
func parsePlaceCursor(c string, bits int) (int64, error) {
	if c == "" {
		return 0, nil
	}
	text, ok := strings.CutPrefix(c, placeCursor)
	n, err := strconv.ParseUint(text, 10, bits)
	if !ok || err != nil {
		return 0, badCursor()
	}
	return int64(n), nil
}

func (s *server) getRunPlan(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[reeve.Plan], error) {
	after, err := parsePlaceCursor(in.Cursor, 31)
	if err != nil {
		return nil, err
	}
	out := &body[reeve.Plan]{}
	err = s.DB.View(ctx, func(snap *store.Snap) error {
		note, err := planFor(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.RunID, out.Body.AgentID = note.RunID, note.AgentID
		out.Body.Calls, err = snap.ListPlanned(ctx, who.Workspace, in.ID, int(after), in.Limit)
		return err
	})
	if n := len(out.Body.Calls); n == in.Limit {
		out.Body.Next = placeCursor + strconv.Itoa(out.Body.Calls[n-1].Ordinal)
	}
	return out, err
}

// planFor reads what is noted of a dry run that the caller may see.
func planFor(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.ScriptRun, error) {
	note, ok, err := snap.FindScriptRunOf(ctx, who.Workspace, id)
	if err != nil {
		return note, err
	}
	if !ok || note.Type != reeve.DryRun {
		return note, absent("plan", id)
	}
	if _, err = runFor(ctx, snap, who, id); reeve.CodeOf(err) == reeve.NotFound {
		err = absent("plan", id)
	}
	return note, err
}

func (s *server) applyRunPlan(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.AutomationRun], error) {
	if err := s.DB.View(ctx, func(snap *store.Snap) error {
		_, err := planFor(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	run, err := s.Automations.Apply(ctx, who.Workspace, in.ID, who.User)
	return &body[reeve.AutomationRun]{run}, err
}
