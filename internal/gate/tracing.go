package gate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"reeve"
)

// AttemptRecord is one attempt of a call, as those who measure see it.
type AttemptRecord struct {
	Tool  string
	Code  reeve.Code // empty when it succeeded
	Spent reeve.Amount
}

// observe wraps an attempt in a span by the GenAI conventions, and tells those who measure. What the span says of
// arguments and output is what is recorded of them: scrubbed.
func (a *Attempt) observe(ctx context.Context, n int, do func(context.Context) outcome) outcome {
	ctx, span := a.startSpan(ctx)
	o := do(ctx)
	seen := AttemptRecord{Tool: a.tool().ID, Spent: o.spent}
	if o.err != nil {
		seen.Code = o.err.Code
	}
	if span.IsRecording() {
		attrs := a.rec.spanAttributes(string(a.args))
		attrs.addText("gen_ai.tool.call.result", truncateText(o.out.content, 4000))
		span.SetAttributes(append(attrs, attribute.Int("reeve.attempt", n),
			attribute.Int64("reeve.cost.micros", o.spent.Micros))...)
		setSpanError(span, o.err)
	}
	span.End()
	if a.g.OnCall != nil {
		a.g.OnCall(seen)
	}
	return o
}

// traceRefusal gives a call that was refused a span of its own, with the refusal's code and the step of the gate that
// refused it.
func (r *Recorder) traceRefusal(ctx context.Context, why *reeve.Error) {
	_, span := r.startSpan(ctx)
	if span.IsRecording() {
		a := r.spanAttributes(string(r.call.Args))
		a.addText("reeve.refused_by", r.refusedBy().Name)
		span.SetAttributes(a...)
		setSpanError(span, why)
	}
	span.End()
}

// startSpan starts the span of a call. Its tool may be one that there is not.
func (d *Decision) startSpan(ctx context.Context) (context.Context, trace.Span) {
	if d.g.Tracer == nil {
		return ctx, noop.Span{}
	}
	return d.g.Tracer.Start(ctx, "execute_tool "+d.toolName(), trace.WithSpanKind(trace.SpanKindInternal))
}

// toolName is the name of the tool that is called, in a length that a span can carry.
func (d *Decision) toolName() string { return truncateText(d.redact(d.call.Tool), 128) }

// setSpanError says on a span why a call failed, if it did.
func setSpanError(span trace.Span, why *reeve.Error) {
	if why != nil {
		span.SetAttributes(attribute.String("error.type", string(why.Code)))
		span.SetStatus(codes.Error, truncateText(why.Message, 200))
	}
}

// spanAttributes says whose call it is, of which tool, and with which arguments.
func (r *Recorder) spanAttributes(args string) attributeList {
	a := attributeList{attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.type", "function")}
	a.addText("gen_ai.tool.name", r.toolName())
	if r.entry != nil {
		a.addText("gen_ai.tool.description", truncateText(r.tool().Description, 200))
	}
	a.addText("gen_ai.tool.call.id", r.call.Ref)
	a.addText("gen_ai.tool.call.arguments", truncateText(r.redactForLog(args), 4000))
	a.addText("gen_ai.agent.id", r.call.Agent)
	a.addText("gen_ai.conversation.id", r.call.Session)
	a.addText("reeve.run.id", r.call.Run)
	a.addText("reeve.call.id", r.callID)
	a.addText("reeve.operation.id", r.operationID())
	return a
}

// attributeList are the attributes of a span.
type attributeList []attribute.KeyValue

// text adds an attribute, unless there is nothing to say.
func (a *attributeList) addText(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}
