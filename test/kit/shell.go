package kit

import (
	"encoding/json"
	"net/http"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// ShellAgent is an agent named dev that runs commands on a project without approval.
type ShellAgent struct {
	Host  *reevetest.Host
	Agent reeve.Agent
}

// CallFileTool calls a file tool in a conversation and returns the content of its result, or the code and detail of the
// problem.
func (w ShellAgent) CallFileTool(conversation, tool string, args Call) (content string, r reeve.Result) {
	w.Host.T.Helper()
	r, p, status := TryCall(w.Host, "dev", Call{"tool": tool, "session": conversation, "args": args})
	if status != 200 {
		return string(p.Code) + " " + p.Detail, r
	}
	return r.Content, r
}

// Configure allows the agent to run commands with settings. Default: those of the project site.
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

// StartConversation begins a conversation with the agent and returns its id.
func (w ShellAgent) StartConversation() string { return w.Host.StartConversation("dev").ID }

// Run runs a command in a conversation and fails the test if it is refused. more has further arguments in pairs.
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

// TryRun runs a command in a conversation and returns the result, or the problem, with the status.
func (w ShellAgent) TryRun(conversation, command string, more ...any) (reeve.Result, api.Problem, int) {
	w.Host.T.Helper()
	args := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return TryCall(w.Host, "dev", Call{"tool": "shell_exec", "session": conversation, "args": args})
}

// GetBranch returns a branch.
func (w ShellAgent) GetBranch(id string) (b reeve.Branch) {
	w.Host.T.Helper()
	w.Host.Want(200, &b, "GET", "/api/branches/"+id, nil)
	return b
}

// Merge merges a branch and returns the result, or the problem, with the status.
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

// CommandResult is the result of shell_exec.
type CommandResult struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	TimedOut bool   `json:"timed_out"`
	Branch   string `json:"branch"`
	Commit   string `json:"commit"`
	Note     string `json:"note"`
}

// ShellUnavailable returns why commands cannot run on this machine, or "". It checks that the doctor, the tool and
// calls agree.
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
