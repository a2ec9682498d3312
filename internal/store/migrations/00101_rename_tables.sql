-- +goose Up

-- Rename two tables after what their rows are, and rename values that API clients see.

ALTER TABLE missed RENAME TO missed_firings;
ALTER TABLE removals RENAME TO deletions;

UPDATE branches SET state = 'creating' WHERE state = 'making';
UPDATE runs SET ancestors = replace(ancestors, '"apart":true', '"own_rights":true') WHERE ancestors LIKE '%"apart":true%';
UPDATE mail_imports SET notes = replace(notes, '"bad":true', '"unreadable":true') WHERE notes LIKE '%"bad":true%';
