package httpapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// branchFixture has the name of a project, the path of its repository, and the ids of two branches.
type branchFixture struct{ project, path, branch, other string }

var missingBranch = branchFixture{project: "nothing", path: "/no/such/folder", branch: "br_none", other: "br_none"}

// createBranchFixture creates a project with two branches on which an agent has worked. It returns missingBranch where
// commands cannot be confined.
func createBranchFixture(t *testing.T, h *reevetest.Host) (x branchFixture) {
	t.Helper()
	x = branchFixture{project: "shopfront", path: filepath.Join(t.TempDir(), "site")}
	for dir := x.path; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", x.path}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, c := range decode[api.DoctorReport](t, h.Want(200, nil, "GET", "/api/doctor", nil)).Checks {
		if c.Name == "sandbox" && !c.OK {
			t.Log("branches are not tested, because commands cannot be confined: ", c.Detail)
			return missingBranch
		}
	}
	h.Want(201, nil, "POST", "/api/projects", object{"name": x.project, "path": x.path})
	agent := h.Agent("alphadev", "shell_exec")
	at := "/api/agents/" + agent.ID
	h.Want(200, nil, "PATCH", at, object{"kind": "engineer", "policy": object{"tools": object{"shell_exec": "allow"}}})
	h.Want(204, nil, "DELETE", at+"/tools/shell_exec", nil)
	h.Want(201, nil, "POST", at+"/tools", object{"tool_id": "shell_exec", "config": object{"project": x.project}})
	talk := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations",
		object{"agent": agent.ID, "title": "alpha's"})).ID
	for _, session := range []string{"", talk} {
		h.Want(200, nil, "POST", at+"/calls", object{"tool": "shell_exec", "session": session,
			"args": object{"command": "echo alpha > alpha.txt"}})
	}
	list := decode[api.BranchList](t, h.Want(200, nil, "GET", "/api/branches", nil)).Branches
	if len(list) != 2 {
		t.Fatalf("%d branches were created, want 2", len(list))
	}
	x.branch, x.other = list[0].ID, list[1].ID
	return x
}

func (x branchFixture) mask(s string) string {
	return strings.NewReplacer(x.branch, "#", x.other, "#", x.project, "#").Replace(s)
}

func (x branchFixture) samples(kind string) map[string]sample {
	project, branch := "/api/projects/"+x.project, "/api/branches/"+x.branch
	return map[string]sample{
		"listProjects":      {"/api/projects", nil, false, reeve.Viewer},
		"createProject":     {"/api/projects", object{"name": "made-" + kind, "path": x.path}, false, reeve.Owner},
		"getProject":        {project, nil, true, reeve.Viewer},
		"deleteProject":     {project, nil, true, reeve.Owner},
		"listBranches":      {"/api/branches", nil, false, reeve.Viewer},
		"getBranch":         {branch, nil, true, reeve.Viewer},
		"getBranchDiff":     {branch + "/diff", nil, true, reeve.Viewer},
		"listBranchCommits": {branch + "/log", nil, true, reeve.Viewer},
		"mergeBranch":       {branch + "/merge", object{}, true, reeve.Member},
		"discardBranch":     {"/api/branches/" + x.other + "/discard", nil, true, reeve.Member},
	}
}
