-- +goose Up

-- The text of an old request is removed. The row stays, because it says whether the run was shown untrusted notes.
DROP INDEX model_requests_created;
CREATE INDEX model_requests_stored ON model_requests (created_at) WHERE request <> '';
