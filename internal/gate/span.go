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

// observed wraps an attempt in a span by the GenAI conventions, and tells those who measure. What the span says of arguments and
// output is what is recorded of them: scrubbed.
func (p *pass) observed(ctx context.Context, n int, do func(context.Context) outcome) outcome {
	var span trace.Span = noop.Span{}
	if p.g.Tracer != nil {
		ctx, span = p.g.Tracer.Start(ctx, "execute_tool "+p.tool().ID, trace.WithSpanKind(trace.SpanKindInternal))
	}
	o := do(ctx)
	seen := Seen{Tool: p.tool().ID, Spent: o.spent}
	if o.err != nil {
		seen.Code = o.err.Code
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", p.tool().ID),
			attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.tool.description", clip(p.tool().Description, 200)),
			attribute.String("gen_ai.tool.call.id", p.call.Ref), attribute.String("gen_ai.tool.call.arguments", clip(p.scrub(string(p.args)), 4000)),
			attribute.String("gen_ai.tool.call.result", clip(o.out.content, 4000)), attribute.String("gen_ai.agent.id", p.call.Agent),
			attribute.String("gen_ai.conversation.id", p.call.Session), attribute.String("reeve.run.id", p.call.Run), attribute.String("reeve.call.id", p.id),
			attribute.String("reeve.operation.id", p.operationID()), attribute.Int("reeve.attempt", n), attribute.Int64("reeve.cost.micros", o.spent.Micros))
		if o.err != nil {
			span.SetAttributes(attribute.String("error.type", string(o.err.Code)))
			span.SetStatus(codes.Error, clip(o.err.Message, 200))
		}
	}
	span.End()
	if p.g.OnCall != nil {
		p.g.OnCall(seen)
	}
	return o
}
