-- +goose Up
-- A second index holds the words of mails as they are written. The first holds stems, which say nothing of how a word
-- begins, and which are the same for different names.

-- only sqlite
CREATE VIRTUAL TABLE emails_written USING fts5 (subject, body, sender, recipients, attached,
  content='emails', content_rowid='id', tokenize="unicode61 remove_diacritics 2 categories 'L* N* M* Co'");
INSERT INTO emails_written (emails_written, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0, 0.5, 1.0)');
INSERT INTO emails_written (emails_written) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER emails_written_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_written (rowid, subject, body, sender, recipients, attached)
    VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_written_deleted AFTER DELETE ON emails BEGIN
  INSERT INTO emails_written (emails_written, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_written_updated AFTER UPDATE ON emails BEGIN
  INSERT INTO emails_written (emails_written, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
  INSERT INTO emails_written (rowid, subject, body, sender, recipients, attached)
    VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- end

-- only postgres
-- reeve_fold prepares a text for PostgreSQL's parser: small letters, Latin ones without accents, and a space for all
-- that is not a letter, a digit or a mark. A word that begins with a digit gets an accented letter in front, which no
-- text has any more then: the parser would take 1e5a for the number 1e5 and a word. Where lower() knows only a to z, as
-- in a database of locale C, reeve_lower lists the letters; our columns are of that locale in every database. Package
-- store writes the words of a query in the same way.
-- +goose StatementBegin
CREATE FUNCTION reeve_lower (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN lower('Я' COLLATE "default") = 'я' THEN replace(lower($1 COLLATE "default"), 'ς', 'σ')
    ELSE translate(lower($1 COLLATE "default"),
      'ςÆÐØÞĐĦĲĿŁŊŒŦƁƂƄƆƇƉƊƋƎƏƐƑƓƔƖƗƘƜƝƟƢƤƦƧƩƬƮƱƲƳƵƷƸƼǄǅǇǈǊǋǢǤǮǱǲǶǷǼǾȜȠȢȤȺȻȽȾɁɃɄɅɆɈɊɌɎͰͲͶͿΆΈΉΊΌΎΏΑΒΓΔΕΖΗΘΙΚ'
      'ΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫϏϘϚϜϞϠϢϤϦϨϪϬϮϴϷϹϺϽϾϿЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѶѸѺѼѾ'
      'ҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӁӃӅӇӉӋӍӐӒӔӖӘӚӜӞӠӢӤӦӨӪӬӮӰӲӴӶӸӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀ'
      'ՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖ',
      'σæðøþđħĳŀłŋœŧɓƃƅɔƈɖɗƌǝəɛƒɠɣɩɨƙɯɲɵƣƥʀƨʃƭʈʊʋƴƶʒƹƽǆǆǉǉǌǌǣǥǯǳǳƕƿǽǿȝƞȣȥⱥȼƚⱦɂƀʉʌɇɉɋɍɏͱͳͷϳάέήίόύώαβγδεζηθικ'
      'λμνξοπρστυφχψωϊϋϗϙϛϝϟϡϣϥϧϩϫϭϯθϸϲϻͻͼͽѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяѡѣѥѧѩѫѭѯѱѳѵѷѹѻѽѿ'
      'ҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӏӂӄӆӈӊӌӎӑӓӕӗәӛӝӟӡӣӥӧөӫӭӯӱӳӵӷӹӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհ'
      'ձղճմյնշոչպջռսվտրցւփքօֆ') END
$f$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION reeve_fold (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $f$
  SELECT regexp_replace(
    CASE WHEN octet_length($1) = length($1) THEN regexp_replace(lower($1), '[^a-z0-9]+', ' ', 'g')
    ELSE regexp_replace(
      reeve_lower(normalize(regexp_replace(normalize($1, NFD), '([A-Za-z])[\u0300-\u036F]+', '\1', 'g'), NFC)),
      '[\u0001-\u002F\u003A-\u0040\u005B-\u0060\u007B-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8\u00BB\u00BF\u00D7\u00F7'
      '\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u02EB\u02ED\u02EF-\u02FF\u0375\u037E\u0384-\u0385\u0387\u03F6\u0482\u055A-\u055F'
      '\u0589-\u058F\u05BE\u05C0\u05C3\u05C6\u05F3-\u060F\u061B-\u061F\u066A-\u066D\u06D4\u06DD-\u06DE'
      '\u06E9\u06FD-\u06FE\u0700-\u070F\u07F6-\u07F9\u07FE-\u07FF\u0830-\u083E\u085E\u0888\u0890-\u0891'
      '\u08E2\u0964-\u0965\u0970\u09F2-\u09F3\u09FA-\u09FB\u09FD\u0A76\u0AF0-\u0AF1\u0B70\u0BF3-\u0BFA'
      '\u0C77\u0C7F\u0C84\u0D4F\u0D79\u0DF4\u0E3F\u0E4F\u0E5A-\u0E5B\u0F01-\u0F17\u0F1A-\u0F1F\u0F34'
      '\u0F36\u0F38\u0F3A-\u0F3D\u0F85\u0FBE-\u0FC5\u0FC7-\u0FDA\u104A-\u104F\u109E-\u109F\u10FB'
      '\u1360-\u1368\u1390-\u1399\u1400\u166D-\u166E\u1680\u169B-\u169C\u16EB-\u16ED\u1735-\u1736'
      '\u17D4-\u17D6\u17D8-\u17DB\u1800-\u180A\u180E\u1940-\u1945\u19DE-\u19FF\u1A1E-\u1A1F'
      '\u1AA0-\u1AA6\u1AA8-\u1AAD\u1B5A-\u1B6A\u1B74-\u1B7E\u1BFC-\u1BFF\u1C3B-\u1C3F\u1C7E-\u1C7F'
      '\u1CC0-\u1CC7\u1CD3\u1FBD\u1FBF-\u1FC1\u1FCD-\u1FCF\u1FDD-\u1FDF\u1FED-\u1FEF\u1FFD-\u206F'
      '\u207A-\u207E\u208A-\u208E\u20A0-\u20C0\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114'
      '\u2116-\u2118\u211E-\u2123\u2125\u2127\u2129\u212E\u213A-\u213B\u2140-\u2144\u214A-\u214D\u214F'
      '\u218A-\u244A\u249C-\u24E9\u2500-\u2775\u2794-\u2BFF\u2CE5-\u2CEA\u2CF9-\u2CFC\u2CFE-\u2CFF'
      '\u2D70\u2E00-\u2E2E\u2E30-\u3004\u3008-\u3020\u3030\u3036-\u3037\u303D-\u303F\u309B-\u309C\u30A0'
      '\u30FB\u3190-\u3191\u3196-\u319F\u31C0-\u31E3\u3200-\u321E\u322A-\u3247\u3250\u3260-\u327F'
      '\u328A-\u32B0\u32C0-\u33FF\u4DC0-\u4DFF\uA490-\uA4C6\uA4FE-\uA4FF\uA60D-\uA60F\uA673\uA67E'
      '\uA6F2-\uA716\uA720-\uA721\uA789-\uA78A\uA828-\uA82B\uA836-\uA839\uA874-\uA877\uA8CE-\uA8CF'
      '\uA8F8-\uA8FA\uA8FC\uA92E-\uA92F\uA95F\uA9C1-\uA9CD\uA9DE-\uA9DF\uAA5C-\uAA5F\uAA77-\uAA79'
      '\uAADE-\uAADF\uAAF0-\uAAF1\uAB5B\uAB6A-\uAB6B\uABEB\uFB29\uFBB2-\uFBC2\uFD3E-\uFD4F\uFDCF'
      '\uFDFC-\uFDFF\uFE10-\uFE19\uFE30-\uFE6B\uFEFF-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65'
      '\uFFE0-\uFFFF\U0001F000-\U0001F0F5\U0001F10D-\U0001FBCA]+',
      ' ', 'g') END,
    '(^| )(?=[0-9])', '\1ê', 'g')
$f$;
-- +goose StatementEnd
-- There are only four labels: words of attachments have a letter of their own in front.
ALTER TABLE emails ADD COLUMN written tsvector GENERATED ALWAYS AS (
  setweight(to_tsvector('simple', reeve_fold(subject)), 'A') ||
  setweight(to_tsvector('simple', reeve_fold(sender)), 'B') ||
  setweight(to_tsvector('simple', reeve_fold(left(recipients, 131072))), 'C') ||
  setweight(to_tsvector('simple', regexp_replace(reeve_fold(left(attached, 16384)), '([^ ]+)', 'ë\1', 'g') ||
    ' ' || reeve_fold(left(body, 262144))), 'D')) STORED;
CREATE INDEX emails_written ON emails USING gin (written);
-- end

-- +goose Down
-- only sqlite
DROP TRIGGER emails_written_inserted;
DROP TRIGGER emails_written_deleted;
DROP TRIGGER emails_written_updated;
DROP TABLE emails_written;
-- end
-- only postgres
ALTER TABLE emails DROP COLUMN written;
DROP FUNCTION reeve_fold;
DROP FUNCTION reeve_lower;
-- end
