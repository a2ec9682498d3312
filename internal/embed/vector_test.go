package embed

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// randomVector returns a vector of length 1.
func randomVector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	scaleToUnit(v)
	return v
}

func TestBits(t *testing.T) {
	t.Parallel()
	if got := Bits([]float32{1, -1, 0, 0.5, -0.1, 2, 3, -4, 1}); !bytes.Equal(got, []byte{0b01101001, 1}) {
		t.Errorf("%08b", got)
	}
	if n := len(Bits(make([]float32, 512))); n != 64 {
		t.Errorf("512 dimensions take %d bytes", n)
	}
	if len(Bits(nil)) != 0 {
		t.Error("nothing has bits")
	}
}

func TestHamming(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte{0xff}, 64)
	for _, c := range []struct {
		a, b []byte
		want int
	}{
		{nil, nil, 0}, {[]byte{1}, []byte{1}, 0}, {[]byte{0b1010}, []byte{0b0110}, 2}, {long, make([]byte, 64), 512},
		{long, long, 0}, {long, nil, 512}, {long[:9], make([]byte, 9), 72}, {long[:3], long[:5], 16},
		{[]byte("12345678A"), []byte("12345678B"), 2},
	} {
		if got := Hamming(c.a, c.b); got != c.want {
			t.Errorf("%x and %x: %d instead of %d", c.a, c.b, got, c.want)
		}
		if Hamming(c.a, c.b) != Hamming(c.b, c.a) {
			t.Errorf("%x and %x: not symmetric", c.a, c.b)
		}
	}
}

// TestHammingFollowsTheAngle checks that the share of differing bits is about the angle by pi.
func TestHammingFollowsTheAngle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a, b := randomVector(r, 512), randomVector(r, 512)
		for _, part := range []float32{0, 0.5, 1, 3} {
			c := make([]float32, len(a))
			for i := range c {
				c[i] = b[i] + part*a[i]
			}
			scaleToUnit(c)
			want := 512 * math.Acos(cosine(a, c)) / math.Pi
			if got := float64(Hamming(Bits(a), Bits(c))); math.Abs(got-want) > 70 {
				t.Errorf("cosine %.2f: %v bits differ, %.0f expected", cosine(a, c), got, want)
			}
		}
	}
}

func TestQuantizeAndDot(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 4, 5, 384, 511, 512, 1536} {
		a, b := randomVector(r, n), randomVector(r, n)
		q := Quantize(b)
		if len(q) != n+4 {
			t.Fatalf("%d dimensions take %d bytes", n, len(q))
		}
		if got, want := float64(Dot(a, q)), cosine(a, b); math.Abs(got-want) > 0.01 {
			t.Errorf("%d dimensions: %v instead of %v", n, got, want)
		}
		if got := Dot(b, q); math.Abs(float64(got)-1) > 0.01 {
			t.Errorf("%d dimensions: %v with itself", n, got)
		}
	}
}

func TestQuantizeExtremes(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range [][]float32{nil, {}, {0, 0}, {nan, 1}, {inf, -1}, {-inf, nan},
		{math.MaxFloat32, -math.MaxFloat32}, {math.SmallestNonzeroFloat32, 0}} {
		q := Quantize(v)
		if len(q) != 4+len(v) {
			t.Fatalf("%v takes %d bytes", v, len(q))
		}
		ones := make([]float32, len(v))
		for i := range ones {
			ones[i] = 1
		}
		if got := Dot(ones, q); !isFinite(got) {
			t.Errorf("%v has the product %v", v, got)
		}
	}
	if got := Dot([]float32{1, 1}, Quantize([]float32{nan, 1})); math.Abs(float64(got)-1) > 0.01 {
		t.Errorf("%v", got)
	}
	if Dot([]float32{1}, nil) != 0 || Dot([]float32{1}, make([]byte, 3)) != 0 ||
		Dot([]float32{1, 2}, Quantize([]float32{1})) != 0 {
		t.Error("vectors of different lengths have a product")
	}
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	v, q := randomVector(r, 512), Quantize(randomVector(r, 512))
	for b.Loop() {
		Dot(v, q)
	}
}

func BenchmarkHamming(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	x, y := Bits(randomVector(r, 512)), Bits(randomVector(r, 512))
	for b.Loop() {
		Hamming(x, y)
	}
}
