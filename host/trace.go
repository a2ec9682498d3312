package host

import (
	"context"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"reeve"
)

// newTracing returns a provider that exports spans, or nil if no exporter is configured. It uses the standard OTEL_*
// variables, such as OTEL_EXPORTER_OTLP_ENDPOINT.
func newTracing(ctx context.Context) (*trace.TracerProvider, error) {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" ||
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "cannot export spans: %v", err).
			Hintf("check the OTEL_EXPORTER_OTLP_* variables, or set OTEL_SDK_DISABLED=true")
	}
	name, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "OTEL_RESOURCE_ATTRIBUTES is not valid: %v", err)
	}
	if os.Getenv("OTEL_SERVICE_NAME") == "" {
		if name, err = resource.Merge(name, resource.NewSchemaless(attribute.String("service.name", "reeve"),
			attribute.String("service.version", Version))); err != nil {
			return nil, err
		}
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(name)), nil
}
