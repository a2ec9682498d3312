package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"reeve"
)

// vectorsPerBlock is the number of vectors whose sign bits are stored in one row.
const vectorsPerBlock = 256

// NoteText is the content of a note whose vector is to be computed.
type NoteText struct {
	ID      string
	Version int64
	Content string
}

// NotesWithoutVector returns current notes whose vector is missing or was computed by another model, oldest first.
func (s Notes) NotesWithoutVector(ctx context.Context, model string, limit int) ([]NoteText, error) {
	scan := func(r scanner) (v NoteText, err error) {
		defer wrapCorrupt("notes", &v.ID, &err)
		return v, r.Scan(&v.ID, &v.Version, &v.Content)
	}
	var list []NoteText
	for _, condition := range []string{`o.vector_model < $1`, `o.vector_model > $1`} { // each uses the index
		found, err := queryAll(ctx, s.Snap, scan, `SELECT o.id, o.version, o.content FROM notes o WHERE `+condition+
			` AND `+isCurrentNote+` ORDER BY o.vector_model, o.n LIMIT $2`, model, limit-len(list))
		if list = append(list, found...); err != nil || len(list) == limit {
			return list, err
		}
	}
	return list, nil
}

// NoteVector is the vector of a note.
type NoteVector struct {
	NoteID  string
	Version int64  // the version of the note that it was computed from
	Code    []byte // sign bits
	Vector  []byte // the whole vector
}

// PutVectors stores vectors that a model computed. It skips a vector whose note has been written, deleted or superseded
// since, or has a vector of this model already.
func (t NotesTx) PutVectors(ctx context.Context, model string, vectors []NoteVector) error {
	type set struct{ owner, workspace string }
	byOwner := map[set][]NoteVector{}
	// Notes are locked before sets, in the order of their ids, so that two servers do not block each other.
	for _, v := range slices.SortedFunc(slices.Values(vectors), func(a, b NoteVector) int {
		return cmp.Compare(a.NoteID, b.NoteID)
	}) {
		r, ok, err := queryOne(ctx, t.Snap, func(r scanner) (v set, err error) {
			return v, r.Scan(&v.owner, &v.workspace)
		}, `UPDATE notes AS o SET vector_model = $3 WHERE o.id = $1 AND o.version = $2 AND o.vector_model <> $3 AND `+
			isCurrentNote+` RETURNING owner, workspace_id`, v.NoteID, v.Version, model)
		if err != nil {
			return err
		}
		if ok {
			byOwner[r] = append(byOwner[r], v)
		}
	}
	owners := slices.SortedFunc(maps.Keys(byOwner), func(a, b set) int { return cmp.Compare(a.owner, b.owner) })
	for _, r := range owners {
		for _, v := range byOwner[r] {
			if err := t.removeVector(ctx, v.NoteID); err != nil { // a vector of another model
				return err
			}
		}
		if err := t.appendVectors(ctx, r.owner, r.workspace, model, byOwner[r]); err != nil {
			return err
		}
	}
	return nil
}

// appendVectors gives new vectors of one owner the next slots.
func (t NotesTx) appendVectors(ctx context.Context, owner, workspace, model string, list []NoteVector) error {
	count, _, err := queryOne(ctx, t.Snap, scanValue[int64], `INSERT INTO note_vector_sets (owner, model, workspace_id,
			vectors, revision) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (owner, model) DO UPDATE SET vectors = note_vector_sets.vectors + $4, revision = $5
		RETURNING vectors`, owner, model, workspace, len(list), t.tx.NewID(reeve.PrefixNote))
	if err != nil {
		return err
	}
	slot := count - int64(len(list))
	var codes []byte
	if slot%vectorsPerBlock != 0 {
		if codes, err = t.getBlock(ctx, owner, model, slot/vectorsPerBlock); err != nil {
			return err
		}
	}
	for i, v := range list {
		if err := t.tx.exec(ctx, `INSERT INTO note_vectors (note_id, owner, model, slot, vector)
			VALUES ($1, $2, $3, $4, $5)`, v.NoteID, owner, model, slot, v.Vector); err != nil {
			return err
		}
		codes = append(codes, v.Code...)
		if slot++; slot%vectorsPerBlock == 0 || i == len(list)-1 {
			if err := t.putBlock(ctx, owner, model, (slot-1)/vectorsPerBlock, codes); err != nil {
				return err
			}
			codes = nil
		}
	}
	return nil
}

