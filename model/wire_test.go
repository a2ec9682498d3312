package model_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"reeve/model"
)

// wire returns an answer in a provider's wire format: its text fragments and its token counts, both as JSON. Without
// counts it reports no usage.
func wire(provider string, pieces []string, stop, in, out string) []byte {
	var b bytes.Buffer
	event := func(format string, args ...any) {
		if provider != "ollama" {
			b.WriteString("data: ")
		}
		fmt.Fprintf(&b, format+"\n\n", args...)
	}
	counts := func(format string) string {
		if in == "" {
			return "{}"
		}
		return fmt.Sprintf(format, in, out)
	}
	begin, piece, end := map[string]string{
		"anthropic":        `{"type":"message_start","message":{"id":"a1"}}`,
		"openai_responses": `{"type":"response.created","response":{"id":"a1"}}`,
	}, map[string]string{
		"anthropic":        `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`,
		"openai_chat":      `{"id":"a1","choices":[{"index":0,"delta":{"content":%s}}]}`,
		"openai_responses": `{"type":"response.output_text.delta","output_index":0,"delta":%s}`,
		"gemini":           `{"responseId":"a1","candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%s}]}}]}`,
		"ollama":           `{"created_at":"a1","message":{"role":"assistant","content":%s},"done":false}`,
	}, map[string]string{
		"anthropic": `{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":` +
			counts(`{"input_tokens":%s,"output_tokens":%s}`) + "}\n\n" + `data: {"type":"message_stop"}`,
		"openai_chat": `{"id":"a1","choices":[{"index":0,"delta":{},"finish_reason":"` + stop + `"}],"usage":` +
			counts(`{"prompt_tokens":%s,"completion_tokens":%s}`) + "}\n\ndata: [DONE]",
		"openai_responses": `{"type":"response.completed","response":{"id":"a1","status":"completed","usage":` +
			counts(`{"input_tokens":%s,"output_tokens":%s}`) + "}}",
		"gemini": `{"responseId":"a1","candidates":[{"index":0,"finishReason":"` + stop +
			`"}],"usageMetadata":` + counts(`{"promptTokenCount":%s,"candidatesTokenCount":%s}`) + "}",
		"ollama": `{"done":true,"done_reason":"` + stop + `",` +
			strings.TrimPrefix(counts(`{"prompt_eval_count":%s,"eval_count":%s}`), "{"),
	}
	if s := begin[provider]; s != "" {
		event("%s", s)
	}
	for _, p := range pieces {
		event(piece[provider], p)
	}
	last := end[provider]
	if in == "" && provider == "ollama" {
		last = `{"done":true,"done_reason":"` + stop + `"}`
	}
	event("%s", last)
	return b.Bytes()
}

// speaks returns an adapter whose provider answers every request with one body.
func speaks(provider string, body []byte) model.Model {
	return adapters[provider].open(model.Server{Key: secret,
		Client: &http.Client{Transport: transport{"text/event-stream", body}}})
}
