package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reeve/host"
	"reeve/model"
)

// talkDir is the variable that makes this program a server: its data directory.
const talkDir = "REEVE_BENCH_TALK"

// serveTalk serves a Reeve, as reeve serve does, whose model costs no time.
func serveTalk(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	host.CollectGarbage()
	h, err := host.New(ctx, host.Config{Dir: dir, Listen: "127.0.0.1:0", Mind: instant{}, Rate: 1e6, Burst: 1e6, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return h.Run(ctx, func(url string) { fmt.Println(url) })
}

// instant is a model that answers at once: it calls a tool when it is told to call, streams as many tokens as it is told to, each
// with its place and the moment it was made, and otherwise says a word.
type instant struct{}

func (instant) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	a := model.Answer{Provider: "bench", Model: "instant", Stop: model.StopEnd, Usage: model.Usage{Input: 10, Output: 10}}
	last := r.Messages[len(r.Messages)-1].Parts
	said := last[len(last)-1]
	say := func(text string) {
		if watch != nil {
			watch(model.Delta{Type: model.TextDelta, Text: text})
		}
	}
	text := "Done."
	switch n, streams := strings.CutPrefix(said.Text, "stream "); {
	case said.Type == model.Result:
	case said.Text == "call":
		a.Stop = model.StopTools
		a.Parts = []model.Part{{Type: model.ToolCall, ID: "call_1", Name: "write_file", Args: json.RawMessage(`{"path":"/note.txt","content":"what a turn found out"}`)}}
		return a, nil
	case said.Text == "delegate":
		a.Stop = model.StopTools
		a.Parts = []model.Part{{Type: model.ToolCall, ID: "call_1", Name: "delegate", Args: json.RawMessage(`{"agent":"helper","input":"speak"}`)}}
		return a, nil
	case streams:
		count, err := strconv.Atoi(n)
		if err != nil {
			return a, err
		}
		tick := time.NewTicker(time.Second / tokenPerSec)
		defer tick.Stop()
		for i := range count {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return a, ctx.Err()
			}
			say(fmt.Sprintf("%d@%d ", i, time.Now().UnixNano()))
		}
		a.Parts = []model.Part{{Type: model.Text, Text: text}}
		return a, nil
	}
	say(text)
	a.Parts = []model.Part{{Type: model.Text, Text: text}}
	return a, nil
}
