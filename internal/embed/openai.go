package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/backoff"
	"reeve/internal/redact"
)

const (
	openaiURL       = "https://api.openai.com/v1"
	openaiBatch     = 64
	maxTextBytes    = 24 << 10         // bytes that are sent of one text: about 8,000 tokens, which models accept
	maxRequestBytes = 256 << 10        // bytes of all texts in one request
	maxAnswerBytes  = 64 << 20         // bytes of one response
	requestTime     = 60 * time.Second // timeout of one request
)

// OpenAIConfig describes a server with OpenAI's /embeddings endpoint. Ollama has one too, at
// http://127.0.0.1:11434/v1.
type OpenAIConfig struct {
	BaseURL    string       // address without /embeddings. Default: https://api.openai.com/v1
	Key        string       // API key. Default: none
	Model      string       // name of the model, such as text-embedding-3-small; required
	Dimensions int          // expected length of vectors. Default: the length in the first response
	Batch      int          // maximum number of texts in one request. Default: 64
	Client     *http.Client // Default: http.DefaultClient
}

// OpenAI encodes texts on a server. It sends the first 24 KB of each text. The caller should retry after errors with
// the code Unavailable or RateLimited, because OpenAI does not retry. OpenAI is safe for concurrent use.
type OpenAI struct {
	config     OpenAIConfig
	address    string
	client     *http.Client
	redactor   *redact.Redactor
	dimensions atomic.Int64 // 0 until they are known
}

// NewOpenAI returns an encoder that asks the server in c. It sends nothing until Encode is called.
func NewOpenAI(c OpenAIConfig) (*OpenAI, error) {
	if c.BaseURL == "" {
		c.BaseURL = openaiURL
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, reeve.InvalidField("/base_url", "is not the address of a server", "an http or https URL")
	}
	if c.Model == "" {
		return nil, reeve.InvalidField("/model", "is missing", "the name of a model that encodes texts")
	}
	if c.Dimensions < 0 {
		return nil, reeve.InvalidField("/dimensions", "is negative", "the length of the model's vectors, or 0")
	}
	if c.Batch <= 0 {
		c.Batch = openaiBatch
	}
	client := *http.DefaultClient
	if c.Client != nil {
		client = *c.Client
	}
	// A redirect could send the key and the texts to another server.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o := &OpenAI{config: c, address: base.JoinPath("embeddings").String(), client: &client,
		redactor: redact.New([]string{c.Key})}
	o.dimensions.Store(int64(c.Dimensions))
	return o, nil
}

// Model implements Encoder.
func (o *OpenAI) Model() string { return o.config.Model }

// Dimensions implements Encoder. It is 0 until the first answer if the configuration does not set it.
func (o *OpenAI) Dimensions() int { return int(o.dimensions.Load()) }

// Encode implements Encoder. It sends the texts in batches, one after the other.
func (o *OpenAI) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(vectors) < len(texts) {
		batch := o.batch(texts[len(vectors):])
		got, err := o.request(ctx, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
	}
	return vectors, nil
}

// batch returns the texts of the next request, in the form in which they are sent.
func (o *OpenAI) batch(texts []string) []string {
	var batch []string
	size := 0
	for _, text := range texts[:min(len(texts), o.config.Batch)] {
		if len(text) > maxTextBytes {
			text = strings.ToValidUTF8(text[:maxTextBytes], "")
		}
		if text == "" {
			text = " " // OpenAI refuses an empty text
		}
		if size += len(text); size > maxRequestBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, text)
	}
	return batch
}

