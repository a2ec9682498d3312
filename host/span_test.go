package host_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// span is a span as a collector receives it.
type span struct {
	*trace.Span
	text   map[string]string
	number map[string]int64
}

// collect runs an OpenTelemetry collector, and gives what it was sent when it is asked.
func collect(t *testing.T) (url string, spans func() []span) {
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

// attributeText is an attribute's value as text; of a list, its parts.
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

// TestI19_EveryModelCallAndToolCallIsASpan reads the spans of a turn as a collector gets them: two questions to a model
// that has a price, and between them a call that costs something. They have the turn's span as their parent, say what
// was asked, answered and paid, and are as long as it took. What a person thinks of the turn is found under the same
// id.
func TestI19_EveryModelCallAndToolCallIsASpan(t *testing.T) {
	url, spans := collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	asked := 0
	h := pricedProvider(t, host.Config{Dir: t.TempDir()}, func(w io.Writer, _ string) {
		if asked++; asked == 1 {
			toolCall(w, "look", `{"at":"the sea"}`)
		}
		endAnswer(w, "done")
	}, tool("look", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		inv.Spend(0, 250)
		return "what was seen", nil
	}))
	h.Agent("bot", "look")
	d := over(h, speak(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || asked != 2 {
		t.Fatalf("%d questions, %+v", asked, d.Turn)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+d.ID+"/feedback", object{"score": 1, "comment": "well seen"})
	metrics := string(h.Do("GET", "/metrics", nil).Body)
	for _, want := range []string{`reeve_tool_attempts_total{code="",tool="user_defined"} 1`,
		`reeve_waiting{what="approvals"} 0`,
		`reeve_runs_ended_total{reason="user_initiated",state="completed"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
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
	if d.Spent.Micros != 4250 {
		t.Errorf("the turn spent %+v", d.Spent)
	}
}

// TestI19_FeedbackAttachesToATurn: what people think of a turn is read with it.
func TestI19_FeedbackAttachesToATurn(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: begin, text: done}\n")
	c := h.StartConversation("bot")
	rated, other := over(h, speak(h, c.ID, "begin").ID), over(h, speak(h, c.ID, "begin").ID)
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+rated.ID+"/feedback",
		object{"score": -1, "comment": "too short"})
	if got := detail(h, rated.ID).Feedback; len(got) != 1 || got[0].Comment != "too short" ||
		got[0].TurnID != rated.ID {
		t.Errorf("the turn has %+v", got)
	}
	if got := detail(h, other.ID).Feedback; len(got) != 0 {
		t.Errorf("another turn has %+v", got)
	}
}

// Spans name providers and models as the GenAI conventions do, have no empty attributes, and tell of calls that were
// refused too.
func TestI19_SpansByTheConventions(t *testing.T) {
	url, spans := collect(t)
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
	strict := tool("strict", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "", nil })
	strict.Parameters = json.RawMessage(`{"type":"object","required":["a"]}`)
	h := reevetest.Run(t, cfg, strict)
	bot := h.Agent("bot", "strict").ID
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		object{"name": "worse", "config": object{"model": "gemini/gemini-broken"}})
	over(h, speak(h, h.StartConversation("bot").ID, "hi").ID)
	over(h, speak(h, h.StartConversation("worse").ID, "hi").ID)
	h.Call(bot, "strict", object{"a": 1})
	h.Do("POST", "/api/agents/"+bot+"/calls", object{"tool": "strict", "args": object{"b": 2}})
	h.Do("POST", "/api/agents/"+bot+"/calls", object{"tool": "nosuch", "args": object{}})
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
	want("execute_tool strict", 1,
		map[string]string{"gen_ai.tool.call.arguments": `{"b":2}`, "error.type": "VALIDATION_ERROR",
			"reeve.refused_by": "arguments"})
	want("execute_tool nosuch", 0,
		map[string]string{"error.type": "NOT_FOUND", "reeve.refused_by": "lookup", "gen_ai.tool.name": "nosuch"})
}
