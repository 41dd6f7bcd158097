"""Whose doing the end of a call was.

Revision: 0014, after 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("ended_by", sa.Text()))
    op.create_check_constraint(
        op.f("ck_calls_ended_by"),
        "calls",
        "ended_by IN ('us', 'caller', 'network', 'worker', 'model', 'twilio')",
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
