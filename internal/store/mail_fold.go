package store

import "strings"

// The letters that the index of PostgreSQL keeps without their marks, and those it keeps. SQLite folds these and more by itself. A migration says the same.
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
