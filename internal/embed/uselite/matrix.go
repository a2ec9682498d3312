package uselite

// Weights are eight bits wide. Go has no vector instructions, but one 64-bit multiplication can compute three products.
// A word holds the weights of three outputs in three lanes, 21 bits apart. Multiplying the word by x multiplies each
// lane by x. A product with an input of nine bits has at most 15 bits and a sign, so a lane can hold the sum of 32
// products before it overflows into the next lane. doc.go of package embed has the figures.
const (
	lanes     = 3
	laneBits  = 21
	block     = 32  // products that a lane can sum up: 32 * 127 * 255 < 1<<20
	maxWeight = 127 // largest quantized weight
	maxInput  = 255 // largest quantized input
	rows      = 4   // tokens that are multiplied at once
)

// quad is one input of four tokens.
type quad [rows]int64

// sums are the outputs of four tokens, for the weights of one word.
type sums [rows][lanes]int32

// matrix is a linear function of vectors: outputs = scale * (weights · inputs) + bias.
type matrix struct {
	inputs, outputs int
	words           []int64   // strips of one word per input, each for three outputs
	scale           []float32 // scale of each output
	bias            []float32
}

// newMatrix returns a matrix without weights. inputs is a multiple of block.
func newMatrix(inputs, outputs int) *matrix {
	strips := (outputs + lanes - 1) / lanes
	return &matrix{inputs: inputs, outputs: outputs, words: make([]int64, strips*inputs),
		scale: make([]float32, outputs)}
}

// setRow sets the weights of one output.
func (m *matrix) setRow(output int, weights []int8, scale float32) {
	m.scale[output] = scale
	strip := m.words[output/lanes*m.inputs:][:m.inputs]
	shift := output % lanes * laneBits
	for i, w := range weights[:len(strip)] {
		strip[i] += int64(w) << shift
	}
}

// apply computes the outputs of n tokens and writes them to y. x holds the tokens' inputs, one after the other.
func (m *matrix) apply(y, x []float32, n int, s *scratch) {
	q, scale := s.quantize(x, n, m.inputs)
	for first := 0; first < m.outputs; first += lanes {
		strip := m.words[first/lanes*m.inputs:][:m.inputs]
		width := min(lanes, m.outputs-first)
		weight, bias := m.scale[first:][:width], m.bias[first:][:width]
		for t := 0; t < n; t += rows {
			var sum sums
			multiply(q[t/rows*m.inputs:][:m.inputs], strip, &sum)
			for r := range min(rows, n-t) {
				out := y[(t+r)*m.outputs+first:][:width]
				by := scale[t+r]
				for i := range out {
					out[i] = float32(sum[r][i])*by*weight[i] + bias[i]
				}
			}
		}
	}
}

// multiply adds the products of a strip of weights with the inputs of four tokens to sum. The arrays of fixed size let
// the compiler leave out the bounds checks. The race detector would make it many times slower, and has nothing to find:
// the weights do not change, and the rest belongs to the caller.
//
//go:norace
func multiply(x []quad, strip []int64, sum *sums) {
	for len(strip) >= block && len(x) >= block {
		var a, b, c, d int64
		for i := 0; i < block; i += 8 {
			w, q := (*[8]int64)(strip[i:i+8]), (*[8]quad)(x[i:i+8])
			v := w[0]
			a, b, c, d = a+q[0][0]*v, b+q[0][1]*v, c+q[0][2]*v, d+q[0][3]*v
			v = w[1]
			a, b, c, d = a+q[1][0]*v, b+q[1][1]*v, c+q[1][2]*v, d+q[1][3]*v
			v = w[2]
			a, b, c, d = a+q[2][0]*v, b+q[2][1]*v, c+q[2][2]*v, d+q[2][3]*v
			v = w[3]
			a, b, c, d = a+q[3][0]*v, b+q[3][1]*v, c+q[3][2]*v, d+q[3][3]*v
			v = w[4]
			a, b, c, d = a+q[4][0]*v, b+q[4][1]*v, c+q[4][2]*v, d+q[4][3]*v
			v = w[5]
			a, b, c, d = a+q[5][0]*v, b+q[5][1]*v, c+q[5][2]*v, d+q[5][3]*v
			v = w[6]
			a, b, c, d = a+q[6][0]*v, b+q[6][1]*v, c+q[6][2]*v, d+q[6][3]*v
			v = w[7]
			a, b, c, d = a+q[7][0]*v, b+q[7][1]*v, c+q[7][2]*v, d+q[7][3]*v
		}
		addLanes(&sum[0], a)
		addLanes(&sum[1], b)
		addLanes(&sum[2], c)
		addLanes(&sum[3], d)
		strip, x = strip[block:], x[block:]
	}
}

// addLanes adds the sums in the three lanes of a word to sums. A negative lane has borrowed one from the next lane, so
// addLanes subtracts it to correct that.
func addLanes(sum *[lanes]int32, word int64) {
	const rest = 64 - laneBits
	low := word << rest >> rest
	word = (word - low) >> laneBits
	middle := word << rest >> rest
	sum[0] += int32(low)
	sum[1] += int32(middle)
	sum[2] += int32((word - middle) >> laneBits)
}

// quantize returns the inputs of n tokens as integers, in groups of four tokens, and the factor to multiply each
// token's outputs by. If the last group has fewer than four tokens, the missing ones are zero.
func (s *scratch) quantize(x []float32, n, inputs int) ([]quad, []float32) {
	groups := (n + rows - 1) / rows
	q, scale := sized(&s.quads, groups*inputs), sized(&s.scales, n)
	if n%rows != 0 {
		clear(q[(groups-1)*inputs:])
	}
	for t := range n {
		row := x[t*inputs:][:inputs]
		var top float32
		for _, v := range row {
			top = max(top, v, -v)
		}
		scale[t] = top / maxInput
		var by float32
		if top > 0 {
			by = maxInput / top
		}
		group := q[t/rows*inputs:][:len(row)]
		for i, v := range row {
			group[i][t%rows] = int64(v*by+maxInput+0.5) - maxInput // rounds: the converted value is never negative
		}
	}
	return q, scale
}
