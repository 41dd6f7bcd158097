"""Calls, tokens, flow documents; vpages, their vectors, and vthreads.

Revision: 0001, the first
"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.create_table(
        "calls",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=True),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "last_activity_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("epoch", sa.Integer(), server_default="0", nullable=False),
        sa.Column("stream_sid", sa.Text(), nullable=True),
        sa.Column("snapshot", postgresql.JSONB(), nullable=True),
        sa.Column("flow_hash", sa.Text(), nullable=False),
        sa.Column("resumed_from", sa.Text(), nullable=True),
        sa.CheckConstraint("business_id <> ''", name=op.f("ck_calls_business")),
        sa.CheckConstraint("caller <> ''", name=op.f("ck_calls_caller")),
        sa.CheckConstraint(
            "status IN ('active', 'finished', 'transferred', 'dropped', 'failed')",
            name=op.f("ck_calls_status"),
        ),
        sa.PrimaryKeyConstraint("business_id", "call_sid", name=op.f("pk_calls")),
        sa.UniqueConstraint("call_sid", name=op.f("uq_calls_call_sid")),
    )
    op.create_index(
        "ix_calls_active",
        "calls",
        ["last_activity_at"],
        unique=False,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        op.f("ix_calls_business_id_caller_last_activity_at"),
        "calls",
        ["business_id", "caller", "last_activity_at"],
        unique=False,
    )
    op.create_table(
        "flow_documents",
        sa.Column("flow_hash", sa.Text(), nullable=False),
        sa.Column("yaml", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("flow_hash", name=op.f("pk_flow_documents")),
    )
    op.create_table(
        "spent_tokens",
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("nonce", name=op.f("pk_spent_tokens")),
    )
    op.create_index(op.f("ix_spent_tokens_expires_at"), "spent_tokens", ["expires_at"], unique=False)
    op.create_table(
        "threads",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), server_default="", nullable=False),
        sa.Column("flow_node", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("embedding", Vector(384), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("caller <> ''", name=op.f("ck_threads_caller")),
        sa.PrimaryKeyConstraint("business_id", "thread_id", name=op.f("pk_threads")),
    )
    op.create_index(
        op.f("ix_threads_business_id_caller_updated_at"),
        "threads",
        ["business_id", "caller", "updated_at"],
        unique=False,
    )
    op.create_index(op.f("ix_threads_thread_id"), "threads", ["thread_id"], unique=False)
    op.create_table(
        "pages",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("caller", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("exchange_no", sa.Integer(), nullable=False),
        sa.Column("user_text", sa.Text(), server_default="", nullable=False),
        sa.Column("reply_text", sa.Text(), server_default="", nullable=False),
        sa.Column("summary", sa.Text(), server_default="", nullable=False),
        sa.Column("user_audio_path", sa.Text(), server_default="", nullable=False),
        sa.Column("reply_audio_path", sa.Text(), server_default="", nullable=False),
        sa.Column("user_audio_ms", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reply_audio_ms", sa.Integer(), server_default="0", nullable=False),
        sa.Column("interrupted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("user_item_id", sa.Text(), server_default="", nullable=False),
        sa.Column("flow_node", sa.Text(), server_default="", nullable=False),
        sa.Column("usage", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("states", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("embedded_with", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "text_config",
            postgresql.REGCONFIG(),
            server_default=sa.text("'english'::regconfig"),
            nullable=False,
        ),
        sa.Column(
            "words",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector(text_config, user_text || ' ' || reply_text)", persisted=True),
            nullable=True,
        ),
        sa.CheckConstraint("caller <> ''", name=op.f("ck_pages_caller")),
        sa.ForeignKeyConstraint(
            ["business_id", "call_id"],
            ["calls.business_id", "calls.call_sid"],
            name=op.f("fk_pages_calls"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("business_id", "page_id", name=op.f("pk_pages")),
        sa.UniqueConstraint(
            "business_id", "call_id", "exchange_no", name=op.f("uq_pages_business_id_call_id_exchange_no")
        ),
    )
    op.create_index(
        op.f("ix_pages_business_id_caller_created_at"),
        "pages",
        ["business_id", "caller", "created_at"],
        unique=False,
    )
    op.create_index(op.f("ix_pages_page_id"), "pages", ["page_id"], unique=False)
    op.create_table(
        "page_vectors",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("chunk", sa.SmallInteger(), nullable=False),
        sa.Column("embedding", Vector(384), nullable=False),
        sa.CheckConstraint("vector_norm(embedding) > 0", name=op.f("ck_page_vectors_embedding")),
        sa.ForeignKeyConstraint(
            ["business_id", "page_id"],
            ["pages.business_id", "pages.page_id"],
            name=op.f("fk_page_vectors_pages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "business_id", "caller", "page_id", "model", "chunk", name=op.f("pk_page_vectors")
        ),
    )
    op.create_table(
        "thread_pages",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.BigInteger(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["business_id", "page_id"],
            ["pages.business_id", "pages.page_id"],
            name=op.f("fk_thread_pages_pages"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["business_id", "thread_id"],
            ["threads.business_id", "threads.thread_id"],
            name=op.f("fk_thread_pages_threads"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("business_id", "thread_id", "page_id", name=op.f("pk_thread_pages")),
    )
    op.create_index(
        op.f("ix_thread_pages_business_id_page_id"), "thread_pages", ["business_id", "page_id"], unique=False
    )
    # A vector is read whole or not at all: never compressed, never moved out of its row.
    op.execute("ALTER TABLE page_vectors ALTER COLUMN embedding SET STORAGE PLAIN")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
