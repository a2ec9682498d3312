package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/memory"
	"reeve/internal/store"
)

// measureRecall measures how well and how fast notes are found.
func measureRecall(ctx context.Context, c config, t *table) {
	encoder := newCachedEncoder(embed.NewLocal(), c.vectors)
	sets := []questionSet{paraphrases(pick(c, 40, 8))}
	for _, dir := range c.data {
		sets = append(sets, must(readQuestionSets(dir))...)
	}
	for _, engine := range engines() {
		for i, set := range sets {
			measureQuality(ctx, c, engine, fmt.Sprint("quality", i), set, encoder, t)
			check(encoder.save())
		}
	}
	for _, engine := range engines() {
		measureRecallTime(ctx, c, engine, t)
	}
}

// cachedEncoder encodes each text once. Both databases store the same texts, and a file may keep the vectors for the
// next run.
type cachedEncoder struct {
	embed.Encoder
	file  string // empty: no file
	mu    sync.Mutex
	known map[string][]float32
}

func newCachedEncoder(encoder embed.Encoder, file string) *cachedEncoder {
	e := &cachedEncoder{Encoder: encoder, file: file, known: map[string][]float32{}}
	if file == "" {
		return e
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e
	}
	check(err)
	check(gob.NewDecoder(bytes.NewReader(b)).Decode(&e.known))
	return e
}

// Encode implements embed.Encoder.
func (e *cachedEncoder) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var missing []string
	for _, text := range texts {
		if e.known[text] == nil {
			missing = append(missing, text)
		}
	}
	vectors, err := e.Encoder.Encode(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i, text := range missing {
		e.known[text] = vectors[i]
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = e.known[text]
	}
	return out, nil
}

// save writes the vectors to the file.
func (e *cachedEncoder) save() error {
	if e.file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(e.known); err != nil {
		return err
	}
	return os.WriteFile(e.file, b.Bytes(), 0o600)
}

// measureQuality stores the texts of a set as notes of their users, asks its questions, and compares the answers of full
// text, of vectors and of both.
func measureQuality(ctx context.Context, c config, engine, name string, set questionSet, encoder embed.Encoder,
	t *table) {
	w := newFixture(ctx, c, engine, name)
	defer w.close()
	documents := map[string]string{} // by note id
	for some := range slices.Chunk(set.texts, 1000) {
		check(w.db.Update(ctx, func(tx *store.Tx) error {
			for _, text := range some {
				n, err := tx.Notes().InsertNote(ctx, workspace, reeve.Note{ID: tx.NewID(reeve.PrefixNote),
					UserID: userOf(text), Origin: reeve.NoteByPerson, Content: text.text})
				if err != nil {
					return err
				}
				documents[n.ID] = text.id
			}
			return nil
		}))
	}
	both := memory.NewNotes(memory.NotesConfig{DB: w.db, Encoder: encoder})
	for must(both.Step(ctx)) > 0 {
	}
	ways := []struct {
		name  string
		notes *memory.Notes
	}{
		{"full text", memory.NewNotes(memory.NotesConfig{DB: w.db, WordWeight: 1})},
		{"vectors", memory.NewNotes(memory.NotesConfig{DB: w.db, Encoder: encoder, MeaningWeight: 1})},
		{"both", both},
	}
	var words [2]float64
	for i, way := range ways {
		var recall, gain float64
		for _, q := range set.questions {
			r := must(way.notes.Recall(ctx, reeve.NoteQuery{WorkspaceID: workspace, UserID: userOf(q), Text: q.text, Limit: 10}))
			var ids []string
			for _, hit := range r.Hits {
				ids = append(ids, documents[hit.ID])
			}
			recall += recallAt(ids, set.relevant[q.id], 5)
			gain += gainAt(ids, set.relevant[q.id], 10)
		}
		for j, figure := range []float64{recall, gain} {
			figure /= float64(len(set.questions))
			line := row{name: fmt.Sprintf("%s, %s, %s, %s", engine, set.name, way.name, [2]string{"recall@5", "nDCG@10"}[j]),
				against: "full text", ours: figure, peer: words[j], ratio: figure / words[j], target: informational}
			switch {
			case i == 0:
				words[j], line.peer, line.ratio = figure, figure, 1
			case way.notes == both:
				line.target = atLeast(1)
			}
			t.add(line)
		}
	}
}

