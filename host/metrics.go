package host

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"reeve"
	"reeve/internal/agent"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// metrics are the Prometheus metrics of /metrics. They reveal no user data: tools that users define share one label,
// and so do unknown models.
type metrics struct {
	registry     *prometheus.Registry
	calls        *prometheus.CounterVec
	callSeconds  *prometheus.HistogramVec
	modelCalls   *prometheus.CounterVec
	modelSeconds *prometheus.HistogramVec
	modelTokens  *prometheus.CounterVec
	modelMicros  *prometheus.CounterVec
	runs         *prometheus.CounterVec
	builtin      map[string]bool // ids of built-in tools
}

var secondBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

func newMetrics(db *store.DB) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "reeve", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "reeve", Name: name, Help: help,
			Buckets: secondBuckets}, labels)
	}
	m := &metrics{registry: prometheus.NewRegistry(), builtin: map[string]bool{},
		calls: counter("tool_attempts_total", "Attempts of tool calls, by tool and code; no code means success.",
			"tool", "code"),
		callSeconds: histogram("tool_seconds", "Duration of attempts of tool calls.", "tool"),
		modelCalls: counter("model_answers_total",
			"Model calls, by model and code; no code means success.", "model", "code"),
		modelSeconds: histogram("model_seconds", "Duration of model calls.", "model"),
		modelTokens:  counter("model_tokens_total", "Tokens read and written by models.", "model", "kind"),
		modelMicros:  counter("model_micros_total", "Cost of model calls, in millionths of a dollar.", "model"),
		runs:         counter("runs_ended_total", "Runs that ended, by reason and state.", "reason", "state")}
	m.registry.MustRegister(queueCollector{db}, m.calls, m.callSeconds, m.modelCalls, m.modelSeconds, m.modelTokens,
		m.modelMicros, m.runs,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// addBuiltin registers a tool that is counted under its own name.
func (m *metrics) addBuiltin(id string) { m.builtin[id] = true }

// handler returns the handler of /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) recordCall(s gate.AttemptRecord) {
	name := s.Tool
	if !m.builtin[name] {
		name = "user_defined"
	}
	m.calls.WithLabelValues(name, string(s.Code)).Inc()
	m.callSeconds.WithLabelValues(name).Observe(float64(s.Spent.Millis) / 1000)
}

// modelNamer returns the canonical name of the model that answered.
type modelNamer func(asked, provider, answered string) string

// recordModelCall counts a model call. Without a modelNamer, all models are counted as other.
func (m *metrics) recordModelCall(a agent.ModelCall, canonicalName modelNamer) {
	name := "other"
	if canonicalName != nil {
		name = canonicalName(a.Requested, a.Provider, a.Model)
	}
	m.modelCalls.WithLabelValues(name, string(a.Code)).Inc()
	m.modelSeconds.WithLabelValues(name).Observe(float64(a.Spent.Millis) / 1000)
	m.modelTokens.WithLabelValues(name, "input").Add(float64(a.Usage.Input))
	m.modelTokens.WithLabelValues(name, "output").Add(float64(a.Usage.Output))
	m.modelMicros.WithLabelValues(name).Add(float64(a.Usage.Micros))
}

func (m *metrics) recordRunEnd(run reeve.Run) {
	if run.State.IsFinal() {
		m.runs.WithLabelValues(string(run.Reason), string(run.State)).Inc()
	}
}

// queueCollector reads the number of waiting items from the store on each scrape.
type queueCollector struct{ db *store.DB }

var waitingDesc = prometheus.NewDesc("reeve_waiting",
	"Items that wait or are in progress: queued wakes, running and parked runs, operations that need a person, open "+
		"operations, approvals.", []string{"what"}, nil)

// Describe implements prometheus.Collector.
func (queueCollector) Describe(c chan<- *prometheus.Desc) { c <- waitingDesc }

// Collect implements prometheus.Collector.
func (g queueCollector) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var v store.Gauges
	if err := g.db.View(ctx, func(s *store.Snap) (err error) {
		v, err = s.System().Gauges(ctx)
		return err
	}); err != nil {
		c <- prometheus.NewInvalidMetric(waitingDesc, err)
		return
	}
	for what, n := range map[string]int64{"wakes": v.Wakes, "runs": v.Runs, "runs_parked": v.Parked,
		"operations_for_a_person": v.WaitingOperations, "operations_open": v.OpenOperations,
		"approvals": v.PendingApprovals} {
		c <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), what)
	}
}
