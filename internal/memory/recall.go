package memory

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// NotesConfig configures Notes.
type NotesConfig struct {
	DB      *store.DB
	Log     *slog.Logger
	Encoder embed.Encoder // computes vectors; nil means that notes are searched by words only

	WordWeight    float64       // weight of shared words in the score of a note. Default: 0.4
	MeaningWeight float64       // weight of similar meaning in the score of a note. Default: 1
	HalfLife      time.Duration // age at which a note has lost half of maxAgeLoss. Default: 180 days
}

func (c NotesConfig) withDefaults() NotesConfig {
	if c.WordWeight == 0 && c.MeaningWeight == 0 {
		c.WordWeight, c.MeaningWeight = 0.4, 1
	}
	c.HalfLife = cmp.Or(c.HalfLife, 180*24*time.Hour)
	return c
}

const (
	wordCandidates    = 50   // notes with common words that are scored
	meaningCandidates = 200  // notes with similar sign bits whose whole vectors are compared
	minMeaning        = 0.35 // cosine below which two texts count as unrelated
	maxAgeLoss        = 0.2  // largest share of its score that a note loses with age
)

// Notes recalls notes and computes their vectors in the background.
type Notes struct {
	cfg          NotesConfig
	notesChanged notify.Signal
	codes        codeCache
	encoding     sync.Mutex // held while vectors of notes are computed and stored, so that none is computed twice
}

// NewNotes returns Notes. It computes no vectors until Run or Step is called.
func NewNotes(cfg NotesConfig) *Notes {
	return &Notes{cfg: cfg.withDefaults(), notesChanged: notify.New()}
}

// Recall returns the user's current notes that fit the text of a query, best first. Notes are scored by the words that
// they share with the text and by the similarity of their meaning. If the encoder fails, words alone decide.
func (r *Notes) Recall(ctx context.Context, q reeve.NoteQuery) (out reeve.NoteResult, err error) {
	vector, problem := r.EncodeQuery(ctx, q.Text)
	err = r.cfg.DB.View(ctx, func(s *store.Snap) (err error) {
		out.Hits, err = r.RecallIn(ctx, s, q, vector)
		return err
	})
	out.WordsOnly = problem
	return out, err
}

// EncodeQuery returns the vector of a text, or nil and the reason why there is none.
func (r *Notes) EncodeQuery(ctx context.Context, text string) (vector []float32, problem string) {
	if r.cfg.Encoder == nil {
		return nil, "this server has no embedding model"
	}
	list, err := r.cfg.Encoder.Encode(ctx, []string{text})
	if err != nil {
		return nil, reeve.AsError(err).Message
	}
	return list[0], ""
}

// candidate is a note that may fit a query.
type candidate struct {
	words   float64 // 0 to 1
	meaning float64 // cosine; NaN if the note has no vector yet
}

// RecallIn is Recall within a transaction. vector is the vector of the query's text, or nil.
func (r *Notes) RecallIn(ctx context.Context, s *store.Snap, q reeve.NoteQuery, vector []float32) ([]reeve.NoteHit,
	error) {
	search := store.NoteSearch{Workspace: q.WorkspaceID, User: q.UserID, Text: q.Text, Tags: q.Tags,
		Limit: max(wordCandidates, q.Limit)}
	found := map[string]candidate{}
	matches, err := s.Notes().MatchNotes(ctx, search)
	if err != nil {
		return nil, err
	}
	for _, m := range matches { // the first match has the highest score
		found[m.ID] = candidate{words: m.Score / math.Max(matches[0].Score, math.SmallestNonzeroFloat64),
			meaning: math.NaN()}
	}
	if vector != nil {
		if err := r.addSimilar(ctx, s, search, vector, found); err != nil {
			return nil, err
		}
	}
	ids := make([]string, 0, len(found))
	for id, c := range found {
		if c.words > 0 || c.meaning >= minMeaning {
			ids = append(ids, id)
		}
	}
	notes, err := s.Notes().GetNotes(ctx, q.WorkspaceID, q.UserID, ids)
	if err != nil {
		return nil, err
	}
	hits := make([]reeve.NoteHit, len(notes))
	for i, n := range notes {
		hits[i] = r.score(n, found[n.ID], s.Now())
	}
	slices.SortFunc(hits, func(a, b reeve.NoteHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID))
	})
	return hits[:min(len(hits), q.Limit)], nil
}

