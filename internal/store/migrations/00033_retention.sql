-- +goose Up
-- Kept bytes by age, of those that may be forgotten one day, see ForgetPayloads: what conversations hold is not among them.
CREATE INDEX payloads_age ON payloads (created_at) WHERE uses < 4;

-- +goose Down
DROP INDEX payloads_age;
