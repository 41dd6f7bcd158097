"""The job queue: procrastinate 3.10's schema, frozen. Its later migrations become revisions of ours.

The text is procrastinate's own `sql/schema.sql` (MIT licence), which can be applied once only.

Revision: 0002, after 0001
"""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SCHEMA_FILE = Path(__file__).parent.parent / "procrastinate_3_10.sql"


def upgrade() -> None:
    # The driver reads % as a placeholder, also in the bodies of functions.
    op.get_bind().exec_driver_sql(SCHEMA_FILE.read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
