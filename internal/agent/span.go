package agent

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"reeve"
	"reeve/model"
)

// Asked is one question to a model, as those who measure see it.
type Asked struct {
	For      string     // the model that was asked for, as somebody named it
	Provider string     // of Model
	Model    string     // the one that answered; empty when none did
	Code     reeve.Code // empty when it was answered
	Spent    reeve.Amount
	Usage    model.Usage
}

func (t *Thinker) tracer() trace.Tracer {
	if t.Tracer == nil {
		return noop.Tracer{}
	}
	return t.Tracer
}

// whole wraps a run in a span by the GenAI conventions.
func (v *turn) whole(ctx context.Context, do func(context.Context) reeve.RunEnd) reeve.RunEnd {
	ctx, span := v.tracer().Start(ctx, "invoke_agent "+v.agent.Name, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.id", v.agent.ID), attribute.String("gen_ai.agent.name", v.agent.Name),
		attribute.String("gen_ai.conversation.id", v.conversation()), attribute.String("reeve.run.id", v.run.ID), attribute.String("reeve.reason", string(v.run.Reason))))
	defer span.End()
	end := do(ctx)
	span.SetAttributes(attribute.String("reeve.run.state", string(end.State)), attribute.Int("reeve.moves", end.Moves))
	if end.Err != nil {
		span.SetAttributes(attribute.String("error.type", string(end.Err.Code)))
		span.SetStatus(codes.Error, end.Err.Message)
	}
	return end
}

// asked wraps a question in a span, and tells those who measure.
func (v *turn) asked(ctx context.Context, r model.Request) (a model.Answer, spent reeve.Amount, err error) {
	ctx, span := v.tracer().Start(ctx, "chat "+r.Model, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	start := reeve.Monotonic()
	v.words.Reset()
	if a, err = v.Model.Answer(ctx, r, v.watch); err == nil {
		err = v.check(&a)
	}
	spent = a.Usage.Spent(reeve.Since(start))
	seen := Asked{For: r.Model, Provider: a.Provider, Model: a.Model, Spent: spent, Usage: a.Usage}
	if err != nil {
		seen.Code = reeve.CodeOf(err)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", a.Provider), attribute.String("gen_ai.request.model", r.Model),
			attribute.String("gen_ai.response.model", a.Model), attribute.String("gen_ai.response.id", a.ID), attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Stop)}),
			attribute.Int64("gen_ai.usage.input_tokens", a.Usage.Input), attribute.Int64("gen_ai.usage.output_tokens", a.Usage.Output),
			attribute.Int("gen_ai.request.max_tokens", r.MaxTokens), attribute.String("gen_ai.conversation.id", v.conversation()), attribute.String("reeve.run.id", v.run.ID),
			attribute.Int64("reeve.cost.micros", a.Usage.Micros))
		if err != nil {
			span.SetAttributes(attribute.String("error.type", string(seen.Code)))
			span.SetStatus(codes.Error, reeve.AsError(err).Message)
		}
	}
	if v.OnAnswer != nil {
		v.OnAnswer(seen)
	}
	return a, spent, err
}
