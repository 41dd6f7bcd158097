"""When a flow document was last in use: it is deleted some time after.

Revision: 0016, after 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("flow_documents", "created_at", new_column_name="used_at")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
