"""The Twilio account that a call came by: only there can it be found again.

Revision: 0017, after 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("calls", sa.Column("account_sid", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
