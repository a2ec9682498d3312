package uselite

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile("../asset/use-lite.bin")
	if err != nil {
		b.Fatalf("run make assets: %v", err)
	}
	for b.Loop() {
		if _, err := Read(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := load(b).NewEncoding()
	for _, n := range []int{4, 12, 32, 128} {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(20 + 37*i)
		}
		b.Run(fmt.Sprintf("%d tokens", n), func(b *testing.B) {
			for b.Loop() {
				e.Encode(ids)
			}
		})
	}
}
