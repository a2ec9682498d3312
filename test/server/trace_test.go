package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// span is a span as a collector receives it.
type span struct {
	*trace.Span
	text   map[string]string
	number map[string]int64
}

// runCollector runs an OpenTelemetry collector. spans returns what it has received.
func runCollector(t *testing.T) (url string, spans func() []span) {
	t.Helper()
	var mu sync.Mutex
	var list []span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil {
			t.Errorf("what the collector was sent: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					v := span{s, map[string]string{}, map[string]int64{}}
					for _, a := range s.Attributes {
						v.text[a.Key], v.number[a.Key] = attributeText(a.Value), a.Value.GetIntValue()
					}
					list = append(list, v)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []span {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// attributeText returns the value of an attribute as text, lists included.
func attributeText(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_ArrayValue:
		var parts []string
		for _, p := range v.ArrayValue.GetValues() {
			parts = append(parts, attributeText(p))
		}
		return strings.Join(parts, ",")
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

// explainCall returns the explanation of a call.
func explainCall(h *reevetest.Host, call string) (x reeve.Explanation) {
	h.Want(http.StatusOK, &x, "GET", "/api/calls/"+call+"/explanation", nil)
	return x
}

// A collector gets the spans of a turn: two model calls with a price, and a tool call with a cost between them. They
// have the span of the turn as their parent, the request, answer and cost as attributes, and the right duration.
// Feedback about the turn has the same id.
func TestI19_EveryModelCallAndToolCallIsASpan(t *testing.T) {
	url, spans := runCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	asked := 0
	h := kit.RunWithPricedProvider(t, host.Config{Dir: t.TempDir()}, func(w io.Writer, _ string) {
		if asked++; asked == 1 {
			kit.WriteToolCall(w, "look", `{"at":"the sea"}`)
		}
		kit.WriteLastChunk(w, "done")
	}, kit.Tool("look", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		inv.Spend(0, 250)
		return "what was seen", nil
	}))
	h.Agent("bot", "look")
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || asked != 2 {
		t.Fatalf("%d questions, %+v", asked, d.Turn)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+d.ID+"/feedback",
		kit.Object{"score": 1, "comment": "well seen"})
	metrics := string(h.Do("GET", "/metrics", nil).Body)
	for _, want := range []string{`reeve_tool_attempts_total{code="",tool="user_defined"} 1`,
		`reeve_waiting{what="approvals"} 0`,
		`reeve_runs_ended_total{reason="user_initiated",state="completed"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	var log api.MessageList
	h.Want(http.StatusOK, &log, "GET", "/api/agents/bot/messages?run="+d.ID, nil)
	i := slices.IndexFunc(log.Messages, func(m reeve.Message) bool { return m.Kind == reeve.Action })
	traced := explainCall(h, log.Messages[i].ID).TraceID
	h.Stop() // sends what is left
	byKind := map[string][]span{}
	for _, s := range spans() {
		byKind[s.text["gen_ai.operation.name"]] = append(byKind[s.text["gen_ai.operation.name"]], s)
	}
	turns, questions, calls := byKind["invoke_agent"], byKind["chat"], byKind["execute_tool"]
	if len(turns) != 1 || len(questions) != 2 || len(calls) != 1 {
		t.Fatalf("%d turns, %d questions, %d calls", len(turns), len(questions), len(calls))
	}
	for _, s := range append(questions, calls...) {
		if !bytes.Equal(s.TraceId, turns[0].TraceId) || !bytes.Equal(s.ParentSpanId, turns[0].SpanId) {
			t.Errorf("%s is not the turn's", s.Name)
		}
		if s.text["reeve.run.id"] != d.ID || s.StartTimeUnixNano < turns[0].StartTimeUnixNano ||
			s.EndTimeUnixNano <= s.StartTimeUnixNano || s.EndTimeUnixNano > turns[0].EndTimeUnixNano {
			t.Errorf("%s of run %s took from %d to %d", s.Name, s.text["reeve.run.id"], s.StartTimeUnixNano,
				s.EndTimeUnixNano)
		}
	}
	for _, q := range questions {
		if q.number["gen_ai.usage.input_tokens"] != 100 || q.number["gen_ai.usage.output_tokens"] != 50 ||
			q.number["reeve.cost.micros"] != 2000 {
			t.Errorf("the question says %v", q.number)
		}
	}
	call := calls[0]
	if call.text["gen_ai.tool.call.arguments"] != `{"at":"the sea"}` ||
		!strings.Contains(call.text["gen_ai.tool.call.result"], "what was seen") ||
		call.text["gen_ai.tool.call.id"] == "" || call.number["reeve.cost.micros"] != 250 {
		t.Errorf("the call says %v %v", call.text, call.number)
	}
	if want := hex.EncodeToString(turns[0].TraceId); traced != want {
		t.Errorf("the explanation of the call names trace %q, want %s", traced, want)
	}
	if id := call.text["reeve.call.id"]; id != "" && id != log.Messages[i].ID {
		t.Errorf("the span names call %s, want %s", id, log.Messages[i].ID)
	}
	if d.Spent.Micros != 4250 {
		t.Errorf("the turn spent %+v", d.Spent)
	}
}

// Feedback about a turn is read with it.
func TestI19_FeedbackAttachesToATurn(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: begin, text: done}\n")
	c := h.StartConversation("bot")
	rated, other := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "begin").ID),
		kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "begin").ID)
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+rated.ID+"/feedback",
		kit.Object{"score": -1, "comment": "too short"})
	if got := kit.GetTurn(h, rated.ID).Feedback; len(got) != 1 || got[0].Comment != "too short" ||
		got[0].TurnID != rated.ID {
		t.Errorf("the turn has %+v", got)
	}
	if got := kit.GetTurn(h, other.ID).Feedback; len(got) != 0 {
		t.Errorf("another turn has %+v", got)
	}
}

// Spans name providers and models as the GenAI conventions do, have no empty attributes, and include refused calls.
func TestI19_SpansFollowTheGenAIConventions(t *testing.T) {
	url, spans := runCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "broken") {
			http.Error(w, `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"responseId":"r1","modelVersion":"gemini-3.5-flash","candidates":[`+
			`{"content":{"role":"model","parts":[{"text":"Hello."}]},"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}`+"\n\n")
	}))
	defer far.Close()
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Gemini, cfg.Models.Default = model.Endpoint{URL: far.URL, Key: "k"}, "gemini/gemini-3.5-flash"
	strict := kit.Tool("strict", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "", nil })
	strict.Parameters = json.RawMessage(`{"type":"object","required":["a"]}`)
	h := reevetest.Run(t, cfg, strict)
	bot := h.Agent("bot", "strict").ID
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "worse", "config": kit.Object{"model": "gemini/gemini-broken"}})
	kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hi").ID)
	kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("worse").ID, "hi").ID)
	traced := explainCall(h, h.Call(bot, "strict", kit.Object{"a": 1}).CallID).TraceID
	h.Do("POST", "/api/agents/"+bot+"/calls", kit.Object{"tool": "strict", "args": kit.Object{"b": 2}})
	h.Do("POST", "/api/agents/"+bot+"/calls", kit.Object{"tool": "nosuch", "args": kit.Object{}})
	h.Stop() // sends what is left
	all := map[string][]span{}
	for _, s := range spans() {
		all[s.Name] = append(all[s.Name], s)
		for key, value := range s.text {
			if value == "" || value == "[]" {
				t.Errorf("%s has an empty %s", s.Name, key)
			}
		}
	}
	want := func(name string, at int, attributes map[string]string) {
		t.Helper()
		list := all[name]
		if len(list) <= at {
			t.Errorf("%d spans are called %q; all are %+v", len(list), name, all)
			return
		}
		for key, value := range attributes {
			if list[at].text[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, list[at].text[key], value)
			}
		}
		if _, fails := attributes["error.type"]; fails != (list[at].Status.GetCode() == trace.Status_STATUS_CODE_ERROR) {
			t.Errorf("%s: the status is %v", name, list[at].Status)
		}
	}
	want("chat gemini-3.5-flash", 0,
		map[string]string{"gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-3.5-flash",
			"gen_ai.response.model": "gemini-3.5-flash", "gen_ai.response.id": "r1",
			"gen_ai.response.finish_reasons": "stop"})
	want("chat gemini-broken", 0,
		map[string]string{"gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-broken",
			"error.type": "MODEL_FAILED"})
	want("invoke_agent bot", 0, map[string]string{"gen_ai.provider.name": "gcp.gemini",
		"gen_ai.request.model": "gemini-3.5-flash", "gen_ai.agent.name": "bot"})
	want("execute_tool strict", 0, map[string]string{"gen_ai.tool.name": "strict", "gen_ai.agent.id": bot})
	if got := hex.EncodeToString(all["execute_tool strict"][0].TraceId); got != traced {
		t.Errorf("a call over REST has trace %s; its explanation names %q", got, traced)
	}
	want("execute_tool strict", 1,
		map[string]string{"gen_ai.tool.call.arguments": `{"b":2}`, "error.type": "VALIDATION_ERROR",
			"reeve.refused_by": "arguments"})
	want("execute_tool nosuch", 0,
		map[string]string{"error.type": "NOT_FOUND", "reeve.refused_by": "lookup", "gen_ai.tool.name": "nosuch"})
}
