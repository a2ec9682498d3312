package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"reeve"
	"reeve/internal/backoff"
)

type geminiChunk struct {
	ID         string `json:"responseId"`
	Model      string `json:"modelVersion"`
	Candidates []struct {
		Content geminiContent `json:"content"`
		Finish  string        `json:"finishReason"`
		Message string        `json:"finishMessage"`
		Index   int           `json:"index"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage lenient[*struct {
		Prompt     tokenCount `json:"promptTokenCount"`
		Tools      tokenCount `json:"toolUsePromptTokenCount"`
		Candidates tokenCount `json:"candidatesTokenCount"`
		Thoughts   tokenCount `json:"thoughtsTokenCount"`
		Cached     tokenCount `json:"cachedContentTokenCount"`
	}] `json:"usageMetadata"`
	Error *geminiError `json:"error"`
}

type geminiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Delay  string `json:"retryDelay"`
		Reason string `json:"reason"`
	} `json:"details"`
}

var geminiStops = map[string]Stop{
	"STOP": StopEnd, "MAX_TOKENS": StopLength, "SAFETY": StopRefused, "RECITATION": StopRefused,
	"LANGUAGE": StopRefused, "BLOCKLIST": StopRefused,
	"PROHIBITED_CONTENT": StopRefused, "SPII": StopRefused, "IMAGE_SAFETY": StopRefused,
	"IMAGE_PROHIBITED_CONTENT": StopRefused,
}

// geminiInvalidStops are the stop reasons of unusable answers.
var geminiInvalidStops = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true,
	"TOO_MANY_TOOL_CALLS": true, "MALFORMED_RESPONSE": true,
	"MISSING_THOUGHT_SIGNATURE": true, "OTHER": true, "NO_IMAGE": true, "IMAGE_OTHER": true}

// readStream builds the answer from the chunks of a stream.
func (m *geminiModel) readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if res.StatusCode != http.StatusOK {
		body := readBody(res)
		var c geminiChunk
		if json.Unmarshal([]byte(strings.Trim(string(body), "[] \n\r\t")), &c) != nil || c.Error == nil {
			return Answer{}, m.server.statusError(res.StatusCode, res.Header, "", string(body))
		}
		return Answer{}, m.statusError(res.StatusCode, res.Header, *c.Error)
	}
	if err := m.server.checkStream(res, nil); err != nil {
		return Answer{}, err
	}
	finish, lastKind, index := "", "", 0
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var c geminiChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return Answer{}, m.server.invalidAnswer("%v", err)
		}
		if c.Error != nil {
			return Answer{}, m.statusError(c.Error.Code, nil, *c.Error)
		}
		d.answer.ID = c.ID
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if u := c.Usage.value; u != nil {
			d.answer.Usage = Usage{Input: sumCounts(int64(u.Prompt), int64(u.Tools)),
				Output: sumCounts(int64(u.Candidates), int64(u.Thoughts)), CacheRead: int64(u.Cached),
				Reasoning: int64(u.Thoughts)}
		}
		if c.Feedback.Block != "" {
			finish = "PROHIBITED_CONTENT"
		}
		for _, choice := range c.Candidates {
			if choice.Index != 0 {
				continue
			}
			for _, p := range choice.Content.Parts {
				lastKind, index = m.addPart(d, p, lastKind, index)
			}
			if choice.Finish != "" {
				finish = choice.Finish
			}
			if geminiInvalidStops[choice.Finish] {
				return d.usageOnly(), m.server.invalidAnswer("finishReason %s: %s", choice.Finish, choice.Message)
			}
		}
	}
	if finish == "" {
		return Answer{}, m.server.truncatedError(ctx)
	}
	return d.finish(parseStop(geminiStops, finish))
}

// addPart adds a part of a chunk and returns its kind and index, which the next call gets as lastKind and index. A text
// continues the previous part if that is of the same kind. A call is never split.
func (m *geminiModel) addPart(d *draft, p *geminiPart, lastKind string, index int) (string, int) {
	kind := "text"
	switch {
	case p.Call != nil:
		kind = "call"
	case p.Thought:
		kind = "thought"
	case p.Text == "" && p.Signature == "":
		return lastKind, index
	}
	if kind != lastKind || kind == "call" {
		index++
	}
	key := fmt.Sprint(index)
	var at *draftPart
	switch kind {
	case "call":
		args := string(p.Call.Args)
		if args == "" {
			args = "{}"
		}
		at = d.addCall(key, p.Call.ID, p.Call.Name, fragment(args))
	case "thought":
		at = d.addReasoning(key, p.Text)
	default:
		d.addText(key, p.Text)
		at = d.getPart(key, Text)
	}
	if kept := (geminiRaw{Signature: p.Signature}); p.Signature != "" || p.Call != nil && p.Call.ID != "" {
		if p.Call != nil {
			kept.ID = p.Call.ID
		}
		d.setRaw(at, kept)
	}
	return kind, index
}

// statusError returns the error for an error response. Its details may contain the retry delay.
func (m *geminiModel) statusError(status int, h http.Header, e geminiError) error {
	if status == 0 {
		status = http.StatusBadRequest
	}
	for _, d := range e.Details {
		if d.Reason == "API_KEY_INVALID" {
			status = http.StatusUnauthorized // Gemini sends 400 for an invalid key
		}
	}
	err := m.server.statusError(status, h, e.Status, e.Message)
	for _, d := range e.Details {
		if wait := backoff.RetryAfter(strings.TrimSuffix(d.Delay, "s"), time.Second); wait > 0 {
			if re := reeve.AsError(err); re.RetryAfter == 0 &&
				(re.Code == reeve.RateLimited || re.Code == reeve.Unavailable) {
				re.RetryAfter = wait
			}
		}
	}
	return err
}
