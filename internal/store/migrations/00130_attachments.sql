-- +goose Up

-- What people attach to their messages, numbered within the conversation. The bytes are in payloads, by hash.
CREATE TABLE attachments (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  n               BIGINT NOT NULL,
  id              TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  name            TEXT NOT NULL,
  media_type      TEXT NOT NULL,
  size            BIGINT NOT NULL,
  hash            TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, n)
);
CREATE UNIQUE INDEX attachments_id ON attachments (conversation_id, id);
CREATE INDEX attachments_turn ON attachments (conversation_id, turn_id, n);

-- What a scheduled run sent to the conversation of its schedule. It is shown when the run ends. Then shown_at is set.
CREATE TABLE run_media (
  run_id          TEXT NOT NULL,
  operation_id    TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  agent_id        TEXT NOT NULL,
  name            TEXT NOT NULL,
  media_type      TEXT NOT NULL,
  size            BIGINT NOT NULL,
  hash            TEXT NOT NULL,
  caption         TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  shown_at        BIGINT NOT NULL,
  PRIMARY KEY (run_id, operation_id)
);
CREATE INDEX run_media_hash ON run_media (conversation_id, hash);

-- Attachments of earlier messages.
-- only sqlite
INSERT INTO attachments (conversation_id, n, id, turn_id, user_id, name, media_type, size, hash, created_at)
SELECT r.session_id, row_number() OVER (PARTITION BY r.session_id ORDER BY m.id, a.key), 'att_' || substr(m.id, 5) || '_' || a.key,
  r.id, r.user_id, COALESCE(a.value ->> 'name', ''), COALESCE(a.value ->> 'media_type', ''),
  COALESCE(a.value ->> 'size', 0), a.value ->> 'hash', m.created_at
FROM messages m JOIN runs r ON r.id = m.run_id JOIN conversations c ON c.id = r.session_id,
  json_each(CASE WHEN json_valid(m.metadata) THEN m.metadata ELSE '{}' END, '$.attachments') a
WHERE m.kind = 'user' AND COALESCE(a.value ->> 'hash', '') <> '';
-- end
-- only postgres
INSERT INTO attachments (conversation_id, n, id, turn_id, user_id, name, media_type, size, hash, created_at)
SELECT r.session_id, row_number() OVER (PARTITION BY r.session_id ORDER BY m.id, a.i),
  'att_' || substr(m.id, 5) || '_' || (a.i - 1), r.id, r.user_id, COALESCE(a.value ->> 'name', ''),
  COALESCE(a.value ->> 'media_type', ''), CAST(COALESCE(a.value ->> 'size', '0') AS BIGINT), a.value ->> 'hash',
  m.created_at
FROM messages m JOIN runs r ON r.id = m.run_id JOIN conversations c ON c.id = r.session_id
  CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN m.kind = 'user' AND m.metadata LIKE '%"attachments":[%'
    THEN CAST(m.metadata AS jsonb) -> 'attachments' ELSE CAST('[]' AS jsonb) END) WITH ORDINALITY a (value, i)
WHERE m.kind = 'user' AND COALESCE(a.value ->> 'hash', '') <> '';
-- end
