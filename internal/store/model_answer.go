package store

import (
	"context"
	"time"

	"reeve"
)

// modelAnswerAge is how long the answers of models to tools are kept.
const modelAnswerAge = 30 * 24 * time.Hour

// maxOldAnswers limits how many old answers one insert deletes.
const maxOldAnswers = 100

// scanModelAnswer scans an answer after the key of its row.
func scanModelAnswer(r scanner) (answer string, err error) {
	var run, hash string
	if err := r.Scan(&run, &hash, &answer); err != nil {
		return "", corruptError("model_answers", run+"/"+hash, err)
	}
	return answer, nil
}

// FindModelAnswer returns the answer of a model that a tool asked in a run, by the hash of the question.
func (s Runs) FindModelAnswer(ctx context.Context, workspace, run, hash string) (string, bool, error) {
	return queryOne(ctx, s.Snap, scanModelAnswer, `SELECT run_id, hash, answer FROM model_answers WHERE run_id = $1 AND hash = $2 AND
		workspace_id = $3`, run, hash, workspace)
}

// InsertModelAnswer stores the answer of a model. If the same question was answered in the run before, the earlier
// answer stays. It deletes answers that are 30 days old.
func (t RunsTx) InsertModelAnswer(ctx context.Context, workspace, run, hash, answer string) error {
	if err := t.tx.exec(ctx, `DELETE FROM model_answers WHERE (run_id, hash) IN (SELECT run_id, hash FROM model_answers
		WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, reeve.Millis(t.now.Add(-modelAnswerAge)),
		maxOldAnswers); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO model_answers (run_id, hash, workspace_id, answer, created_at)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run_id, hash) DO NOTHING`, run, hash, workspace, answer,
		reeve.Millis(t.now))
}
