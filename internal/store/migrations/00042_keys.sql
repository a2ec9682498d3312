-- +goose Up
-- Until when a request that a verifiable operation has sent may still take effect. Zero means that none was sent, or that the row is older than this column.
ALTER TABLE operations ADD COLUMN in_flight_until BIGINT NOT NULL DEFAULT 0;
-- The process that works on a request, and this attempt at it. Both are empty in rows that are older than these columns.
ALTER TABLE requests ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN claim TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE requests DROP COLUMN claim;
ALTER TABLE requests DROP COLUMN process;
ALTER TABLE operations DROP COLUMN in_flight_until;