// removeVector deletes the vector of a note, if it has one. The last vector of the owner gets its slot.
func (t NotesTx) removeVector(ctx context.Context, note string) error {
	type row struct {
		owner, model string
		slot         int64
	}
	scan := func(r scanner) (v row, err error) { return v, r.Scan(&v.owner, &v.model, &v.slot) }
	// lock the set before the slot is read: another server may be moving the vector
	set, ok, err := queryOne(ctx, t.Snap, scan, `UPDATE note_vector_sets SET vectors = vectors - 1, revision = $2
		WHERE (owner, model) IN (SELECT owner, model FROM note_vectors WHERE note_id = $1)
		RETURNING owner, model, vectors`, note, t.tx.NewID(reeve.PrefixNote))
	if err != nil || !ok {
		return err
	}
	gone, _, err := queryOne(ctx, t.Snap, scan,
		`DELETE FROM note_vectors WHERE note_id = $1 RETURNING owner, model, slot`, note)
	if err != nil {
		return err
	}
	last := set.slot // the number of vectors that are left is the slot of the last one
	codes, err := t.getBlock(ctx, set.owner, set.model, last/vectorsPerBlock)
	if err != nil {
		return err
	}
	size := int64(len(codes)) / (last%vectorsPerBlock + 1)
	lastCode := slices.Clone(codes[int64(len(codes))-size:])
	if codes = codes[:int64(len(codes))-size]; gone.slot != last {
		if gone.slot/vectorsPerBlock == last/vectorsPerBlock {
			copy(codes[gone.slot%vectorsPerBlock*size:], lastCode)
		} else if err := t.replaceCode(ctx, set.owner, set.model, gone.slot, lastCode); err != nil {
			return err
		}
		if err := t.tx.exec(ctx, `UPDATE note_vectors SET slot = $4 WHERE owner = $1 AND model = $2 AND slot = $3`,
			set.owner, set.model, last, gone.slot); err != nil {
			return err
		}
	}
	if len(codes) > 0 {
		return t.putBlock(ctx, set.owner, set.model, last/vectorsPerBlock, codes)
	}
	return t.tx.exec(ctx, `DELETE FROM note_vector_blocks WHERE owner = $1 AND model = $2 AND block = $3`,
		set.owner, set.model, last/vectorsPerBlock)
}

// replaceCode replaces the sign bits of one slot.
func (t NotesTx) replaceCode(ctx context.Context, owner, model string, slot int64, code []byte) error {
	codes, err := t.getBlock(ctx, owner, model, slot/vectorsPerBlock)
	if err != nil {
		return err
	}
	copy(codes[slot%vectorsPerBlock*int64(len(code)):], code)
	return t.putBlock(ctx, owner, model, slot/vectorsPerBlock, codes)
}

func (s Notes) getBlock(ctx context.Context, owner, model string, block int64) ([]byte, error) {
	codes, ok, err := queryOne(ctx, s.Snap, scanValue[[]byte],
		`SELECT codes FROM note_vector_blocks WHERE owner = $1 AND model = $2 AND block = $3`, owner, model, block)
	if err == nil && (!ok || len(codes) == 0) {
		err = corruptError("note_vector_blocks", owner, errMissingBlock)
	}
	return codes, err
}

var errMissingBlock = &columnError{"codes", "is missing"}

func (t NotesTx) putBlock(ctx context.Context, owner, model string, block int64, codes []byte) error {
	return t.tx.exec(ctx, `INSERT INTO note_vector_blocks (owner, model, block, codes) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, model, block) DO UPDATE SET codes = $4`, owner, model, block, codes)
}

// VectorRevision returns the revision of the user's vectors of a model. It changes with every change of VectorCodes.
func (s Notes) VectorRevision(ctx context.Context, workspace, user, model string) (string, error) {
	revision, _, err := queryOne(ctx, s.Snap, scanValue[string],
		`SELECT revision FROM note_vector_sets WHERE owner = $1 AND model = $2`, noteOwner(workspace, user), model)
	return revision, err
}

