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

// metrics is what /metrics shows. It says nothing of anybody's data: tools that people define are counted together, and
// so are models that nobody knows.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	asked    *prometheus.CounterVec
	thought  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	micros   *prometheus.CounterVec
	runs     *prometheus.CounterVec
	built    map[string]bool // the tools that every workspace has
}

var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

func newMetrics(db *store.DB) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "reeve", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "reeve", Name: name, Help: help,
			Buckets: seconds}, labels)
	}
	m := &metrics{registry: prometheus.NewRegistry(), built: map[string]bool{},
		calls: counter("tool_attempts_total", "Attempts of tool calls, by tool and code; no code means success.",
			"tool", "code"),
		took: histogram("tool_seconds", "How long attempts of tool calls took.", "tool"),
		asked: counter("model_answers_total",
			"Questions to models, by model and code; no code means that it answered.", "model", "code"),
		thought: histogram("model_seconds", "How long models took to answer.", "model"),
		tokens:  counter("model_tokens_total", "Tokens read and written by models.", "model", "kind"),
		micros:  counter("model_micros_total", "What models cost, in millionths of a dollar.", "model"),
		runs:    counter("runs_ended_total", "Runs that ended, by reason and state.", "reason", "state")}
	m.registry.MustRegister(gauges{db}, m.calls, m.took, m.asked, m.thought, m.tokens, m.micros, m.runs,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// addBuiltin counts a tool under its own name.
func (m *metrics) addBuiltin(id string) { m.built[id] = true }

// handler serves them.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) called(s gate.AttemptRecord) {
	name := s.Tool
	if !m.built[name] {
		name = "user_defined"
	}
	m.calls.WithLabelValues(name, string(s.Code)).Inc()
	m.took.WithLabelValues(name).Observe(float64(s.Spent.Millis) / 1000)
}

// modelNamer names the model that answered.
type modelNamer func(asked, provider, answered string) string

// answered counts a question to a model. Without a namer, all models are counted together.
func (m *metrics) answered(a agent.ModelCall, known modelNamer) {
	name := "other"
	if known != nil {
		name = known(a.For, a.Provider, a.Model)
	}
	m.asked.WithLabelValues(name, string(a.Code)).Inc()
	m.thought.WithLabelValues(name).Observe(float64(a.Spent.Millis) / 1000)
	m.tokens.WithLabelValues(name, "input").Add(float64(a.Usage.Input))
	m.tokens.WithLabelValues(name, "output").Add(float64(a.Usage.Output))
	m.micros.WithLabelValues(name).Add(float64(a.Usage.Micros))
}

func (m *metrics) ended(run reeve.Run) {
	if run.State.Final() {
		m.runs.WithLabelValues(string(run.Reason), string(run.State)).Inc()
	}
}

// gauges reads what waits when it is asked.
type gauges struct{ db *store.DB }

var waiting = prometheus.NewDesc("reeve_waiting",
	"What waits or is under way: wakes queued, runs running and parked, operations for a person, operations open, "+
		"approvals.", []string{"what"}, nil)

// Describe says what there is to collect.
func (gauges) Describe(c chan<- *prometheus.Desc) { c <- waiting }

// Collect reads it.
func (g gauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var v store.Gauges
	if err := g.db.View(ctx, func(s *store.Snap) (err error) {
		v, err = s.System().Gauges(ctx)
		return err
	}); err != nil {
		c <- prometheus.NewInvalidMetric(waiting, err)
		return
	}
	for what, n := range map[string]int64{"wakes": v.Wakes, "runs": v.Runs, "runs_parked": v.Parked,
		"operations_for_a_person": v.Waiting, "operations_open": v.Open,
		"approvals": v.Approval} {
		c <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, float64(n), what)
	}
}
