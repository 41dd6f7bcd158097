"""What is to be done beside calls: text messages, calls back.

Revision: 0013, after 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    now = sa.text("now()")
    op.create_table(
        "orders",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("order_key", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False, server_default=""),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=now, nullable=False),
        sa.Column("status", sa.Text(), nullable=False, server_default="due"),
        sa.Column("sid", sa.Text(), nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=now, nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("business_id", "order_key", name=op.f("pk_orders")),
        sa.ForeignKeyConstraint(
            ["business_id", "call_sid"],
            ["calls.business_id", "calls.call_sid"],
            name=op.f("fk_orders_calls"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "status IN ('due', 'begun', 'done', 'refused', 'failed')", name=op.f("ck_orders_status")
        ),
    )
    op.create_index(op.f("ix_orders_business_id_call_sid"), "orders", ["business_id", "call_sid"])
    op.create_index(
        op.f("ix_orders_business_id_to_number_begun_at"), "orders", ["business_id", "to_number", "begun_at"]
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
