"""What a business's systems are to be told of, and hours that somebody has set by hand.

Revision: 0009, after 0008
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Jobs carry a notice's number and nothing else: its business is found by asking each (as in 0006).
ENTER = """
CREATE FUNCTION enter_notice(of_notice bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    here text;
BEGIN
    FOR here IN SELECT business_id FROM businesses LOOP
        PERFORM set_config('app.business', here, true);
        IF EXISTS (SELECT FROM notices WHERE notice_id = of_notice) THEN
            RETURN here;
        END IF;
    END LOOP;
    PERFORM set_config('app.business', '', true);
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("notice_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("body", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("business_id", "notice_id", name=op.f("pk_notices")),
        sa.UniqueConstraint(
            "business_id",
            "call_sid",
            "event",
            "subject",
            name=op.f("uq_notices_business_id_call_sid_event_subject"),
        ),
        sa.ForeignKeyConstraint(
            ["business_id", "call_sid"],
            ["calls.business_id", "calls.call_sid"],
            name=op.f("fk_notices_calls"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_notices_notice_id"), "notices", ["notice_id"])
    op.create_table(
        "hours_overrides",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("business_id", "schedule", name=op.f("pk_hours_overrides")),
    )
    op.execute(ENTER)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
