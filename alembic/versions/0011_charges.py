"""What is paid for, a row each: also what belongs to no page, and what outlives one.

Revision: 0011, after 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Until now only answered turns were priced, with their pages.
FROM_PAGES = """
INSERT INTO charges (
    business_id, charge_id, call_id, caller, kind, model, usd, input_tokens, cached_tokens, output_tokens, created_at
)
SELECT business_id, gen_random_uuid()::text, call_id, caller, 'speech', coalesce(usage ->> 'model', ''),
    (usage ->> 'usd')::float8,
    coalesce((usage ->> 'input_text_tokens')::int, 0) + coalesce((usage ->> 'input_audio_tokens')::int, 0),
    coalesce((usage ->> 'cached_text_tokens')::int, 0) + coalesce((usage ->> 'cached_audio_tokens')::int, 0),
    coalesce((usage ->> 'output_text_tokens')::int, 0) + coalesce((usage ->> 'output_audio_tokens')::int, 0),
    created_at
FROM pages WHERE (usage ->> 'usd')::float8 > 0
"""


def upgrade() -> None:
    op.create_table(
        "charges",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("charge_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("caller", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("is_estimate", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("input_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cached_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "written_by",
            sa.BigInteger(),
            server_default=sa.text("pg_current_xact_id()::text::bigint"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("business_id", "charge_id", name=op.f("pk_charges")),
        sa.CheckConstraint("kind IN ('speech', 'transcription', 'summary')", name=op.f("ck_charges_kind")),
    )
    op.create_index(op.f("ix_charges_business_id_call_id"), "charges", ["business_id", "call_id"])
    op.create_index(op.f("ix_charges_business_id_created_at"), "charges", ["business_id", "created_at"])
    op.create_index(op.f("ix_charges_business_id_written_by"), "charges", ["business_id", "written_by"])
    op.execute(FROM_PAGES)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
