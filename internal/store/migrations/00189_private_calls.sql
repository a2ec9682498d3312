-- +goose Up

-- The user to whom a row is private: only this user and owners see it. Empty means that every member sees it.
ALTER TABLE calls ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
ALTER TABLE payloads ADD COLUMN private_to TEXT NOT NULL DEFAULT '';
