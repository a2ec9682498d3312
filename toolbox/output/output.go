// Package output is the pack of output_read, which reads stored outputs that were too long to show whole.
package output

import (
	"context"
	"strings"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack of output_read.
type Pack struct{ DB *store.DB }

type readArgs struct {
	Hash   string `json:"hash" doc:"Hash that the shortened result names" pattern:"^[0-9a-f]{64}$"`
	Offset int    `json:"offset,omitempty" doc:"First byte to read. Default: 0" minimum:"0" maximum:"1000000000"`
	Limit  int    `json:"limit,omitempty" doc:"Bytes to read. Default: 12000" minimum:"1" maximum:"12000" default:"12000"`
}

type readResult struct {
	Content    string `json:"content"`
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset"`
	Size       int    `json:"size"`
	Remaining  int    `json:"remaining"`
}

// Tools returns output_read.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{
		reeve.MustTool(reeve.Tool{ID: "output_read", Name: "Read Output", Category: "general", Pack: "output",
			Effect: reeve.Read, TimeoutMS: 10_000, Private: true,
			Description: "Read a part of an output that was too long to show whole. Use the hash from the " +
				"shortened result. To read on, pass next_offset as offset until remaining is 0."}, p.read),
	}
}

// read returns the part of an output that fits the caller's limit, without secrets.
func (p *Pack) read(ctx context.Context, in readArgs) (readResult, error) {
	limit := in.Limit
	if limit == 0 {
		limit = 12000
	}
	inv := reeve.InvocationFrom(ctx)
	var got store.StoredOutput
	err := p.DB.View(ctx, func(s *store.Snap) (err error) {
		got, err = s.Ledger().VisibleTo(&inv.User).GetOutput(ctx, inv, in.Hash, in.Offset, limit)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return readResult{}, reeve.Errorf(reeve.ToolFailed, "no stored output has the hash %s", in.Hash).
			Hintf("use the hash of a recent result; old outputs are deleted after the configured retention")
	}
	if err != nil {
		return readResult{}, err
	}
	if in.Offset > got.Size {
		return readResult{}, reeve.Errorf(reeve.ToolFailed, "the output has only %d bytes", got.Size).
			Hintf("use a smaller offset")
	}
	body := wholeCharacters(got, limit)
	if !utf8.Valid(body) {
		return readResult{}, reeve.Errorf(reeve.ToolFailed,
			"offset %d is inside a character, or the output is binary", in.Offset).
			Hintf("use 0 or the next_offset of an earlier call")
	}
	// In JSON, quotes and line ends take more bytes than in the output.
	return reeve.LongestPage(inv, len(body), func(n int) (readResult, error) {
		from, to, shown := got.RedactedPart(len(wholeCharacters(got, n)))
		return readResult{Content: strings.ReplaceAll(shown, "\x00", "\uFFFD"), Offset: from, NextOffset: to,
			Size:      got.Size,
			Remaining: got.Size - to}, nil
	})
}

// wholeCharacters returns the whole characters within the first n bytes, but at least one character.
func wholeCharacters(k store.StoredOutput, n int) []byte {
	body := k.TextPrefix(n)
	if rest := k.BytePrefix(utf8.UTFMax); len(body) == 0 && len(rest) > 0 {
		_, n := utf8.DecodeRune(rest)
		body = rest[:n]
	}
	return body
}
