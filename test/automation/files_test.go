package automation_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Files that the script of an automation writes are visible to later runs of any version and, in pages, to people.
func TestK32_FilesOfAnAutomationAreFound(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		h := reevetest.StartWith(t, cfg)
		a := &kit.Automation{Host: h, T: t, Name: "tidy"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": `
			for (const day of ['mon', 'tue', 'wed']) {
				await Items.withItem(day, day, async (ctx) => {
					if (!ctx.item.isDone) await Session.writeFile({ path: '/days/' + day + '.md', content: '# ' + day });
				});
			}`})
		if run := a.StartRun(kit.Call{}); run.Run.State != reeve.RunCompleted {
			t.Fatalf("%+v", run.Run)
		}
		var list api.SessionFileList
		var seen []string
		for more := true; more; more = list.Next != "" {
			path := a.Path("/files?limit=2&cursor=" + url.QueryEscape(list.Next))
			list = api.SessionFileList{}
			h.Want(200, &list, "GET", path, nil)
			for _, f := range list.Files {
				seen = append(seen, fmt.Sprint(f.Path, " ", f.Size))
			}
		}
		if got := strings.Join(seen, ", "); got != "/days/mon.md 5, /days/tue.md 5, /days/wed.md 5" {
			t.Errorf("its files: %s", got)
		}
		var f api.SessionFileContent
		h.Want(200, &f, "GET", a.Path("/files/content?path=/days/tue.md"), nil)
		if f.Content != "# tue" || f.Path != "/days/tue.md" {
			t.Errorf("%+v", f)
		}
		h.Want(http.StatusNotFound, nil, "GET", a.Path("/files/content?path=/days/sun.md"), nil)
		h.Want(http.StatusBadRequest, nil, "GET", a.Path("/files?cursor=days"), nil)
		a.SaveVersion(`await Session.readFile({ path: '/days/wed.md' })`, false)
		if run := a.StartRun(kit.Call{}); run.Run.Output != "# wed" {
			t.Errorf("a later run read %q: %s", run.Run.Output, run.Run.Message)
		}
		// of a session of the caller's own
		if res := h.Call("tidy", "read_file", kit.Object{"path": "/days/mon.md"}); !res.IsError {
			t.Errorf("%+v", res)
		}
	})
}
