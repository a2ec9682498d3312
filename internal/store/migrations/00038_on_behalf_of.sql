-- +goose Up
-- The agents on whose behalf a schedule, a queued wake, a run or a script's version was made, as JSON. Their rights limit what it does.
ALTER TABLE timers ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';
ALTER TABLE wakes ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';
ALTER TABLE scripts ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE scripts DROP COLUMN on_behalf_of;
ALTER TABLE runs DROP COLUMN on_behalf_of;
ALTER TABLE wakes DROP COLUMN on_behalf_of;
ALTER TABLE timers DROP COLUMN on_behalf_of;
