package store

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Letters with marks, and the letters by which PostgreSQL's index replaces them. The migration of reeve_plain has the
// same lists. SQLite folds these letters and more itself.
const (
	foldFrom = "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž"
	foldTo   = "AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz"
)

// stripMarks removes the marks of letters, as PostgreSQL's index does.
func stripMarks(s string) string { return markReplacer.Replace(s) }

var markReplacer = func() *strings.Replacer {
	to := []rune(foldTo)
	var pairs []string
	for i, r := range []rune(foldFrom) {
		pairs = append(pairs, string(r), string(to[i]))
	}
	return strings.NewReplacer(pairs...)
}()

// foldWord folds a word as reeve_fold in the migrations does for PostgreSQL's index of words as written.
func foldWord(w string) string {
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

// foldAttachmentWord folds a word of an attachment's name. The prefix ë marks such words in the index.
func foldAttachmentWord(w string) string { return "ë" + foldWord(w) }
