"""Erasure: its ledger of keyed hashes, the key, and the files that are still to be deleted.

Revision: 0005, after 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("caller_hash", sa.Text(), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("business_id", "caller_hash", name=op.f("pk_erasures")),
    )
    op.create_table(
        "erasure_key",
        sa.Column("key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_erasure_key")),
    )
    op.execute("INSERT INTO erasure_key (key) VALUES (gen_random_uuid()::text || gen_random_uuid()::text)")
    op.create_table(
        "doomed_files",
        sa.Column("file_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_doomed_files")),
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