// userOf returns the user whose notes a text is among.
func userOf(t judgedText) string { return cmp.Or(t.user, "ann") }

// recallAt returns the share of the relevant documents that are among the first k.
func recallAt(ids []string, relevant map[string]bool, k int) float64 {
	found := 0.0
	for _, id := range ids[:min(k, len(ids))] {
		if relevant[id] {
			found++
		}
	}
	return found / float64(len(relevant))
}

// gainAt returns the normalized discounted cumulative gain of the first k documents. Relevance is 0 or 1.
func gainAt(ids []string, relevant map[string]bool, k int) float64 {
	var gain, ideal float64
	for i := range k {
		discount := 1 / math.Log2(float64(i)+2)
		if i < len(ids) && relevant[ids[i]] {
			gain += discount
		}
		if i < len(relevant) {
			ideal += discount
		}
	}
	return gain / ideal
}

// measureRecallTime measures the time to find the notes that fit a message, among notes of one's own and of others.
func measureRecallTime(ctx context.Context, c config, engine string, t *table) {
	w := newFixture(ctx, c, engine, "recall")
	defer w.close()
	const few, many = "ben", "ann" // users
	encoder, source := embed.NewLocal(), rand.New(rand.NewPCG(5, 5))
	notes := memory.NewNotes(memory.NotesConfig{DB: w.db, Encoder: encoder})
	words := append(factWords(), vocabulary()...)
	measure := func(user string) (took []float64) {
		r := rand.New(rand.NewPCG(9, 9)) // the same questions each time
		for range pick(c, 200, 40) {
			text, start := usualText(r, words, 10), time.Now()
			must(notes.Recall(ctx, reeve.NoteQuery{WorkspaceID: workspace, UserID: user, Text: text, Limit: 10}))
			took = append(took, milliseconds(time.Since(start)))
		}
		return took
	}
	line := func(count int, took []float64, limit float64) {
		for _, p := range []int{50, 95} {
			r := row{name: fmt.Sprintf("%s, search among %d notes, p%d", engine, count, p), unit: "ms", against: "limit",
				ours: percentile(took, p), peer: limit, target: informational}
			if r.ratio = r.ours / limit; p == 95 && count <= 100_000 {
				r.target = atMost(1)
			}
			t.add(r)
		}
	}
	writer := &noteWriter{w, encoder, source, words, map[string]int{}}
	writer.write(ctx, few, 1000)
	alone := measure(few)
	line(1000, alone, 50)
	for _, size := range []int{pick(c, 100_000, 10_000), pick(c, 1_000_000, 20_000)} {
		writer.write(ctx, many, size)
		line(size, measure(many), 50)
		among := measure(few)
		t.add(row{name: fmt.Sprintf("%s, search among 1000 notes and %d of others, p50", engine, size), unit: "ms",
			against: "1000 notes alone", ours: median(among), peer: median(alone), ratio: median(among) / median(alone),
			target: atMost(1.2)})
	}
}

// usualText returns words as a language has them: the most frequent is in half of all notes.
func usualText(r *rand.Rand, words []string, n int) string {
	picked := make([]string, n)
	for i := range picked {
		picked[i] = words[int(math.Pow(float64(len(words)), r.Float64()))-1]
	}
	return strings.Join(picked, " ")
}

// noteWriter writes many notes with random texts and vectors by plain SQL. To encode 1,000,000 texts would take hours.
type noteWriter struct {
	fixture *fixture
	encoder embed.Encoder
	random  *rand.Rand
	words   []string
	counts  map[string]int // notes by user
}

const rowsPerInsert = 256 // a block of sign bits

