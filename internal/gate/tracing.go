package gate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"reeve"
)

// AttemptRecord describes one attempt of a call, for metrics.
type AttemptRecord struct {
	Tool  string
	Code  reeve.Code // empty after a success
	Spent reeve.Amount
}

// reportAttempt ends the span of an attempt and calls OnCall. Arguments and output in the span are redacted.
func (a *Attempt) reportAttempt(span trace.Span, n int, o outcome) {
	record := AttemptRecord{Tool: a.tool().ID, Spent: o.spent}
	if o.err != nil {
		record.Code = o.err.Code
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
		a.g.OnCall(record)
	}
}

// traceRefusal writes a span for a refused call, with the code of the refusal and the step that refused the call.
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

// startTrace starts a trace for a call that is not part of one, such as a call over REST. The span of each attempt and
// refusal becomes its child.
func (g *Gate) startTrace(ctx context.Context) (context.Context, trace.Span) {
	if g.Tracer == nil || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noop.Span{}
	}
	return g.Tracer.Start(ctx, "call")
}

// traceID returns the id of the trace that ctx belongs to, or an empty string.
func traceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		return c.TraceID().String()
	}
	return ""
}

// startSpan starts the span of a call. The called tool may not exist.
func (d *Decision) startSpan(ctx context.Context) (context.Context, trace.Span) {
	if d.g.Tracer == nil {
		return ctx, noop.Span{}
	}
	return d.g.Tracer.Start(ctx, "execute_tool "+d.toolName(), trace.WithSpanKind(trace.SpanKindInternal))
}

// toolName returns the name of the called tool, redacted and truncated for a span.
func (d *Decision) toolName() string { return truncateText(d.redact(d.call.Tool), 128) }

// setSpanError sets the status of a span to an error. It does nothing if why is nil.
func setSpanError(span trace.Span, why *reeve.Error) {
	if why != nil {
		span.SetAttributes(attribute.String("error.type", string(why.Code)))
		span.SetStatus(codes.Error, truncateText(why.Message, 200))
	}
}

// spanAttributes returns the attributes that identify a call, its tool and its arguments.
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
	if r.resumed != nil || r.callID != r.draftID { // a call that is written after its attempt gets its id then
		a.addText("reeve.call.id", r.callID)
	}
	a.addText("reeve.operation.id", r.operationID())
	return a
}

// attributeList is a list of span attributes.
type attributeList []attribute.KeyValue

// addText adds an attribute unless the value is empty.
func (a *attributeList) addText(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}
