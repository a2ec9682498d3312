package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reeve/client"
	"reeve/host"
	"reeve/model"
)

// server is a Reeve server in a separate process.
type server struct {
	cmd   *exec.Cmd
	url   string
	token string
	api   *client.Client
}

// buildReeve builds the reeve command from this tree, once per run.
func buildReeve(ctx context.Context, c config) string {
	program := filepath.Join(c.dir, "reeve")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/reeve")
	build.Dir, build.Stderr = "..", os.Stderr
	check(build.Run())
	return program
}

// startReeve runs reeve serve on a data directory, and on a PostgreSQL database unless database is empty. It also
// returns the time from the start of the process to the response of /readyz.
func startReeve(ctx context.Context, program, dir, database string) (*server, time.Duration) {
	args := []string{"serve", "--dir", dir, "--listen", "127.0.0.1:0"}
	if database != "" {
		args = append(args, "--database", database)
	}
	start := time.Now()
	s := startServer(exec.CommandContext(ctx, program, args...), dir)
	resp := must(http.Get(s.url + "/readyz"))
	took := time.Since(start)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		check(fmt.Errorf("/readyz returned %s", resp.Status))
	}
	return s, took
}

// startBenchServer runs this program as a server with a model that answers immediately; see serve.
func startBenchServer(ctx context.Context, dir string) *server {
	cmd := exec.CommandContext(ctx, must(os.Executable()))
	cmd.Env = append(os.Environ(), serveDir+"="+dir)
	return startServer(cmd, dir)
}

const readyLine = "is ready at "

func startServer(cmd *exec.Cmd, dir string) *server {
	s := &server{cmd: cmd}
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), readyLine); ok {
			s.url = strings.TrimSpace(after)
		}
	}
	if s.url == "" {
		check(errors.Join(errors.New("the server ended before it was ready"), lines.Err(), cmd.Wait()))
	}
	s.token = strings.TrimSpace(string(must(os.ReadFile(filepath.Join(dir, "owner.token")))))
	s.api = must(client.New(client.Config{URL: s.url, Token: s.token}))
	return s
}

func (s *server) stop() {
	s.api.Close()
	http.DefaultClient.CloseIdleConnections()
	warn(errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait()))
}

// memory returns the resident memory of the server in MB: VmRSS for the current, VmHWM for the highest value.
func (s *server) memory(field string) (mb float64) {
	b := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			mb = float64(must(strconv.Atoi(strings.Fields(rest)[0]))) / 1024
		}
	}
	return mb
}

// serveDir is the environment variable with the data directory that makes this program run as a server.
const serveDir = "REEVE_BENCH_SERVE"

// serve runs a Reeve host like reeve serve, with an instant model and the step tool.
func serve(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	host.TuneGarbageCollector()
	h, err := host.New(ctx, host.Config{Dir: dir, Listen: "127.0.0.1:0", Model: instantModel{}, Rate: 1e6, Burst: 1e6,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := h.AddTool(stepTool()); err != nil {
		return errors.Join(err, h.Close())
	}
	return h.Run(ctx, func(url string) { fmt.Println(readyLine + url) })
}

// tokensPerSecond is the rate at which the instant model streams.
const tokensPerSecond = 20

// instantModel is a model that answers immediately. For the message "call" it calls write_file. For "stream N" it
// streams N tokens, each with its number and creation time. Otherwise it answers with one word.
type instantModel struct{}

func (instantModel) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	a := model.Answer{Provider: "bench", Model: "instant", Stop: model.StopEnd,
		Usage: model.Usage{Input: 10, Output: 10}}
	last := r.Messages[len(r.Messages)-1].Parts
	input := last[len(last)-1]
	emit := func(text string) {
		if watch != nil {
			watch(model.Delta{Type: model.TextDelta, Text: text})
		}
	}
	if input.Type != model.Result && input.Text == "call" {
		a.Stop = model.StopTools
		a.Parts = []model.Part{{Type: model.ToolCall, ID: "call_1", Name: "write_file",
			Args: json.RawMessage(`{"path":"/note.txt","content":"what a turn found out"}`)}}
		return a, nil
	}
	a.Parts = []model.Part{{Type: model.Text, Text: "Done."}}
	n, isStream := strings.CutPrefix(input.Text, "stream ")
	if !isStream {
		emit("Done.")
		return a, nil
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		return a, err
	}
	tick := time.NewTicker(time.Second / tokensPerSecond)
	defer tick.Stop()
	for i := range count {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return a, ctx.Err()
		}
		emit(fmt.Sprintf("%d@%d ", i, time.Now().UnixNano()))
	}
	return a, nil
}
