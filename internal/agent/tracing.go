package agent

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"reeve"
	"reeve/model"
)

// ModelCall describes one request to a model, for metrics.
type ModelCall struct {
	Requested string     // the model that was requested
	Provider  string     // provider of Model
	Model     string     // the model that answered; empty if none did
	Code      reeve.Code // empty on success
	Spent     reeve.Amount
	Usage     model.Usage
}

func (t *ModelRunner) getTracer() trace.Tracer {
	if t.Tracer == nil {
		return noop.Tracer{}
	}
	return t.Tracer
}

// Resolver returns the provider of a model and the provider's name for it.
type Resolver func(name string) (provider, own string)

// resolveModel returns the provider of a model and the provider's name for it. An unknown provider is "".
func (t *ModelRunner) resolveModel(name string) (provider, own string) {
	if t.Resolve == nil {
		return "", name
	}
	return t.Resolve(name)
}

// conventionalProviders maps provider names to those of the OpenTelemetry GenAI conventions, where they differ.
var conventionalProviders = map[string]string{"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}

// conventionalStops maps stop reasons to those of the OpenTelemetry GenAI conventions.
var conventionalStops = map[model.Stop]string{
	model.StopEnd: "stop", model.StopTools: "tool_call",
	model.StopLength: "length", model.StopRefused: "content_filter",
}

// spanAttributes are the attributes of a span.
type spanAttributes []attribute.KeyValue

// text adds an attribute, unless the value is empty.
func (a *spanAttributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}

func (a *spanAttributes) provider(name string) {
	a.text("gen_ai.provider.name", cmp.Or(conventionalProviders[name], name))
}

// traceRun wraps a run in a span that follows the GenAI conventions.
func (v *modelRun) traceRun(ctx context.Context, do func(context.Context) reeve.RunEnd) reeve.RunEnd {
	ctx, span := v.getTracer().Start(ctx, "invoke_agent "+v.agent.Name, trace.WithSpanKind(trace.SpanKindInternal))
	defer span.End()
	end := do(ctx)
	if !span.IsRecording() {
		return end
	}
	name := v.set.Model
	if v.base != nil {
		name = v.base.Model
	}
	provider, asked := v.resolveModel(name)
	a := spanAttributes{attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.Int("reeve.model_requests", end.ModelRequests)}
	a.provider(provider)
	a.text("gen_ai.request.model", asked)
	a.text("gen_ai.agent.id", v.agent.ID)
	a.text("gen_ai.agent.name", v.agent.Name)
	a.text("gen_ai.conversation.id", v.conversation())
	a.text("reeve.run.id", v.run.ID)
	a.text("reeve.reason", string(v.run.Reason))
	a.text("reeve.run.state", string(end.State))
	span.SetAttributes(a...)
	if end.Err != nil {
		span.SetAttributes(attribute.String("error.type", string(end.Err.Code)))
		span.SetStatus(codes.Error, end.Err.Message)
	}
	return end
}

// endRequestSpan ends the span of a model request.
func (v *modelRun) endRequestSpan(span trace.Span, r model.Request, provider, name string, a model.Answer, err error) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(v.requestAttributes(r, cmp.Or(a.Provider, provider), name, a)...)
	if err != nil {
		span.SetAttributes(attribute.String("error.type", string(reeve.CodeOf(err))))
		span.SetStatus(codes.Error, reeve.AsError(err).Message)
	}
}

// requestAttributes returns the span attributes of a request and its answer.
func (v *modelRun) requestAttributes(r model.Request, provider, name string, answer model.Answer) spanAttributes {
	a := spanAttributes{attribute.String("gen_ai.operation.name", "chat")}
	a.provider(provider)
	a.text("gen_ai.request.model", name)
	a.text("gen_ai.response.model", answer.Model)
	a.text("gen_ai.response.id", answer.ID)
	a.text("gen_ai.conversation.id", v.conversation())
	a.text("reeve.run.id", v.run.ID)
	if stop := conventionalStops[answer.Stop]; stop != "" {
		a = append(a, attribute.StringSlice("gen_ai.response.finish_reasons", []string{stop}))
	}
	if r.MaxTokens > 0 {
		a = append(a, attribute.Int("gen_ai.request.max_tokens", r.MaxTokens))
	}
	if r.Temperature != nil {
		a = append(a, attribute.Float64("gen_ai.request.temperature", *r.Temperature))
	}
	if answer.Usage != (model.Usage{}) {
		a = append(a, attribute.Int64("gen_ai.usage.input_tokens", answer.Usage.Input),
			attribute.Int64("gen_ai.usage.output_tokens", answer.Usage.Output),
			attribute.Int64("reeve.cost.micros", answer.Usage.Micros))
	}
	return a
}
