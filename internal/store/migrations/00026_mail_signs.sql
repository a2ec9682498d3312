-- +goose Up
-- only postgres
-- Signs beyond ASCII are no words, whatever PostgreSQL's locale takes them for: hard spaces, arrows, currencies, pictures, and what is put in the place of bytes that mean nothing.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION reeve_plain (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN octet_length($1) = length($1) THEN translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                ')
    ELSE translate(regexp_replace($1, '[\u0080-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8\u00BB\u00BF\u00D7\u00F7\u2000-\u206F\u207A-\u207E\u208A-\u208E\u20A0-\u20CF\u2190-\u245F\u249C-\u24E9\u2500-\u2775\u2794-\u2BFF\u2E00-\u2E7F\u3000-\u3004\u3008-\u3020\uFE10-\uFE1F\uFE30-\uFE6F\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\uFFE0-\uFFFD\U0001F000-\U0001F0FF\U0001F110-\U0001FAFF]', ' ', 'g'), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~’‘“”„–—…•·«»¡¿ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž',
    '                                              AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz') END
$f$;
-- +goose StatementEnd
UPDATE emails SET subject = subject WHERE concat_ws(' ', subject, sender, recipients, attached, body) ~ '[\u0080-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8\u00BB\u00BF\u00D7\u00F7\u2000-\u206F\u207A-\u207E\u208A-\u208E\u20A0-\u20CF\u2190-\u245F\u249C-\u24E9\u2500-\u2775\u2794-\u2BFF\u2E00-\u2E7F\u3000-\u3004\u3008-\u3020\uFE10-\uFE1F\uFE30-\uFE6F\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\uFFE0-\uFFFD\U0001F000-\U0001F0FF\U0001F110-\U0001FAFF]';
-- end

-- +goose Down
-- only postgres
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION reeve_plain (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN octet_length($1) = length($1) THEN translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                ')
    ELSE translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~’‘“”„–—…•·«»¡¿ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž',
    '                                              AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz') END
$f$;
-- +goose StatementEnd
-- end
