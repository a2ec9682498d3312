-- +goose Up

-- What the transactions of each server have announced, for the event streams of the other servers. A server numbers its
-- rows without gaps and keeps only the last few.
CREATE TABLE announcements (
  process    TEXT NOT NULL,
  n          BIGINT NOT NULL,
  body       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (process, n)
);
CREATE INDEX announcements_created ON announcements (created_at);
