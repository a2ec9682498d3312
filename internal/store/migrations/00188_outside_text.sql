-- +goose Up

-- The result of a call says whether it has text from outside. HasOutsideText in Go has the same condition.
CREATE INDEX calls_outside ON calls (run_id) WHERE result_info LIKE '%"untrusted":true%';

-- Earlier calls were recognized by their tool.
UPDATE calls SET result_info = '{"untrusted":true,' || substr(result_info, 2) WHERE result_info LIKE '{"%'
	AND (tool IN (SELECT id FROM tools WHERE pack IN ('web', 'mail') OR kind IN ('http', 'mcp'))
		OR tool = 'memory_search' AND result LIKE '%"origin":"untrusted"%');

-- untrusted is 1 if the summary covers a turn or run with text from outside.
ALTER TABLE summaries ADD COLUMN untrusted BIGINT NOT NULL DEFAULT 0;
UPDATE summaries SET untrusted = 1 WHERE thread_id IN (SELECT thread_id FROM calls
	WHERE result_info LIKE '%"untrusted":true%');
UPDATE summaries SET untrusted = 1 WHERE conversation_id IS NULL AND agent_id IN (SELECT agent_id FROM calls
	WHERE result_info LIKE '%"untrusted":true%');

-- The stored response of a request may quote a note that is forgotten.
ALTER TABLE requests ADD COLUMN workspace_id TEXT NOT NULL DEFAULT '';

-- only sqlite
-- A deleted word leaves the index at once, not with the next merge. The rebuild removes the words that were deleted
-- before.
INSERT INTO notes_words (notes_words, rank) VALUES ('secure-delete', 1);
INSERT INTO notes_words (notes_words) VALUES ('rebuild');
-- end
