package kit

import (
	"encoding/json"
	"net/http"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// CallFileTool calls a file tool in a conversation and gives what it came to: its result as text, or the code of why
// not.
func (w ShellAgent) CallFileTool(conversation, tool string, args Call) (content string, r reeve.Result) {
	w.Host.T.Helper()
	r, p, status := TryCall(w.Host, "dev", Call{"tool": tool, "session": conversation, "args": args})
	if status != 200 {
		return string(p.Code) + " " + p.Detail, r
	}
	return r.Content, r
}

// ShellAgent is an engineer who runs commands on a project, without asking, in a conversation.
type ShellAgent struct {
	Host  *reevetest.Host
	Agent reeve.Agent
}

// CommandResult is what a command came to.
type CommandResult struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	TimedOut bool   `json:"timed_out"`
	Branch   string `json:"branch"`
	Commit   string `json:"commit"`
	Note     string `json:"note"`
}

// Configure gives the agent its settings for commands.
func (w ShellAgent) Configure(settings map[string]any) {
	w.Host.T.Helper()
	if settings == nil {
		settings = map[string]any{"project": "site"}
	}
	at := "/api/agents/" + w.Agent.ID
	w.Host.Want(200, nil, "PATCH", at,
		map[string]any{"kind": "engineer", "policy": map[string]any{"tools": map[string]any{"shell_exec": "allow"}}})
	w.Host.Want(204, nil, "DELETE", at+"/tools/shell_exec", nil)
	w.Host.Want(201, nil, "POST", at+"/tools", map[string]any{"tool_id": "shell_exec", "config": settings})
}

// StartConversation begins a conversation and gives its id.
func (w ShellAgent) StartConversation() string { return w.Host.Talk("dev").ID }

// Run runs a command that must come to an end.
func (w ShellAgent) Run(conversation, command string, more ...any) (out CommandResult) {
	w.Host.T.Helper()
	res, p, status := w.TryRun(conversation, command, more...)
	if status != http.StatusOK || res.IsError {
		w.Host.T.Fatalf("%s: %d %+v %s", command, status, p, res.Content)
	}
	if err := json.Unmarshal([]byte(res.Content), &out); err != nil {
		w.Host.T.Fatalf("%v: %s", err, res.Content)
	}
	return out
}

func (w ShellAgent) TryRun(conversation, command string, more ...any) (reeve.Result, api.Problem, int) {
	w.Host.T.Helper()
	args := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return TryCall(w.Host, "dev", Call{"tool": "shell_exec", "session": conversation, "args": args})
}

func (w ShellAgent) GetBranch(id string) (b reeve.Branch) {
	w.Host.T.Helper()
	w.Host.Want(200, &b, "GET", "/api/branches/"+id, nil)
	return b
}

func (w ShellAgent) Merge(id string) (m reeve.MergeResult, p api.Problem, status int) {
	w.Host.T.Helper()
	r := w.Host.Do("POST", "/api/branches/"+id+"/merge", map[string]any{})
	if r.Status < 300 {
		r.Decode(w.Host.T, &m)
	} else {
		r.Decode(w.Host.T, &p)
	}
	return m, p, r.Status
}

// ShellUnavailable gives why commands cannot be run on this machine, having checked that everybody is told so.
func ShellUnavailable(h *reevetest.Host) string {
	h.T.Helper()
	var tool reeve.Tool
	h.Want(200, &tool, "GET", "/api/tools/shell_exec", nil)
	var up api.DoctorReport
	h.Want(200, &up, "GET", "/api/doctor", nil)
	for _, c := range up.Checks {
		if c.Name == "sandbox" && c.OK != (tool.Broken == "") {
			h.T.Errorf("doctor says %+v, the tool %q", c, tool.Broken)
		}
	}
	if tool.Broken != "" {
		if _, p, _ := TryCall(h, "ops",
			Call{"tool": "shell_exec", "args": map[string]any{"command": "true"}}); p.Code != reeve.Unsupported {
			h.T.Errorf("%+v", p)
		}
	}
	return tool.Broken
}
