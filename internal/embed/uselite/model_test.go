package uselite

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
)

// loaded returns the model that make assets made.
var loaded = sync.OnceValues(func() (*Model, error) {
	f, err := os.Open("../asset/use-lite.bin")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f)
})

func load(t testing.TB) *Model {
	t.Helper()
	m, err := loaded()
	if err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	return m
}

// reference is what TensorFlow.js makes of a text.
type reference struct {
	Text   string  `json:"text"`
	Tokens []int32 `json:"tokens"`
	Vector []byte  `json:"vector"` // signed, scaled
}

func references(t testing.TB) []reference {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		y := b[i]
		ab, aa, bb = ab+float64(x)*float64(y), aa+float64(x)*float64(x), bb+float64(y)*float64(y)
	}
	return ab / math.Sqrt(aa*bb)
}

// TestVectorsMatchTensorFlow compares with the original implementation, whose weights are not rounded.
func TestVectorsMatchTensorFlow(t *testing.T) {
	t.Parallel()
	m := load(t)
	e := m.NewEncoding()
	all := references(t)
	if len(all) < 60 {
		t.Fatalf("only %d texts", len(all))
	}
	lowest := 1.0
	for _, r := range all {
		ids := m.Tokens(r.Text)
		if !slices.Equal(ids, r.Tokens) {
			t.Errorf("%.40q has the tokens %v, not %v", r.Text, ids, r.Tokens)
		}
		want := make([]float32, len(r.Vector))
		for i, b := range r.Vector {
			want[i] = float32(int8(b))
		}
		got := e.Encode(ids)
		if len(got) != Dimensions || len(want) != Dimensions {
			t.Fatalf("%d and %d dimensions", len(got), len(want))
		}
		c := cosine(got, want)
		if c < 0.995 {
			t.Errorf("%.40q has the cosine %.5f", r.Text, c)
		}
		lowest = min(lowest, c)
		var length float64
		for _, v := range got {
			length += float64(v) * float64(v)
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("%.40q has the length %v", r.Text, math.Sqrt(length))
		}
	}
	t.Logf("lowest cosine %.5f", lowest)
}
