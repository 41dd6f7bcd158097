"""Search by utterance: a vector and the hashed stems of each side of a page, in place of one text vector a page.

Revision: 0003
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Immutable, since its parts are: the configuration is an argument. A generated column may call nothing else.
MEMORY_TERMS = """
CREATE FUNCTION memory_terms(config regconfig, spoken text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT coalesce(string_agg(int4send(hashtext(stem.lexeme)), ''::bytea), ''::bytea)
    FROM unnest(to_tsvector(config, spoken)) AS stem,
         generate_series(1, coalesce(array_length(stem.positions, 1), 1))
$$
"""


def upgrade() -> None:
    op.execute(MEMORY_TERMS)
    op.drop_column("pages", "words")
    for side in ("user", "reply"):
        made = sa.Computed(f"memory_terms(text_config, {side}_text)", persisted=True)
        op.add_column("pages", sa.Column(f"{side}_terms", postgresql.BYTEA(), made, nullable=True))
    op.add_column(
        "page_vectors", sa.Column("side", sa.SmallInteger(), server_default=sa.text("0"), nullable=False)
    )
    op.execute("ALTER TABLE page_vectors DROP CONSTRAINT pk_page_vectors")
    op.create_primary_key(
        op.f("pk_page_vectors"),
        "page_vectors",
        ["business_id", "caller", "page_id", "model", "side", "chunk"],
    )
    # Their sides have no vectors yet: the periodic job queues them again.
    op.execute("UPDATE pages SET embedded_with = NULL WHERE embedded_with <> ''")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
