"""Passages of a business's documents, found by meaning and by words.

Revision: 0008, after 0007
"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Each word once: a passage is short, and how often it says a word tells little.
TERM_SET = """
CREATE FUNCTION memory_term_set(config regconfig, said text) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT coalesce(array_agg(DISTINCT hashtext(word)), '{}') FROM memory_words(config, said) AS word
$$
"""


def upgrade() -> None:
    op.execute(TERM_SET)
    op.create_table(
        "fact_sets",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("business_id", name=op.f("pk_fact_sets")),
    )
    op.create_table(
        "business_facts",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("fact_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("passage", sa.Text(), nullable=False),
        sa.Column("text_config", postgresql.REGCONFIG(), nullable=False),
        sa.Column(
            "terms",
            sa.ARRAY(sa.Integer()),
            sa.Computed("memory_term_set(text_config, title || ' ' || passage)", persisted=True),
            nullable=True,
        ),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("embedding", Vector(384), nullable=True),
        sa.PrimaryKeyConstraint("business_id", "fact_id", name=op.f("pk_business_facts")),
    )
    op.create_index(
        op.f("ix_business_facts_embedding"),
        "business_facts",
        ["embedding"],
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_cosine_ops"},
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
