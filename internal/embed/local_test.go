package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/internal/embed/uselite"
)

// local returns the encoder that all tests share, so that the weights are loaded once.
var local = sync.OnceValue(NewLocal)

func encode(t testing.TB, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := local().Encode(t.Context(), texts)
	if errors.Is(err, ErrMissing) {
		t.Fatalf("run make assets: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(texts) {
		t.Fatalf("%d vectors for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		if length := math.Sqrt(cosine(v, v)); len(v) != local().Dimensions() || math.Abs(length-1) > 1e-5 {
			t.Fatalf("the vector of %.40q has %d dimensions and the length %v", texts[i], len(v), length)
		}
	}
	return vectors
}

// cosine returns the cosine of vectors of length 1.
func cosine(a, b []float32) float64 {
	var sum float64
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

func TestParaphrasesAreNearerThanOtherTexts(t *testing.T) {
	t.Parallel()
	pairs := [][2]string{
		{"How old are you?", "What is your age?"},
		{"I forgot my password and cannot sign in.", "My login does not work because I lost my credentials."},
		{"The meeting was moved to Thursday.", "We postponed the appointment by two days."},
		{"Maria is allergic to peanuts.", "Do not give Maria any nuts, they make her ill."},
		{"The disk of the server is full.", "The machine ran out of storage space."},
		{"Buy milk and bread on the way home.", "Pick up some groceries after work."},
	}
	var left, right []string
	for _, p := range pairs {
		left, right = append(left, p[0]), append(right, p[1])
	}
	a, b := encode(t, left...), encode(t, right...)
	found := 0
	for i := range pairs {
		best := 0
		for j := range pairs {
			if cosine(a[i], b[j]) > cosine(a[i], b[best]) {
				best = j
			}
		}
		if best == i {
			found++
		} else {
			t.Logf("%q is nearer to %q (%.2f) than to %q (%.2f)", left[i], right[best], cosine(a[i], b[best]), right[i],
				cosine(a[i], b[i]))
		}
	}
	if found < len(pairs)-1 { // the model misses one
		t.Errorf("only %d of %d paraphrases are the nearest text", found, len(pairs))
	}
}

func TestAnyTextHasAVector(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "space": " \t\n", "invalid": "caf\xe9 \xff\xfe", "only invalid": "\xff\xfe\xfd", "nul": "a\x00b\x00",
		"only nul": "\x00\x00", "1 MB": strings.Repeat("the work of a day ", 1<<20/18), "1 MB without spaces": strings.Repeat("x", 1<<20),
		"1 MB of one emoji": strings.Repeat("👍", 1<<18), "1 MB of combining marks": "e" + strings.Repeat("\u0301", 1<<19),
		"cut in a character": strings.Repeat("a", maxBytes-1) + "語", "1 MB invalid": strings.Repeat("\x80", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encode(t, text)
		})
	}
}

func TestTextsThatMeanTheSameToTheModel(t *testing.T) {
	t.Parallel()
	v := encode(t, "a note about lunch", " a\tnote \n about\x00 lunch\x1f ", "ａ note about lunch", "a note\xff about lunch")
	for i := range v {
		if !slices.Equal(v[i], v[0]) {
			t.Errorf("text %d has another vector", i)
		}
	}
}

// TestLongTextsAreTheMeanOfTheirWindows also checks that what is behind the last window does not count.
func TestLongTextsAreTheMeanOfTheirWindows(t *testing.T) {
	t.Parallel()
	cats, ships := strings.Repeat("the cat sleeps on the sofa ", 20), strings.Repeat("a ship crosses the ocean ", 20)
	v := encode(t, cats, ships, cats+ships)
	if a, b := cosine(v[0], v[2]), cosine(v[1], v[2]); min(a, b) < cosine(v[0], v[1])+0.2 {
		t.Errorf("the whole has the cosines %.2f and %.2f with its halves, they have %.2f", a, b, cosine(v[0], v[1]))
	}
	long := strings.Repeat(cats, 10)
	v = encode(t, long, long+"and now to something else")
	if !slices.Equal(v[0], v[1]) {
		t.Error("the end of a very long text counts")
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: {0}, 1: {1}, 128: {128}, 129: {64, 65}, 300: {100, 100, 100},
		1024: {128, 128, 128, 128, 128, 128, 128, 128}, 5000: {128, 128, 128, 128, 128, 128, 128, 128}} {
		var got []int
		for _, w := range windows(make([]int32, n)) {
			got = append(got, len(w))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d tokens have the windows %v, not %v", n, got, want)
		}
	}
}

