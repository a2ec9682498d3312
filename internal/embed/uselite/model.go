package uselite

import "math"

const (
	Dimensions     = 512  // length of a vector
	MaxTokens      = 128  // the longest text that the model can encode at once
	vocabularySize = 8002 // includes two numbers that no piece has
	tokenWidth     = 256
	feedWidth      = 1536
	heads          = 4
)

// layerWidths are the lengths of a token's vector at the beginning of each layer.
var layerWidths = [2]int{tokenWidth, Dimensions}

// Model is the loaded model. It does not change and is safe for concurrent use.
type Model struct {
	tokenizer  *tokenizer
	embeddings []int8    // one row for each piece
	scales     []float32 // scale of each row of embeddings
	positions  []float32 // one row for each position in the text
	residual   *matrix   // widens tokens to the size of the first layer
	layers     [2]layer
	output     *matrix
}

// layer changes each token in two steps: it adds the result of attention to the other tokens, and then the result of a
// function of the token alone.
type layer struct {
	width                     int
	attentionNorm, feedNorm   layerNorm
	attentionIn, attentionOut *matrix
	feedIn, feedOut           *matrix
}

// layerNorm moves a vector to mean 0 and variance 1, then scales and shifts it.
type layerNorm struct{ scale, bias []float32 }

// scratch holds the buffers of one encoding. They grow as needed by the longest text.
type scratch struct {
	quads                                     []quad
	scales, tokens, normed, inner, mixed, sum []float32
	weights                                   []float32
}

// sized returns the first n elements of a buffer. If the buffer is too short, it allocates a new one. The values are
// arbitrary.
func sized[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	*buf = (*buf)[:cap(*buf)]
	return (*buf)[:n]
}

// positions returns the vectors that are added to tokens because of their position. They consist of sines and cosines
// of the given frequencies.
func positions(frequencies []float32) []float32 {
	n := len(frequencies)
	p := make([]float32, MaxTokens*2*n)
	for t := range MaxTokens {
		row := p[t*2*n:][:2*n]
		for i, f := range frequencies {
			sin, cos := math.Sincos(float64(float32(t) * f))
			row[i], row[n+i] = float32(sin), float32(cos)
		}
	}
	return p
}

// Tokens returns the pieces of a text.
func (m *Model) Tokens(text string) []int32 { return m.tokenizer.tokens(text) }

// An Encoding encodes one text after another. It is not safe for concurrent use.
type Encoding struct {
	model   *Model
	scratch scratch
}

// NewEncoding returns an encoding with memory of its own.
func (m *Model) NewEncoding() *Encoding { return &Encoding{model: m} }

// Encode returns the vector of a text, of length 1, from the text's pieces. Pieces beyond MaxTokens are ignored.
func (e *Encoding) Encode(ids []int32) []float32 {
	m, s := e.model, &e.scratch
	n := min(len(ids), MaxTokens)
	tokens := sized(&s.tokens, n*Dimensions)
	m.embed(tokens[:n*tokenWidth], ids[:n])
	sum := sized(&s.sum, n*Dimensions)
	m.residual.apply(sum, tokens, n, s)
	for i := range m.layers {
		m.layers[i].apply(sum, tokens, n, s)
		tokens = sum
	}
	mean := make([]float32, Dimensions)
	for t := range n {
		for i, v := range sum[t*Dimensions:][:Dimensions] {
			mean[i] += v
		}
	}
	for i := range mean {
		mean[i] /= float32(max(n, 1))
	}
	v := make([]float32, Dimensions)
	m.output.apply(v, mean, 1, s)
	for i := range v {
		v[i] = float32(math.Tanh(float64(v[i])))
	}
	scaleToUnit(v)
	return v
}

// scaleToUnit divides a vector by its length.
func scaleToUnit(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	by := float32(1 / math.Sqrt(max(squares, 1e-12)))
	for i := range v {
		v[i] *= by
	}
}

// embed writes the vectors of pieces to their positions. It adds each piece twice, as the original model does.
func (m *Model) embed(x []float32, ids []int32) {
	for t, id := range ids {
		row, by := m.embeddings[int(id)*tokenWidth:][:tokenWidth], 2*m.scales[id]
		place := m.positions[t*tokenWidth:][:tokenWidth]
		out := x[t*tokenWidth:][:tokenWidth]
		for i, v := range row {
			out[i] = by*float32(v) + place[i]
		}
	}
}

// apply runs the layer on n tokens and adds the result to sum.
func (l *layer) apply(sum, tokens []float32, n int, s *scratch) {
	normed := sized(&s.normed, n*Dimensions)
	l.attentionNorm.apply(normed, tokens, n)
	inner := sized(&s.inner, n*feedWidth)
	l.attentionIn.apply(inner, normed, n, s)
	mixed := sized(&s.mixed, n*Dimensions)
	attend(mixed, inner, n, l.width, s)
	l.attentionOut.apply(normed, mixed, n, s)
	add(sum, normed)

	l.feedNorm.apply(normed, sum, n)
	l.feedIn.apply(inner, normed, n, s)
	for i, v := range inner {
		inner[i] = max(v, 0)
	}
	l.feedOut.apply(normed, inner, n, s)
	add(sum, normed)
}

// apply normalizes n vectors and writes the results to y.
func (l layerNorm) apply(y, x []float32, n int) {
	width := len(l.scale)
	for t := range n {
		row, out := x[t*width:][:width], y[t*width:][:width]
		var sum, squares float64
		for _, v := range row {
			sum += float64(v)
		}
		mean := float32(sum / float64(width))
		for _, v := range row {
			d := float64(v - mean)
			squares += d * d
		}
		by := float32(1 / math.Sqrt(squares/float64(width)+1e-6))
		for i, v := range row {
			out[i] = (v-mean)*by*l.scale[i] + l.bias[i]
		}
	}
}

// attend computes the attention of n tokens. The result for a token is the mean of all tokens' values, weighted by how
// well their keys match the query of that token. in holds a query, a key and a value for each token. Each head uses its
// own part of them.
func attend(out, in []float32, n, width int, s *scratch) {
	part := width / heads
	by := float32(1 / math.Sqrt(float64(part)))
	weights := sized(&s.weights, n)
	clear(out[:n*width])
	for t := range n {
		for h := range heads {
			query := in[t*3*width+h*part:][:part]
			top := float32(math.Inf(-1))
			for u := range weights {
				weights[u] = by * dot(query, in[u*3*width+width+h*part:][:part])
				top = max(top, weights[u])
			}
			var total float32
			for u, w := range weights {
				weights[u] = float32(math.Exp(float64(w - top)))
				total += weights[u]
			}
			to := out[t*width+h*part:][:part]
			for u, w := range weights {
				addScaled(to, in[u*3*width+2*width+h*part:][:part], w/total)
			}
		}
	}
}

// dot returns the inner product of vectors whose length is a multiple of 4.
func dot(x, y []float32) float32 {
	var a, b, c, d float32
	for len(x) >= 4 && len(y) >= 4 {
		a, b, c, d = a+x[0]*y[0], b+x[1]*y[1], c+x[2]*y[2], d+x[3]*y[3]
		x, y = x[4:], y[4:]
	}
	return (a + b) + (c + d)
}

// addScaled adds by*x to a vector.
func addScaled(to, x []float32, by float32) {
	x = x[:len(to)]
	for i := range to {
		to[i] += by * x[i]
	}
}

func add(to, x []float32) {
	x = x[:len(to)]
	for i := range to {
		to[i] += x[i]
	}
}
