package uselite

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMatrixMultipliesLikeFloats(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, outputs := range []int{1, 2, 3, 4, 7} {
		for _, n := range []int{1, 2, 3, 4, 5, 9} {
			const inputs = 3 * block
			m := newMatrix(inputs, outputs)
			weights := make([][]int8, outputs)
			for j := range weights {
				weights[j] = make([]int8, inputs)
				for i := range weights[j] {
					weights[j][i] = int8(r.IntN(2*maxWeight+1) - maxWeight)
				}
				m.setRow(j, weights[j], 0.01*float32(j+1))
				m.bias = append(m.bias, float32(j)-1)
			}
			x := make([]float32, n*inputs)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			y := make([]float32, n*outputs)
			m.apply(y, x, n, &scratch{quads: make([]quad, 2)})
			for k := range y {
				token, j := k/outputs, k%outputs
				var want, size float64
				for i, w := range weights[j] {
					p := float64(x[token*inputs+i]) * float64(w) * 0.01 * float64(j+1)
					want, size = want+p, size+p*p
				}
				want += float64(j) - 1
				if math.Abs(float64(y[k])-want) > 0.05*math.Sqrt(size) {
					t.Errorf("%d by %d, output %d: %v instead of %v", n, outputs, k, y[k], want)
				}
			}
		}
	}
}

// TestLanesDoNotRunOver multiplies the largest values with each sign.
func TestLanesDoNotRunOver(t *testing.T) {
	t.Parallel()
	for _, signs := range [][lanes]int64{{1, 1, 1}, {-1, -1, -1}, {1, -1, 1}, {-1, 1, -1}, {-1, -1, 1}, {0, -1, 0}} {
		strip, x := make([]int64, 2*block), make([]quad, 2*block)
		for i := range strip {
			for lane, sign := range signs {
				strip[i] += sign * maxWeight << (lane * laneBits)
			}
			x[i] = quad{maxInput, -maxInput, 1, 0}
		}
		var got sums
		multiply(x, strip, &got)
		for row, v := range x[0] {
			for lane, sign := range signs {
				if want := sign * v * maxWeight * 2 * block; int64(got[row][lane]) != want {
					t.Errorf("signs %v, input %d, lane %d: %d instead of %d", signs, v, lane, got[row][lane], want)
				}
			}
		}
	}
}

func TestQuantizeRounds(t *testing.T) {
	t.Parallel()
	s := &scratch{}
	x := make([]float32, 2*block) // two tokens; the first is zero
	copy(x[block:], []float32{255, -255, 0.4, 0.6, -0.4, -0.6, 100.4, -100.6})
	q, scale := s.quantize(x, 2, block)
	if scale[0] != 0 || scale[1] != 1 {
		t.Errorf("the scales are %v", scale)
	}
	for i, want := range []int64{255, -255, 0, 1, 0, -1, 100, -101, 0} {
		if q[i] != (quad{0, want, 0, 0}) {
			t.Errorf("value %d is %v, not %d", i, q[i], want)
		}
	}
}
