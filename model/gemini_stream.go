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
	Usage tally[*struct {
		Prompt     count `json:"promptTokenCount"`
		Tools      count `json:"toolUsePromptTokenCount"`
		Candidates count `json:"candidatesTokenCount"`
		Thoughts   count `json:"thoughtsTokenCount"`
		Cached     count `json:"cachedContentTokenCount"`
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

// geminiNonsense are reasons to stop that say that the answer is of no use.
var geminiNonsense = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true,
	"TOO_MANY_TOOL_CALLS": true, "MALFORMED_RESPONSE": true,
	"MISSING_THOUGHT_SIGNATURE": true, "OTHER": true, "NO_IMAGE": true, "IMAGE_OTHER": true}

// listen turns the chunks of a stream into an answer.
func (m *geminiModel) listen(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if res.StatusCode != http.StatusOK {
		body := wholeBody(res)
		var c geminiChunk
		if json.Unmarshal([]byte(strings.Trim(string(body), "[] \n\r\t")), &c) != nil || c.Error == nil {
			return Answer{}, m.server.refused(res.StatusCode, res.Header, "", string(body))
		}
		return Answer{}, m.failed(res.StatusCode, res.Header, *c.Error)
	}
	if err := m.server.check(res, nil); err != nil {
		return Answer{}, err
	}
	finish, last, place := "", "", 0
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var c geminiChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return Answer{}, m.server.nonsense("%v", err)
		}
		if c.Error != nil {
			return Answer{}, m.failed(c.Error.Code, nil, *c.Error)
		}
		d.answer.ID = c.ID
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if u := c.Usage.of; u != nil {
			d.answer.Usage = Usage{Input: total(int64(u.Prompt), int64(u.Tools)),
				Output: total(int64(u.Candidates), int64(u.Thoughts)), CacheRead: int64(u.Cached),
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
				last, place = m.part(d, p, last, place)
			}
			if choice.Finish != "" {
				finish = choice.Finish
			}
			if geminiNonsense[choice.Finish] {
				return d.cost(), m.server.nonsense("it stopped with %s. %s", choice.Finish, choice.Message)
			}
		}
	}
	if finish == "" {
		return Answer{}, m.server.cut(ctx)
	}
	return d.finish(known(geminiStops, finish))
}

// part adds a part of a chunk. Text goes on in the next chunk; what it goes on from is known by its kind only. A call
// comes whole.
func (m *geminiModel) part(d *draft, p *geminiPart, last string, place int) (string, int) {
	kind := "text"
	switch {
	case p.Call != nil:
		kind = "call"
	case p.Thought:
		kind = "thought"
	case p.Text == "" && p.Signature == "":
		return last, place
	}
	if kind != last || kind == "call" {
		place++
	}
	key := fmt.Sprint(place)
	var at *draftPart
	switch kind {
	case "call":
		args := string(p.Call.Args)
		if args == "" {
			args = "{}"
		}
		at = d.call(key, p.Call.ID, p.Call.Name, piece(args))
	case "thought":
		at = d.think(key, p.Text)
	default:
		d.say(key, p.Text)
		at = d.part(key, Text)
	}
	if kept := (geminiKept{Signature: p.Signature}); p.Signature != "" || p.Call != nil && p.Call.ID != "" {
		if p.Call != nil {
			kept.ID = p.Call.ID
		}
		d.keep(at, kept)
	}
	return kind, place
}

// failed types an error; how long to wait is said in its details.
func (m *geminiModel) failed(status int, h http.Header, e geminiError) error {
	if status == 0 {
		status = http.StatusBadRequest
	}
	for _, d := range e.Details {
		if d.Reason == "API_KEY_INVALID" {
			status = http.StatusUnauthorized // a bad key is a bad request there
		}
	}
	err := m.server.refused(status, h, e.Status, e.Message)
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
