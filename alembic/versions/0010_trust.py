"""Trust: how sure it was who called, for calls and pages; and what is known of a caller beside what they said.

Revision: 0010, after 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("calls", "pages"):
        op.add_column(table, sa.Column("trust", sa.SmallInteger(), server_default="1", nullable=False))
    op.create_table(
        "callers",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("shared_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pin_hash", sa.Text(), nullable=True),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("forget_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("business_id", "caller", name=op.f("pk_callers")),
        sa.CheckConstraint("caller <> ''", name=op.f("ck_callers_caller")),
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
