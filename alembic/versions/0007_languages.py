"""Stems in the language of the call; character bigrams where there are no stems, or no spaces between words.

Revision: 0007, after 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

CONFIG = """
CREATE FUNCTION memory_config(named text) RETURNS regconfig LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT oid FROM pg_ts_config WHERE cfgname = named AND cfgnamespace = 'pg_catalog'::regnamespace),
        'simple'::regconfig
    )::regconfig
$$
"""
# Thai, Lao, Burmese, Khmer, Hangul, kana and ideographs: what is written without spaces, or with endings that no
# configuration cuts off. PostgreSQL takes such a run for one word, or (Thai) cuts it at its vowel signs.
WIDE = (
    r"[\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u3005\u3041-\u309f"
    r"\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Full-width and half-width forms are one (NFKC). A run of one character stands for itself. Of a language without a
# configuration words keep their place beside their bigrams: a whole word that is the same says more than its parts.
# Bigrams begin with a tilde, so that none is taken for a word.
BIGRAMS = """
CREATE FUNCTION memory_bigrams(config regconfig, spoken text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT '~' || substr(run.letters, start, 2)
    FROM (
        SELECT found[1] AS letters FROM regexp_matches(normalize(spoken, NFKC), '(WIDE+)', 'g') AS found
        UNION ALL
        SELECT stem.lexeme
        FROM unnest(to_tsvector(config, regexp_replace(normalize(spoken, NFKC), 'WIDE+', ' ', 'g'))) AS stem,
             generate_series(1, coalesce(array_length(stem.positions, 1), 1))
        WHERE config = 'pg_catalog.simple'::regconfig AND length(stem.lexeme) > 2 AND stem.lexeme !~ '[0-9]'
    ) AS run, generate_series(1, greatest(length(run.letters) - 1, 1)) AS start
$$
"""
# As before where nothing is wide and there is a configuration: no stored term changes.
WORDS = """
CREATE FUNCTION memory_words(config regconfig, spoken text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT stem.lexeme
    FROM unnest(to_tsvector(config, CASE
            WHEN spoken ~ 'WIDE' THEN regexp_replace(normalize(spoken, NFKC), 'WIDE+', ' ', 'g')
            ELSE spoken
         END)) AS stem,
         generate_series(1, coalesce(array_length(stem.positions, 1), 1))
    UNION ALL
    SELECT memory_bigrams(config, spoken)
    WHERE config = 'pg_catalog.simple'::regconfig OR spoken ~ 'WIDE'
$$
"""
TERMS = """
CREATE OR REPLACE FUNCTION memory_terms(config regconfig, spoken text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT coalesce(string_agg(int4send(hashtext(word)), ''::bytea), ''::bytea)
    FROM memory_words(config, spoken) AS word
$$
"""
# A query's, in each language that the caller may have spoken.
ASKED = """
CREATE FUNCTION memory_asked(languages text[], spoken text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(memory_terms(memory_config(named), spoken), ''::bytea), ''::bytea)
    FROM unnest(languages) AS named
$$
"""


# Their stored terms are made again.
AGAIN = "UPDATE pages SET text_config = text_config WHERE user_text || reply_text ~ 'WIDE'"


def upgrade() -> None:
    for statement in (CONFIG, BIGRAMS, WORDS, TERMS, ASKED, AGAIN):
        op.execute(statement.replace("WIDE", WIDE))


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
