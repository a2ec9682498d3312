// Package output is the pack that reads the rest of an output that was cut: output_read.
package output

import (
	"context"
	"strings"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// Pack reads kept outputs.
type Pack struct{ DB *store.DB }

type read struct {
	Hash   string `json:"hash" doc:"Address of the output, as the cut result names it" pattern:"^[0-9a-f]{64}$"`
	Offset int    `json:"offset,omitempty" doc:"First byte to read" minimum:"0" maximum:"1000000000"`
	Limit  int    `json:"limit,omitempty" doc:"How many bytes to read" minimum:"1" maximum:"12000" default:"12000"`
}

type slice struct {
	Content    string `json:"content"`
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset"`
	Size       int    `json:"size"`
	Remaining  int    `json:"remaining"`
}

// Tools gives output_read.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{
		reeve.MustTool(reeve.Tool{ID: "output_read", Name: "Read Output", Category: "general", Pack: "output",
			Effect: reeve.Read, TimeoutMS: 10_000,
			Description: "Read a slice of an output that was too long to be shown whole. Go on from next_offset " +
				"until remaining is 0."}, p.read),
	}
}

func (p *Pack) read(ctx context.Context, in read) (slice, error) {
	limit := in.Limit
	if limit == 0 {
		limit = 12000
	}
	inv := reeve.InvocationFrom(ctx)
	var got store.StoredOutput
	err := p.DB.View(ctx, func(s *store.Snap) (err error) {
		got, err = s.Ledger().GetOutput(ctx, inv, in.Hash, in.Offset, limit)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return slice{}, reeve.Errorf(reeve.ToolFailed, "no output is kept under %s", in.Hash).
			Hintf("take the hash from a result; one that is old may be gone, if the server's setting retention says so")
	}
	if err != nil {
		return slice{}, err
	}
	if in.Offset > got.Size {
		return slice{}, reeve.Errorf(reeve.ToolFailed, "the output has only %d bytes", got.Size).
			Hintf("read from an offset below that")
	}
	body := first(got, limit)
	if !utf8.Valid(body) {
		return slice{}, reeve.Errorf(reeve.ToolFailed,
			"there is no text at offset %d: it is inside a character, or the output is binary", in.Offset).
			Hintf("go on from a next_offset, or from 0")
	}
	// quotes and line ends take more room than their bytes
	return reeve.Page(inv, len(body), func(n int) (slice, error) {
		from, to, shown := got.RedactedPart(len(first(got, n)))
		return slice{Content: strings.ReplaceAll(shown, "\x00", "\uFFFD"), Offset: from, NextOffset: to, Size: got.Size,
			Remaining: got.Size - to}, nil
	})
}

// first gives the whole characters in the first n bytes of what was read: one at least.
func first(k store.StoredOutput, n int) []byte {
	body := k.TextPrefix(n)
	if rest := k.BytePrefix(utf8.UTFMax); len(body) == 0 && len(rest) > 0 {
		_, n := utf8.DecodeRune(rest)
		body = rest[:n]
	}
	return body
}