type openaiRequest struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type openaiAnswer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// request returns the vectors of one batch.
func (o *OpenAI) request(parent context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(openaiRequest{Model: o.config.Model, Input: texts, Format: "float"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(parent, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if o.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+o.config.Key)
	}
	res, err := o.client.Do(req)
	if err != nil {
		return nil, o.lost(parent, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, o.lost(parent, err)
	case res.StatusCode != http.StatusOK:
		return nil, o.refused(res.StatusCode, res.Header, data)
	case len(data) > maxAnswerBytes:
		return nil, o.invalid("it is longer than %d MB", maxAnswerBytes>>20)
	}
	return o.vectors(data, len(texts))
}

// vectors returns the n vectors of a response.
func (o *OpenAI) vectors(data []byte, n int) ([][]float32, error) {
	var answer openaiAnswer
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, o.invalid("%v", err)
	}
	if len(answer.Data) != n {
		return nil, o.invalid("it has %d vectors for %d texts", len(answer.Data), n)
	}
	want := o.Dimensions()
	if want == 0 && n > 0 {
		want = len(answer.Data[0].Embedding)
	}
	vectors := make([][]float32, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index] != nil {
			return nil, o.invalid("the index %d is out of range or occurs twice", d.Index)
		}
		if len(d.Embedding) == 0 {
			return nil, o.invalid("a vector is empty")
		}
		if len(d.Embedding) != want {
			e := o.invalid("a vector has %d dimensions instead of %d", len(d.Embedding), want)
			return nil, e.Hintf("check the model's name and the dimensions in the configuration")
		}
		scaleToUnit(d.Embedding)
		vectors[d.Index] = d.Embedding
	}
	if !o.dimensions.CompareAndSwap(0, int64(want)) && o.Dimensions() != want { // another response set the length first
		return nil, o.invalid("vectors have %d and %d dimensions", o.Dimensions(), want)
	}
	return vectors, nil
}

// refused returns the error for an answer with a status other than 200.
func (o *OpenAI) refused(status int, h http.Header, body []byte) error {
	kind, message := openaiError(body)
	what := fmt.Sprintf("(HTTP %d): %s", status, o.quote(message))
	switch {
	case kind == "insufficient_quota" || status == http.StatusPaymentRequired:
		return reeve.Errorf(reeve.ModelFailed, "the embeddings server requires payment %s", what).
			Hintf("check the account's plan and balance")
	case status == http.StatusTooManyRequests:
		e := reeve.Errorf(reeve.RateLimited, "the embeddings server received too many requests %s", what).
			Hintf("try again later")
		e.RetryAfter = retryAfter(h)
		return e
	case status == http.StatusRequestTimeout || status >= 500:
		e := reeve.Errorf(reeve.Unavailable, "the embeddings server reported a failure %s", what).
			Hintf("try again later")
		e.RetryAfter = retryAfter(h)
		return e
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return reeve.Errorf(reeve.ModelFailed, "the embeddings server refused the API key %s", what).
			Hintf("check the API key of the embeddings server")
	case status == http.StatusNotFound:
		return reeve.Errorf(reeve.ModelFailed, "the embeddings server has no such model or address %s", what).
			Hintf("check the model's name and the server's address")
	case status >= 300 && status < 400:
		return reeve.Errorf(reeve.ModelFailed, "the embeddings server redirected to another address %s", what).
			Hintf("set base_url to the server's new address")
	default:
		return reeve.Errorf(reeve.ModelFailed, "the embeddings server refused the request %s", what)
	}
}

// openaiError is the error in a response. Compatible servers send it as an object or as text.
func openaiError(body []byte) (kind, message string) {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	var detail struct {
		Code    any    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", string(body)
	}
	if json.Unmarshal(answer.Error, &detail) == nil && detail.Message != "" {
		kind, _ = detail.Code.(string)
		return kind, detail.Message
	}
	if json.Unmarshal(answer.Error, &message) == nil && message != "" {
		return "", message
	}
	return "", string(body)
}

// lost returns the error for a connection that failed. It keeps the text of the network error but removes the address,
// which may contain a secret.
func (o *OpenAI) lost(ctx context.Context, err error) error {
	if err := interrupted(ctx); err != nil {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return reeve.Errorf(reeve.Unavailable, "the connection to the embeddings server failed: %s", o.quote(err.Error())).
		Hintf("check the network and the server's address")
}

// invalid returns the error for an answer that is not in OpenAI's form.
func (o *OpenAI) invalid(format string, args ...any) *reeve.Error {
	return reeve.Errorf(reeve.ModelFailed, "the answer of the embeddings server is invalid: %s",
		o.quote(fmt.Sprintf(format, args...))).Hintf("check that the address belongs to an OpenAI-compatible server")
}

// maxQuote is the maximum length of the server's own text in an error.
const maxQuote = 300

// quote returns the server's text for use in an error: shortened, on one line and without the key.
func (o *OpenAI) quote(text string) string {
	text = text[:min(len(text), 16*maxQuote)] // the rest would be cut off below
	return reeve.Truncate(strings.Join(strings.Fields(o.redactor.Text(text)), " "), maxQuote)
}

// retryAfter returns how long the server asks to wait. The header is in milliseconds, in seconds or a date.
func retryAfter(h http.Header) time.Duration {
	if d := backoff.RetryAfter(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	return backoff.RetryAfter(h.Get("Retry-After"), time.Second)
}