func TestEncodeManyAtOnce(t *testing.T) {
	t.Parallel()
	texts := make([]string, 12)
	for i := range texts {
		texts[i] = fmt.Sprintf("note %d about %s", i, strings.Repeat("work ", i))
	}
	var want [][]float32
	for _, text := range texts {
		want = append(want, encode(t, text)...)
	}
	l := NewLocal() // loads while many wait for it
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			got, err := l.Encode(t.Context(), texts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range got {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%q has another vector", texts[i])
				}
			}
		})
	}
	group.Wait()
	if len(l.free) > cap(l.slots) {
		t.Errorf("%d texts were encoded at once, %d are allowed", len(l.free), cap(l.slots))
	}
}

func TestEncodeNothing(t *testing.T) {
	t.Parallel()
	l := NewLocal()
	if v, err := l.Encode(t.Context(), nil); err != nil || v == nil || len(v) != 0 || l.model != nil {
		t.Errorf("%v, %v", v, err)
	}
}

func TestEncodeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := local().Encode(ctx, []string{"a"}); reeve.CodeOf(err) != reeve.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, err := local().Encode(ctx, []string{"a"}); reeve.CodeOf(err) != reeve.Timeout {
		t.Errorf("%v", err)
	}
	l := NewLocal() // all places are taken: Encode waits, and stops waiting
	for range cap(l.slots) {
		l.slots <- struct{}{}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Encode(ctx, []string{"a", "b"}); reeve.CodeOf(err) != reeve.Timeout {
		t.Errorf("%v", err)
	}
	if l.users != 0 {
		t.Errorf("%d calls still use the model", l.users)
	}
}

func TestIdleWeightsAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal()
		isLoaded := func() bool {
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.model != nil
		}
		encode := func() {
			if _, err := l.Encode(t.Context(), []string{"a"}); err != nil {
				t.Fatal(err)
			}
		}
		if isLoaded() {
			t.Error("loaded before the first use")
		}
		encode()
		time.Sleep(idleTime - time.Second)
		encode() // the time begins anew
		time.Sleep(idleTime - time.Second)
		if !isLoaded() {
			t.Error("dropped too early")
		}
		time.Sleep(2 * time.Second)
		if isLoaded() || l.free != nil {
			t.Error("still loaded")
		}
		encode()
		if !isLoaded() {
			t.Error("not loaded again")
		}
		if _, err := l.acquire(); err != nil { // a long use
			t.Fatal(err)
		}
		time.Sleep(2 * idleTime)
		if !isLoaded() {
			t.Error("dropped while in use")
		}
		l.release()
		time.Sleep(idleTime)
		if isLoaded() {
			t.Error("still loaded after a long use")
		}
	})
}

func TestAProgramWithoutTheWeightsSaysSo(t *testing.T) {
	t.Parallel()
	readme := &fstest.MapFile{Data: []byte("nothing here")}
	l := newLocal(fstest.MapFS{"asset/README.md": readme})
	_, err := l.Encode(t.Context(), []string{"a"})
	e := reeve.AsError(err)
	if !errors.Is(err, ErrMissing) || e.Code != reeve.Unsupported || !strings.Contains(e.Message, "built without") ||
		!strings.Contains(e.Hint, "make assets") {
		t.Errorf("%v (%s)", err, e.Hint)
	}
	if err := available(l.files); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
	if err := Available(); err != nil {
		t.Errorf("run make assets: %v", err)
	}
	if l.Model() != uselite.Name || l.Dimensions() != 512 || l.users != 0 {
		t.Errorf("%s, %d, %d", l.Model(), l.Dimensions(), l.users)
	}
	for _, data := range []string{"", "use-lite", "use-lite-1\n", "something else altogether"} {
		l := newLocal(fstest.MapFS{weightsName: &fstest.MapFile{Data: []byte(data)}})
		if _, err := l.Encode(t.Context(), []string{"a"}); reeve.CodeOf(err) != reeve.Internal {
			t.Errorf("weights %q: %v", data, err)
		}
	}
}
