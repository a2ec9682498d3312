-- +goose Up
-- Mail that was imported. A mail's id says where it belongs: the workspace's number, 16 bits for the inbox, 28 for the mail. Searching a workspace
-- or an inbox is then a range of ids, which both engines' full-text indexes take for free.
CREATE TABLE mail_numbers (
  name TEXT PRIMARY KEY,
  last BIGINT NOT NULL
);
INSERT INTO mail_numbers (name, last) VALUES ('workspace', 0);
CREATE TABLE inboxes (
  id           BIGINT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  name         TEXT NOT NULL,
  last         BIGINT NOT NULL,
  messages     BIGINT NOT NULL,
  UNIQUE (workspace_id, name)
);
CREATE TABLE emails (
  id         INTEGER PRIMARY KEY,
  inbox_id   BIGINT NOT NULL,
  message_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  sent_at    BIGINT NOT NULL,
  folder     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  sender     TEXT NOT NULL,
  recipients TEXT NOT NULL,
  attached   TEXT NOT NULL,
  detail     TEXT NOT NULL,
  body       TEXT NOT NULL,
  UNIQUE (inbox_id, message_id)
);
CREATE INDEX emails_sent ON emails (inbox_id, sent_at);
CREATE TABLE mail_imports (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  source       TEXT NOT NULL,
  state        TEXT NOT NULL,
  replaces     BIGINT NOT NULL,
  position     TEXT NOT NULL,
  seen         BIGINT NOT NULL,
  added        BIGINT NOT NULL,
  replaced     BIGINT NOT NULL,
  duplicate    BIGINT NOT NULL,
  bad          BIGINT NOT NULL,
  notes        TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  finished_at  BIGINT NOT NULL
);
CREATE INDEX mail_imports_source ON mail_imports (workspace_id, source);

-- only sqlite
CREATE VIRTUAL TABLE emails_words USING fts5 (subject, body, sender, recipients, attached, content='emails', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO emails_words (emails_words, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0, 0.5, 1.0)');
-- +goose StatementBegin
CREATE TRIGGER emails_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached) VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_deleted AFTER DELETE ON emails BEGIN
  INSERT INTO emails_words (emails_words, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_updated AFTER UPDATE ON emails BEGIN
  INSERT INTO emails_words (emails_words, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached) VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- end

-- only postgres
-- Words are what stands between signs, as in SQLite: no addresses, hosts, versions or other things that the parser would keep whole. No word is too common.
-- +goose StatementBegin
CREATE FUNCTION reeve_plain (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN octet_length($1) = length($1) THEN translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                ')
    ELSE translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~’‘“”„–—…•·«»¡¿ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž',
    '                                              AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz') END
$f$;
-- +goose StatementEnd
CREATE TEXT SEARCH DICTIONARY reeve_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION reeve_mail (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION reeve_mail ALTER MAPPING FOR asciiword, word, numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart
  WITH reeve_stem;
ALTER TABLE emails ADD COLUMN words tsvector GENERATED ALWAYS AS (
  setweight(to_tsvector('reeve_mail', reeve_plain(subject)), 'A') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(sender)), 'B') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(left(recipients, 131072))), 'C') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(left(attached, 16384) || ' ' || left(body, 262144))), 'D')) STORED;
CREATE INDEX emails_words ON emails USING gin (words);
-- end

-- +goose Down
-- only sqlite
DROP TABLE emails_words;
-- end
DROP TABLE mail_imports;
DROP TABLE emails;
DROP TABLE inboxes;
DROP TABLE mail_numbers;
-- only postgres
DROP TEXT SEARCH CONFIGURATION reeve_mail;
DROP TEXT SEARCH DICTIONARY reeve_stem;
DROP FUNCTION reeve_plain;
-- end