// write writes notes of a user until there are total.
func (n *noteWriter) write(ctx context.Context, user string, total int) {
	e := n.fixture.open(ctx)
	db, _, err := e.Migrator(ctx)
	check(err)
	defer func() { warn(errors.Join(db.Close(), e.Close())) }()
	db.SetMaxOpenConns(1)
	sqlite := n.fixture.engine == onSQLite
	if sqlite {
		must(db.ExecContext(ctx, "PRAGMA synchronous = OFF"))
	}
	if n.counts[user] == 0 { // the store writes the first note, with its owner
		check(n.fixture.db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Notes().InsertNote(ctx, workspace, reeve.Note{ID: "note_" + user + "_first", UserID: user,
				Origin: reeve.NoteByPerson, Content: "first"})
			if err != nil {
				return err
			}
			return tx.Notes().PutVectors(ctx, n.encoder.Model(), []store.NoteVector{n.vector("note_" + user + "_first")})
		}))
		n.counts[user] = 1
	}
	var owner string
	check(db.QueryRowContext(ctx, "SELECT owner FROM notes WHERE id = $1", "note_"+user+"_first").Scan(&owner))
	for n.counts[user] < total {
		slot := n.counts[user]
		n.writeBlock(ctx, db, user, owner, slot/rowsPerInsert, slot%rowsPerInsert,
			min(rowsPerInsert-slot%rowsPerInsert, total-slot))
	}
	must(db.ExecContext(ctx, "UPDATE note_vector_sets SET vectors = $1 WHERE owner = $2", total, owner))
	if sqlite {
		must(db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"))
		return
	}
	must(db.ExecContext(ctx, "VACUUM ANALYZE notes, note_vectors, note_vector_blocks"))
}

func (n *noteWriter) vector(id string) store.NoteVector {
	v := make([]float32, n.encoder.Dimensions())
	for i := range v {
		v[i] = float32(n.random.NormFloat64()) / 22.6
	}
	return store.NoteVector{NoteID: id, Version: 1, Code: embed.Bits(v), Vector: embed.Quantize(v)}
}

// writeBlock writes notes into the slots of one block from a position on.
func (n *noteWriter) writeBlock(ctx context.Context, db *sql.DB, user, owner string, block, from, count int) {
	var codes []byte
	if from > 0 {
		check(db.QueryRowContext(ctx, "SELECT codes FROM note_vector_blocks WHERE owner = $1 AND block = $2", owner,
			block).Scan(&codes))
	}
	var notes, vectors []any
	for i := range count {
		v := n.vector(fmt.Sprintf("note_%s_%08d", user, block*rowsPerInsert+from+i))
		codes = append(codes, v.Code...)
		notes = append(notes, v.NoteID, workspace, owner, user, usualText(n.random, n.words, 12), v.NoteID,
			n.encoder.Model())
		vectors = append(vectors, v.NoteID, owner, n.encoder.Model(), block*rowsPerInsert+from+i, v.Vector)
	}
	now := time.Now().UnixMilli()
	tx := must(db.BeginTx(ctx, nil))
	must(tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO notes (id, workspace_id, owner, user_id, content, hash, vector_model,
		agent_id, conversation_id, turn_id, origin, created_at, valid_from, updated_at) VALUES %s`,
		places(count, 7, fmt.Sprintf(", '', '', '', 'person', %d, %[1]d, %[1]d", now))), notes...))
	must(tx.ExecContext(ctx, `INSERT INTO note_vectors (note_id, owner, model, slot, vector) VALUES `+
		places(count, 5, ""), vectors...))
	must(tx.ExecContext(ctx, `INSERT INTO note_vector_blocks (owner, model, block, codes) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, model, block) DO UPDATE SET codes = $4`, owner, n.encoder.Model(), block, codes))
	check(tx.Commit())
	n.counts[user] += count
}

// places returns the rows of an INSERT: in each the parameters of some columns, then fixed values.
func places(rows, columns int, fixed string) string {
	list := make([]string, rows)
	for i := range list {
		parameters := make([]string, columns)
		for j := range parameters {
			parameters[j] = fmt.Sprint("$", i*columns+j+1)
		}
		list[i] = "(" + strings.Join(parameters, ", ") + fixed + ")"
	}
	return strings.Join(list, ", ")
}
