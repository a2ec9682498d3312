-- +goose Up

-- A change is looked up by its id, whatever its events name.
DROP INDEX events_operation;
CREATE INDEX events_operation ON events (operation_id);
