"""Messages that callers left.

Revision: 0012, after 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "voicemails",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("recording_sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("duration_s", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("wants_text", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("transcript", sa.Text(), nullable=False, server_default=""),
        sa.Column("audio_path", sa.Text(), nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("business_id", "recording_sid", name=op.f("pk_voicemails")),
        sa.ForeignKeyConstraint(
            ["business_id", "call_sid"],
            ["calls.business_id", "calls.call_sid"],
            name=op.f("fk_voicemails_calls"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_voicemails_business_id_call_sid"), "voicemails", ["business_id", "call_sid"])


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