// VectorCodes returns the sign bits of the user's vectors of a model, joined in the order of their slots.
func (s Notes) VectorCodes(ctx context.Context, workspace, user, model string) ([][]byte, error) {
	return queryAll(ctx, s.Snap, scanValue[[]byte], `SELECT codes FROM note_vector_blocks WHERE owner = $1
		AND model = $2 ORDER BY block`, noteOwner(workspace, user), model)
}

// SlotsPerBlock is the number of slots in each block of VectorCodes but the last.
const SlotsPerBlock = vectorsPerBlock

// StoredVector is a whole vector with its note.
type StoredVector struct {
	NoteID string
	Vector []byte
}

// VectorsAt returns the vectors in some slots. Notes without all tags are left out.
func (s Notes) VectorsAt(ctx context.Context, q NoteSearch, model string, slots []int64) ([]StoredVector, error) {
	tagged, args := tagCondition("v.note_id", 4, q.Tags)
	chosen := `v.slot IN (SELECT value FROM json_each('[' || $3 || ']'))`
	if s.db.Engine() == "postgres" {
		chosen = `v.slot = ANY (CAST(string_to_array($3, ',') AS BIGINT[]))`
	}
	return queryAll(ctx, s.Snap, scanStoredVector, `SELECT v.note_id, v.vector FROM note_vectors v WHERE v.owner = $1
		AND v.model = $2 AND `+chosen+tagged, append([]any{noteOwner(q.Workspace, q.User), model,
		joinIDs(slots, func(n int64) int64 { return n })}, args...)...)
}

// VectorsOf returns the vectors of some notes of a user. It finds vectors by note: an index on the owner would visit
// all vectors of the user.
func (s Notes) VectorsOf(ctx context.Context, workspace, user, model string, ids []string) ([]StoredVector, error) {
	return queryIn(ctx, s.Snap, scanStoredVector, `SELECT v.note_id, v.vector FROM note_vectors v
		WHERE v.note_id IN (?) AND v.owner || '' = $1 AND v.model = $2`, ids, noteOwner(workspace, user), model)
}

// SlotsWithTags returns the slots of the user's vectors whose notes have all tags of the search.
func (s Notes) SlotsWithTags(ctx context.Context, q NoteSearch, model string) ([]int64, error) {
	tagged, args := tagCondition("v.note_id", 4, q.Tags[1:])
	return queryAll(ctx, s.Snap, scanValue[int64], `SELECT v.slot FROM note_tags f JOIN note_vectors v
			ON v.note_id = f.note_id WHERE f.owner = $1 AND v.model = $2 AND f.tag = $3`+tagged,
		append([]any{noteOwner(q.Workspace, q.User), model, q.Tags[0]}, args...)...)
}

func scanStoredVector(r scanner) (v StoredVector, err error) {
	defer wrapCorrupt("note_vectors", &v.NoteID, &err)
	return v, r.Scan(&v.NoteID, &v.Vector)
}

// CountForgotten returns how many notes a workspace has forgotten. It never decreases.
func (s Notes) CountForgotten(ctx context.Context, workspace string) (int64, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*) FROM note_tombstones WHERE workspace_id = $1`,
		workspace)
	return n, err
}

// IsForgotten reports whether a note of a user was erased. If user is empty, it may be a note of any user.
func (s Notes) IsForgotten(ctx context.Context, workspace, user, id string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT id FROM note_tombstones WHERE id = $2
		AND workspace_id = $1 AND ($3 = '' OR user_id = $3)`, workspace, id, user)
	return ok, err
}

// EraseNote removes a note with its versions, tags, index entries and vector, and leaves a tombstone without text.
func (t NotesTx) EraseNote(ctx context.Context, workspace, operation string, n reeve.Note) error {
	t.tx.Announce(workspace, TopicNotes, "", "")
	return firstError(
		t.tx.exec(ctx, `UPDATE notes SET vector_model = '' WHERE id = $1`, n.ID), // locks the note
		t.removeVector(ctx, n.ID),
		t.tx.exec(ctx, `DELETE FROM notes WHERE id = $1 AND workspace_id = $2`, n.ID, workspace),
		t.tx.exec(ctx, `INSERT INTO note_tombstones (id, workspace_id, user_id, operation_id, forgotten_at)
			VALUES ($1, $2, $3, $4, $5)`, n.ID, workspace, n.UserID, operation, reeve.Millis(t.now)))
}
