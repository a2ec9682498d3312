package gate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"reeve"
)

// Seen is one attempt of a call, as those who measure see it.
type Seen struct {
	Tool  string
	Code  reeve.Code // empty when it succeeded
	Spent reeve.Amount
}

// observed wraps an attempt in a span by the GenAI conventions, and tells those who measure. The span
// holds arguments and output without secrets.
func (p *pass) observed(ctx context.Context, n int, do func(context.Context) outcome) outcome {
	ctx, span := p.span(ctx)
	o := do(ctx)
	seen := Seen{Tool: p.tool().ID, Spent: o.spent}
	if o.err != nil {
		seen.Code = o.err.Code
	}
	if span.IsRecording() {
		a := p.attributes(string(p.args))
		a.text("gen_ai.tool.call.result", clip(o.out.content, 4000))
		span.SetAttributes(append(a, attribute.Int("reeve.attempt", n),
			attribute.Int64("reeve.cost.micros", o.spent.Micros))...)
		failSpan(span, o.err)
	}
	span.End()
	if p.g.OnCall != nil {
		p.g.OnCall(seen)
	}
	return o
}

// spanRefusal gives a call that was refused a span of its own, with the refusal's code and the step of the gate that
// refused it.
func (p *pass) spanRefusal(ctx context.Context, why *reeve.Error) {
	_, span := p.span(ctx)
	if span.IsRecording() {
		a := p.attributes(string(p.call.Args))
		a.text("reeve.refused_by", p.refusedBy().Name)
		span.SetAttributes(a...)
		failSpan(span, why)
	}
	span.End()
}

// span starts the span of a call. Its tool may be one that there is not.
func (p *pass) span(ctx context.Context) (context.Context, trace.Span) {
	if p.g.Tracer == nil {
		return ctx, noop.Span{}
	}
	return p.g.Tracer.Start(ctx, "execute_tool "+p.toolName(), trace.WithSpanKind(trace.SpanKindInternal))
}

// toolName is the name of the tool that is called, in a length that a span can carry.
func (p *pass) toolName() string { return clip(p.redact(p.call.Tool), 128) }

// failSpan says on a span why a call failed, if it did.
func failSpan(span trace.Span, why *reeve.Error) {
	if why != nil {
		span.SetAttributes(attribute.String("error.type", string(why.Code)))
		span.SetStatus(codes.Error, clip(why.Message, 200))
	}
}

// attributes says whose call it is, of which tool, and with which arguments.
func (p *pass) attributes(args string) spanAttributes {
	a := spanAttributes{attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.type", "function")}
	a.text("gen_ai.tool.name", p.toolName())
	if p.entry != nil {
		a.text("gen_ai.tool.description", clip(p.tool().Description, 200))
	}
	a.text("gen_ai.tool.call.id", p.call.Ref)
	a.text("gen_ai.tool.call.arguments", clip(p.redactForLog(args), 4000))
	a.text("gen_ai.agent.id", p.call.Agent)
	a.text("gen_ai.conversation.id", p.call.Session)
	a.text("reeve.run.id", p.call.Run)
	a.text("reeve.call.id", p.id)
	a.text("reeve.operation.id", p.operationID())
	return a
}

// spanAttributes are the attributes of a span.
type spanAttributes []attribute.KeyValue

// text adds an attribute, unless there is nothing to say.
func (a *spanAttributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}
