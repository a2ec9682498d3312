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
	maxWords  = 10     // words of a reference that are looked for
	maxLooked = 10_000 // tasks that are looked at, the most recently changed ones: the cost does not grow with history
	maxPool   = 500    // of those that have one of the words, how many are compared
)

// like is a pattern that finds a text anywhere, with what the engine would take for a wildcard made plain.
func like(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(fold(s)) + "%"
}

// ResolveTask ranks the tasks that a reference may mean: by its words, how the titles begin, and which was changed
// last. The same tasks give the same order on every node and at any time. It chooses nothing. Without a reference it
// gives the tasks that were changed last.
func (r *JournalReader) ResolveTask(ctx context.Context, reference string, closedToo bool,
	limit int) (reeve.TaskCandidates, error) {
	out := reeve.TaskCandidates{Candidates: []reeve.TaskCandidate{}, Ambiguous: true}
	want := words(reference)
	if len(want) == 0 && reference != "" {
		return out, reeve.InvalidField("/reference", "has no words", "part of a task's title, or its id")
	}
	pool, err := r.taskPool(ctx, strings.TrimSpace(reference), want, closedToo)
	if err != nil {
		return out, err
	}
	for age, t := range pool {
		score, why := likeness(reference, want, t, age)
		out.Candidates = append(out.Candidates, reeve.TaskCandidate{TaskID: t.ID, Title: t.Title,
			CategoryID: t.CategoryID, Status: t.Status,
			DueDate: t.DueDate, Score: score, Why: why})
	}
	// of equals, the last changed first
	slices.SortStableFunc(out.Candidates, func(a, b reeve.TaskCandidate) int { return cmp.Compare(b.Score, a.Score) })
	if n := len(out.Candidates); n > 0 {
		first := out.Candidates[0].Score
		out.Ambiguous = first < 900 || (n > 1 && out.Candidates[1].Score >= 900)
	}
	out.Candidates = out.Candidates[:min(len(out.Candidates), limit)]
	return out, nil
}

// taskPool reads the tasks that have a word of a reference, the last changed first. A task named by its id is found
// however old or closed it is.
func (r *JournalReader) taskPool(ctx context.Context, id string, want []string, closedToo bool) ([]reeve.Task, error) {
	named, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, id, false)
	if err != nil {
		return nil, err
	}
	if ok && (r.who.All || slices.Contains(r.who.Categories, named.CategoryID)) {
		return []reeve.Task{named}, nil
	}
	var c clause
	c.add("workspace_id = ? AND deleted_at = 0", r.who.Workspace)
	r.within(&c, "category_id")
	if !closedToo {
		c.add("closed_at = 0")
	}
	looked := clause{args: append(c.args, maxLooked)}
	last := "$" + strconv.Itoa(len(looked.args))
	parts, args := []string{}, []any{}
	for _, w := range want[:min(len(want), maxWords)] {
		parts, args = append(parts, `folded LIKE ? ESCAPE '\'`), append(args, like(w))
	}
	if len(parts) == 0 {
		parts = []string{"1 = 1"}
	}
	looked.add("("+strings.Join(parts, " OR ")+")", args...)
	looked.args = append(looked.args, maxPool)
	return all(ctx, r.snap, scanTask, `SELECT `+recordColumns+taskColumns+` FROM (SELECT `+recordColumns+taskColumns+
		` FROM tasks WHERE `+c.String()+
		` ORDER BY updated_at DESC, id DESC LIMIT `+last+`) looked WHERE `+looked.String()+
		` ORDER BY updated_at DESC, id DESC LIMIT $`+strconv.Itoa(len(looked.args)), looked.args...)
}

// words are the words of a text, folded.
func words(s string) []string {
	return strings.FieldsFunc(fold(s), func(r rune) bool { return strings.ContainsRune(" \t,.;:!?\"'()[]{}", r) })
}

// likeness says how well a task fits a reference. Age is how many of the others were changed later.
func likeness(reference string, want []string, t reeve.Task, age int) (int, string) {
	title, ref := fold(t.Title), fold(reference)
	recent := max(0, 40-age)
	switch {
	case reference == "":
		return recent, "changed lately"
	case t.ID == strings.TrimSpace(reference):
		return 1000, "its id"
	case title == ref:
		return 950 + recent, "its whole title"
	case strings.HasPrefix(title, ref):
		return 750 + recent, "how its title begins"
	case strings.Contains(title, ref):
		return 650 + recent, "part of its title"
	}
	have := words(t.Title)
	whole, begun := 0, 0
	for _, w := range want {
		switch {
		case slices.Contains(have, w):
			whole++
		case slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, w) }):
			begun++
		}
	}
	score := (100*whole + 60*begun) * 5 / len(want) // 500 when every word is there
	return score + recent, strconv.Itoa(whole+begun) + " of " + strconv.Itoa(len(want)) + " words"
}
