package notefile

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"reeve"
)

var (
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	bulletLine  = regexp.MustCompile(`^([-*+]|\d{1,9}[.)])\s+`)
	ruleLine    = regexp.MustCompile(`^\s*([-*_]\s*){3,}$`)
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	includeLine = regexp.MustCompile(`^@[^\s@]+$`)
)

// readMarkdown reads a Markdown file. Each paragraph and each list item becomes a note, with the heading above it as
// context and as a tag. A file that Reeve exported stays one note.
func (r *reader) readMarkdown(name, text string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var tags []string
	if front, body, ok := cutFrontMatter(text); ok {
		var h header
		if err := yaml.Unmarshal([]byte(front), &h); err != nil {
			r.problem(name, "its front matter is not valid YAML: %s", firstLine(yaml.FormatError(err, false, false)))
			return
		}
		if strings.HasPrefix(h.ID, reeve.PrefixNote+"_") {
			if r.plan.Format == Markdown {
				r.plan.Notes = append(r.plan.Notes, h.record(strings.TrimSpace(body)))
				return
			}
		}
		text, tags = body, h.tagList()
	}
	r.readBlocks(name, comment.ReplaceAllString(text, ""), tags, dateOf(name))
}

// readBlocks adds the paragraphs and list items of a Markdown text.
func (r *reader) readBlocks(file, text string, tags []string, validFrom *time.Time) {
	heading, fence := "", ""
	var block []string
	flush := func() {
		content := strings.TrimSpace(strings.Join(block, "\n"))
		block = nil
		content = strings.TrimSpace(bulletLine.ReplaceAllString(content, ""))
		if content == "" {
			return
		}
		all := tags
		if heading != "" {
			content = heading + ": " + content
			all = append([]string{heading}, tags...)
		}
		r.add(file, content, all, validFrom)
	}
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if fence != "" { // within a code block
			block = append(block, line)
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			continue
		}
		isIndented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch match := headingLine.FindStringSubmatch(line); {
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			block = append(block, line)
		case match != nil:
			flush()
			heading = plainText(match[1])
		case trimmed == "" || ruleLine.MatchString(trimmed):
			flush()
		case includeLine.MatchString(trimmed):
			flush()
			r.problem(file, "%s refers to another file; import that file too", trimmed)
		case bulletLine.MatchString(line):
			flush()
			block = append(block, line)
		case isIndented && len(block) == 0:
			block = append(block, trimmed)
		default:
			block = append(block, strings.TrimRight(line, " \t"))
		}
	}
	flush()
}

// plainText returns a heading without emphasis and code marks.
func plainText(heading string) string {
	return strings.TrimSuffix(strings.NewReplacer("**", "", "`", "", "__", "").Replace(heading), ":")
}

// dateOf returns the date in the name of a daily file, or nil.
func dateOf(name string) *time.Time {
	base := path.Base(name)
	if !dailyFile.MatchString(base) {
		return nil
	}
	at, err := time.Parse(time.DateOnly, base[:len(time.DateOnly)])
	if err != nil {
		return nil
	}
	return &at
}

// cutFrontMatter splits a Markdown text into front matter and body.
func cutFrontMatter(text string) (front, body string, ok bool) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, false
	}
	if front, body, ok = strings.Cut(rest, "\n---\n"); !ok {
		if front, ok = strings.CutSuffix(strings.TrimRight(rest, "\n"), "\n---"); !ok {
			return "", text, false
		}
	}
	return front, body, true
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
