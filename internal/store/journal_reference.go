package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

const (
	maxWords   = 10     // words of a reference that are searched
	maxScanned = 10_000 // most recently changed tasks that are searched; bounds the cost
	maxPool    = 500    // tasks with a matching word that are scored
)

// likePattern returns a LIKE pattern that finds a text anywhere, with wildcards escaped.
func likePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(foldText(s)) + "%"
}

// ResolveTask ranks the tasks that a reference may mean, by matching words, the beginning of titles and the time of the
// last change. The order is the same on every node. Without a reference, it returns the tasks that were changed last.
func (r *JournalReader) ResolveTask(ctx context.Context, reference string, closedToo bool,
	limit int) (reeve.TaskCandidates, error) {
	out := reeve.TaskCandidates{Candidates: []reeve.TaskCandidate{}, Ambiguous: true}
	want := splitWords(reference)
	if len(want) == 0 && reference != "" {
		return out, reeve.InvalidField("/reference", "has no words", "part of a task's title, or its id")
	}
	pool, err := r.listCandidates(ctx, strings.TrimSpace(reference), want, closedToo)
	if err != nil {
		return out, err
	}
	for age, t := range pool {
		score, why := scoreTask(reference, want, t, age)
		out.Candidates = append(out.Candidates, reeve.TaskCandidate{TaskID: t.ID, Title: t.Title,
			CategoryID: t.CategoryID, Status: t.Status,
			DueDate: t.DueDate, Score: score, Why: why})
	}
	// stable: among equal scores, the last changed comes first
	slices.SortStableFunc(out.Candidates, func(a, b reeve.TaskCandidate) int { return cmp.Compare(b.Score, a.Score) })
	if n := len(out.Candidates); n > 0 {
		first := out.Candidates[0].Score
		out.Ambiguous = first < 900 || (n > 1 && out.Candidates[1].Score >= 900)
	}
	out.Candidates = out.Candidates[:min(len(out.Candidates), limit)]
	return out, nil
}

// listCandidates returns the tasks that contain a word of a reference, last changed first. A task is found by its id
// even if it is old or closed.
func (r *JournalReader) listCandidates(ctx context.Context, id string, want []string, closedToo bool) ([]reeve.Task,
	error) {
	named, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, id, false)
	if err != nil {
		return nil, err
	}
	if ok && (r.scope.All || slices.Contains(r.scope.Categories, named.CategoryID)) {
		return []reeve.Task{named}, nil
	}
	var c whereClause
	c.add("workspace_id = ? AND deleted_at = 0", r.scope.Workspace)
	r.addScope(&c, "category_id")
	if !closedToo {
		c.add("closed_at = 0")
	}
	looked := whereClause{args: append(c.args, maxScanned)}
	last := "$" + strconv.Itoa(len(looked.args))
	parts, args := []string{}, []any{}
	for _, w := range want[:min(len(want), maxWords)] {
		parts, args = append(parts, `folded LIKE ? ESCAPE '\'`), append(args, likePattern(w))
	}
	if len(parts) == 0 {
		parts = []string{"1 = 1"}
	}
	looked.add("("+strings.Join(parts, " OR ")+")", args...)
	looked.args = append(looked.args, maxPool)
	return queryAll(ctx, r.snap, scanTask,
		`SELECT `+recordColumns+taskColumns+` FROM (SELECT `+recordColumns+taskColumns+
			` FROM tasks WHERE `+c.String()+
			` ORDER BY updated_at DESC, id DESC LIMIT `+last+`) looked WHERE `+looked.String()+
			` ORDER BY updated_at DESC, id DESC LIMIT $`+strconv.Itoa(len(looked.args)), looked.args...)
}

// splitWords returns the folded words of a text.
func splitWords(s string) []string {
	return strings.FieldsFunc(foldText(s), func(r rune) bool { return strings.ContainsRune(" \t,.;:!?\"'()[]{}", r) })
}

// scoreTask returns how well a task matches a reference, and why. age is the number of candidates that were changed
// later.
func scoreTask(reference string, want []string, t reeve.Task, age int) (int, string) {
	title, ref := foldText(t.Title), foldText(reference)
	recent := max(0, 40-age)
	switch {
	case reference == "":
		return recent, "changed recently"
	case t.ID == strings.TrimSpace(reference):
		return 1000, "id matches"
	case title == ref:
		return 950 + recent, "title matches"
	case strings.HasPrefix(title, ref):
		return 750 + recent, "title begins with the reference"
	case strings.Contains(title, ref):
		return 650 + recent, "title contains the reference"
	}
	have := splitWords(t.Title)
	whole, prefixes := 0, 0
	for _, w := range want {
		switch {
		case slices.Contains(have, w):
			whole++
		case slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, w) }):
			prefixes++
		}
	}
	score := (100*whole + 60*prefixes) * 5 / len(want) // 500 if every word matches
	return score + recent, strconv.Itoa(whole+prefixes) + " of " + strconv.Itoa(len(want)) + " words"
}
