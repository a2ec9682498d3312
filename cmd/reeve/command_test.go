package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// output collects the output of a running command.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// execCommand runs a command against a server and returns the exit code.
func execCommand(t *testing.T, h *reevetest.Host, out, errs io.Writer, args ...string) int {
	t.Helper()
	home := t.TempDir()
	return run(t.Context(), append(args, "--url", h.URL), environment{in: strings.NewReader(""), out: out, err: errs,
		env:  func(name string) string { return map[string]string{"REEVE_TOKEN": h.Token}[name] },
		home: func() (string, error) { return home, nil }})
}

// TestI07_MailSearchUsesDefaultLimit checks that "reeve mail search" uses the agent's default_limit without
// --limit, and rejects an invalid --limit. Other agents have their own default_limit.
func TestI07_MailSearchUsesDefaultLimit(t *testing.T) {
	h := reevetest.Start(t)
	if _, err := h.InstallSampleMail(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	h.Agent("plain", "email_search")
	h.Agent("eager")
	attach := func(config string) (code int, errs string) {
		var out, stderr output
		code = execCommand(t, h, &out, &stderr, "agents", "attach", "eager", "email_search", "--config", config)
		return code, stderr.String()
	}
	for _, bad := range []string{"0", "-1", "51", `"x"`} {
		if code, errs := attach(`{"default_limit":` + bad + `}`); code == 0 ||
			!strings.Contains(errs, "default_limit") {
			t.Errorf("a default_limit of %s: exit code %d, %s", bad, code, errs)
		}
	}
	if code, errs := attach(`{"default_limit":20}`); code != 0 {
		t.Fatal(errs)
	}
	search := func(agent string, more ...string) (found, code int, errs string) {
		var out, stderr output
		code = execCommand(t, h, &out, &stderr,
			append([]string{"mail", "search", "fernhill", "--agent", agent, "--json"},
				more...)...)
		var page mailPage
		if code == 0 {
			if err := json.Unmarshal([]byte(out.String()), &page); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
		}
		return len(page.Emails), code, stderr.String() + out.String()
	}
	for _, c := range []struct {
		agent string
		more  []string
		want  int
	}{{"eager", nil, 20}, {"eager", []string{"--limit", "5"}, 5}, {"eager", []string{"--limit", "22"}, 22},
		{"plain", nil, 10}} {
		if n, code, errs := search(c.agent, c.more...); n != c.want || code != 0 {
			t.Errorf("%s %v: %d mails, want %d: %s", c.agent, c.more, n, c.want, errs)
		}
	}
	for _, bad := range []any{0, -1, 51, "x"} {
		r := h.Do("POST", "/api/agents/eager/calls", map[string]any{"tool": "email_search",
			"args": map[string]any{"query": "fernhill", "limit": bad}})
		if !strings.Contains(string(r.Body), `"VALIDATION_ERROR"`) || !strings.Contains(string(r.Body), "/limit") {
			t.Errorf("a limit of %v: %s", bad, r.Body)
		}
	}
}

// TestI20_QuestionsAreAskedInParallelAndOnce runs a task set against a model that answers only some time after the
// fourth request: four questions are asked in parallel, and never more. A second run with one more question asks only
// that question. The report has a line for each task, the scores, and a bar for each score.
func TestI20_QuestionsAreAskedInParallelAndOnce(t *testing.T) {
	const parallel, questions = 4, 8
	var mu sync.Mutex
	waiting, most, asked := 0, 0, 0
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		waiting++
		most = max(most, waiting)
		group, last := full, asked%parallel == 0 || asked > questions
		if last {
			full = make(chan struct{})
		}
		mu.Unlock()
		if last { // time for a fifth request, if there is one
			time.AfterFunc(300*time.Millisecond, func() { close(group) })
		}
		select {
		case <-group:
		case <-time.After(20 * time.Second):
			t.Error("four questions were not asked in parallel")
		case <-r.Context().Done():
		}
		mu.Lock()
		waiting--
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"a","choices":[{"index":0,`+
			`"delta":{"content":"It is right, see <1@x>"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":10,"completion_tokens":5}}`+"\n\n")
	}))
	t.Cleanup(server.Close)
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Servers, cfg.Models.Default = map[string]model.Endpoint{"acme": {URL: server.URL}}, "acme/x"
	h := reevetest.Run(t, cfg)
	h.Agent("clerk")
	file := filepath.Join(t.TempDir(), "tasks.jsonl")
	var lines strings.Builder
	runEval := func(n int) (string, string) {
		for i := strings.Count(lines.String(), "\n"); i < n; i++ {
			answer := []string{"It is right, see <1@x>", "right", "wrong"}[i%3]
			fmt.Fprintf(&lines, `{"id":"q%d","question":"Number %d?","answer":%q,"sources":["<1@x>","<2@x>"]}`+"\n", i,
				i, answer)
		}
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs output
		if code := execCommand(t, h, &out, &errs, "eval", file, "--agent", "clerk", "--parallel", fmt.Sprint(parallel)); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out.String(), errs.String())
		}
		return out.String(), errs.String()
	}
	report, _ := runEval(questions)
	if asked != questions || most != parallel {
		t.Errorf("%d questions, at most %d at once", asked, most)
	}
	row := func(report, start string) string {
		for line := range strings.Lines(report) {
			if strings.HasPrefix(line, start+" ") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	for start, want := range map[string]string{"TASK": "TASK STATE EXACT CONTAINS RECALL", "q0": "q0 done yes yes 50%",
		"q1": "q1 done no yes 50%", "q2": "q2 done no no 50%"} {
		if got := row(report, start); !strings.HasPrefix(got, want) {
			t.Errorf("report has %q, want %q", got, want)
		}
	}
	for start, want := range map[string]string{"exact": " 37.5%", "contains": " 75.0%", "source recall": " 50.0%"} {
		if got := row(report, start); !strings.HasSuffix(got, want) || len([]rune(got)) < len(start)+10 {
			t.Errorf("bar of %s: %q", start, got)
		}
	}
	if report, _ = runEval(questions + 1); asked != questions+1 || !strings.HasPrefix(row(report, "q8"),
		"q8 done no no 50%") ||
		!strings.HasPrefix(row(report, "q0"), "q0 done yes yes 50%") {
		t.Errorf("with one more question %d were asked:\n%s", asked, report)
	}
}

// TestK25_CommandShowsProgress follows a run while its second item is open. The command shows the number of
// finished items and the total, the rate, the cost and the current item, and the API returns the same values.
func TestK25_CommandShowsProgress(t *testing.T) {
	var errs, out output
	var h *reevetest.Host
	var during reeve.AutomationRun
	send := reeve.Tool{ID: "mail_send", Pack: "mail", Description: "Sends.", Effect: reeve.Keyed,
		Tier:       reeve.SideEffecting,
		Cost:       reeve.Amount{Micros: 5000},
		Parameters: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`),
		Handler: func(_ context.Context, inv *reeve.Invocation) (any, error) {
			inv.Spend(0, 2500)
			if strings.Contains(string(inv.Args), `"b"`) {
				for end := time.Now().Add(20 * time.Second); !strings.Contains(errs.String(), "Letter b") &&
					time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				var list api.AutomationRunList
				h.Want(200, &list, "GET", "/api/automations/mailer/runs", nil)
				h.Want(200, &during, "GET", "/api/automations/mailer/runs/"+list.Runs[0].Run.ID, nil)
			}
			return "sent", nil
		}}
	h = reevetest.Run(t, host.Config{Dir: t.TempDir()}, send)
	h.Want(201, nil, "POST", "/api/automations", map[string]any{"name": "mailer", "tools": []string{"mail_send"},
		"source": `
		Items.total(3);
		for (const id of ['a', 'b', 'c'])
			await Items.withItem(id, 'Letter ' + id, async () => { await Mail.send({ to: id }) })`})
	if code := execCommand(t, h, &out, &errs, "automations", "run", "mailer", "--wait"); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out.String(), errs.String())
	}
	p := during.Script.Progress
	if p.Done != 1 || p.Total != 3 || p.Current != "Letter b" || p.Rate <= 0 || p.Spent.Micros != 2500 {
		t.Errorf("the API returned %+v", p)
	}
	var shown string
	for _, line := range strings.FieldsFunc(errs.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if strings.Contains(line, "Letter b") {
			shown = line
		}
	}
	for _, part := range []string{"running", "1 of 3 items", "/s", "cost 0.0025", "Letter b"} {
		if !strings.Contains(shown, part) {
			t.Errorf("the command showed %q, without %s", shown, part)
		}
	}
	if all := errs.String() + out.String(); !strings.Contains(all, "3 of 3 items") {
		t.Errorf("at the end it showed %q", all)
	}
}
