package store

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The letters that the index of PostgreSQL keeps without their marks, and those it keeps. SQLite folds these and more
// by itself. A migration says the same.
const (
	foldFrom = "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž"
	foldTo   = "AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz"
)

// unmarked takes the marks off letters, as the index does.
func unmarked(s string) string { return marks.Replace(s) }

var marks = func() *strings.Replacer {
	to := []rune(foldTo)
	var pairs []string
	for i, r := range []rune(foldFrom) {
		pairs = append(pairs, string(r), string(to[i]))
	}
	return strings.NewReplacer(pairs...)
}()

// foldWritten writes a word as PostgreSQL's index of words as written has it: see reeve_fold in the migrations.
func foldWritten(w string) string {
	var b strings.Builder
	latin := false
	for _, r := range norm.NFD.String(w) {
		if r >= 0x300 && r <= 0x36F && latin {
			continue
		}
		latin = r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		b.WriteRune(r)
	}
	w = strings.ReplaceAll(strings.ToLower(norm.NFC.String(b.String())), "ς", "σ")
	if w != "" && w[0] >= '0' && w[0] <= '9' {
		w = "ê" + w
	}
	return w
}

// foldAttached is foldWritten for a word of an attachment's name.
func foldAttached(w string) string { return "ë" + foldWritten(w) }
