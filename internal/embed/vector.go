package embed

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// scaleToUnit divides a vector by its length. A vector of length 0 stays as it is.
func scaleToUnit(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return
	}
	by := 1 / math.Sqrt(squares)
	for i, x := range v {
		v[i] = float32(float64(x) * by)
	}
}

// Bits returns one bit per dimension: 1 if the value is above zero. Vectors with a high cosine have a small Hamming
// distance. 512 dimensions take 64 bytes.
func Bits(v []float32) []byte {
	b := make([]byte, (len(v)+7)/8)
	for i, x := range v {
		if x > 0 {
			b[i/8] |= 1 << (i % 8)
		}
	}
	return b
}

// Hamming returns the number of bits in which a and b differ. If one is longer, all bits of its additional bytes count
// as different.
func Hamming(a, b []byte) int {
	n := min(len(a), len(b))
	distance := 8 * (len(a) + len(b) - 2*n)
	a, b = a[:n], b[:n]
	for len(a) >= 8 && len(b) >= 8 {
		distance += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		distance += bits.OnesCount8(x ^ b[i])
	}
	return distance
}

// scaleBytes is the size of the scale at the beginning of a quantized vector.
const scaleBytes = 4

// Quantize returns a vector as a scale (float32, little endian) and a signed byte per dimension: 516 bytes for 512
// dimensions. Values that are not finite count as 0.
func Quantize(v []float32) []byte {
	var top float32
	for _, x := range v {
		if isFinite(x) {
			top = max(top, x, -x)
		}
	}
	b := make([]byte, scaleBytes+len(v))
	scale := top / math.MaxInt8
	if scale == 0 {
		return b
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(scale))
	for i, x := range v {
		if isFinite(x) {
			b[scaleBytes+i] = byte(int8(max(-math.MaxInt8, min(math.MaxInt8, math.Round(float64(x/scale))))))
		}
	}
	return b
}

// Dequantize returns the vector that Quantize made smaller, with the precision that is left.
func Dequantize(quantized []byte) []float32 {
	if len(quantized) < scaleBytes {
		return nil
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(quantized))
	v := make([]float32, len(quantized)-scaleBytes)
	for i, y := range quantized[scaleBytes:] {
		v[i] = scale * float32(int8(y))
	}
	return v
}

func isFinite(x float32) bool { return x-x == 0 }

// Dot returns the inner product of q and a vector that Quantize returned. For vectors of length 1 that is their cosine.
// It returns 0 if the vectors have different lengths.
func Dot(q []float32, quantized []byte) float32 {
	if len(quantized) != scaleBytes+len(q) {
		return 0
	}
	scale, y := math.Float32frombits(binary.LittleEndian.Uint32(quantized)), quantized[scaleBytes:]
	var a, b, c, d float32
	for len(q) >= 4 && len(y) >= 4 {
		a += q[0] * float32(int8(y[0]))
		b += q[1] * float32(int8(y[1]))
		c += q[2] * float32(int8(y[2]))
		d += q[3] * float32(int8(y[3]))
		q, y = q[4:], y[4:]
	}
	for i, x := range q {
		a += x * float32(int8(y[i]))
	}
	return scale * ((a + b) + (c + d))
}