// score returns a note with its score.
func (r *Notes) score(n reeve.Note, c candidate, now time.Time) reeve.NoteHit {
	h := reeve.NoteHit{Note: n, Matched: []string{}}
	if c.words > 0 {
		h.Matched = append(h.Matched, "words")
	}
	if c.meaning >= minMeaning {
		h.Matched = append(h.Matched, "meaning")
	}
	if math.IsNaN(c.meaning) { // without a vector, only common words count
		c.meaning = c.words
	}
	h.Score = r.cfg.WordWeight*c.words + r.cfg.MeaningWeight*c.meaning
	if !n.Pinned {
		age := max(0, now.Sub(n.UpdatedAt))
		h.Score *= 1 - maxAgeLoss*(1-math.Exp2(-float64(age)/float64(r.cfg.HalfLife)))
	}
	return h
}

// addSimilar adds the cosine of notes found by words, and the notes whose vectors are nearest to the query's.
func (r *Notes) addSimilar(ctx context.Context, s *store.Snap, q store.NoteSearch, vector []float32,
	found map[string]candidate) error {
	model := r.cfg.Encoder.Model()
	ids := make([]string, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	vectors, err := s.Notes().VectorsOf(ctx, q.Workspace, q.User, model, ids)
	if err != nil {
		return err
	}
	slots, err := r.nearestSlots(ctx, s, q, vector)
	if err != nil {
		return err
	}
	similar, err := s.Notes().VectorsAt(ctx, q, model, slots)
	if err != nil {
		return err
	}
	for _, v := range append(vectors, similar...) {
		c := found[v.NoteID]
		c.meaning = float64(embed.Dot(vector, v.Vector))
		found[v.NoteID] = c
	}
	return nil
}

// nearestSlots returns the slots whose sign bits differ least from the query's vector.
func (r *Notes) nearestSlots(ctx context.Context, s *store.Snap, q store.NoteSearch,
	vector []float32) ([]int64, error) {
	code := embed.Bits(vector)
	blocks, err := r.codes.read(ctx, s, q.Workspace, q.User, r.cfg.Encoder.Model())
	if err != nil {
		return nil, err
	}
	var allowed map[int64]bool
	if len(q.Tags) > 0 {
		slots, err := s.Notes().SlotsWithTags(ctx, q, r.cfg.Encoder.Model())
		if err != nil {
			return nil, err
		}
		allowed = map[int64]bool{}
		for _, slot := range slots {
			allowed[slot] = true
		}
	}
	return nearest(blocks, code, allowed), nil
}

// nearest returns about meaningCandidates slots whose bits differ least from code. If allowed is not nil, it returns
// only slots in allowed.
func nearest(blocks [][]byte, code []byte, allowed map[int64]bool) []int64 {
	distances := []int{}                 // distance of each slot; -1 if the slot is not allowed
	counts := make([]int, 8*len(code)+1) // number of slots at each distance
	for b, codes := range blocks {
		for i := 0; (i+1)*len(code) <= len(codes); i++ {
			d := -1
			if allowed == nil || allowed[int64(b*store.SlotsPerBlock+i)] {
				d = embed.Hamming(code, codes[i*len(code):(i+1)*len(code)])
				counts[d]++
			}
			distances = append(distances, d)
		}
	}
	limit, total := 0, 0 // the distance up to which there are enough slots
	for limit < len(counts)-1 && total+counts[limit] < meaningCandidates {
		total += counts[limit]
		limit++
	}
	atLimit := meaningCandidates - total
	var slots []int64
	for slot, d := range distances {
		if d == limit {
			atLimit--
		}
		if d >= 0 && (d < limit || d == limit && atLimit >= 0) {
			slots = append(slots, int64(slot))
		}
	}
	return slots
}
