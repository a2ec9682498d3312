package uselite

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestReadRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../asset/use-lite.bin")
	if err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	head := len(Name) + 1
	for name, b := range map[string][]byte{
		"nothing": nil, "text": []byte("hello, this is no model"), "only the name": whole[:head], "cut": whole[:len(whole)-1],
		"cut in the vocabulary": whole[:1000], "longer": append(bytes.Clone(whole), 0),
		"another version": append([]byte("use-lite-0\n"), whole[head:]...), "huge vocabulary": append(bytes.Clone(whole[:head]), 255, 255, 255, 255),
		"no vocabulary": append(bytes.Clone(whole[:head]), make([]byte, 100)...),
	} {
		if _, err := Read(bytes.NewReader(b)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestWriteRefusesWrongValues(t *testing.T) {
	t.Parallel()
	fails := errors.New("no such tensor")
	for _, c := range []struct {
		pieces []Piece
		values func(Shape) ([]float32, error)
		want   string
	}{
		{[]Piece{{Text: strings.Repeat("x", 256)}}, nil, "too long"},
		{nil, func(Shape) ([]float32, error) { return nil, fails }, "no such tensor"},
		{nil, func(Shape) ([]float32, error) { return make([]float32, 7), nil }, "7 values"},
	} {
		if err := Write(&bytes.Buffer{}, c.pieces, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %q expected", err, c.want)
		}
	}
}
