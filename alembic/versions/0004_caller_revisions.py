"""A caller's pages carry the revision at which they last changed, so that a process can ask for what is new.

Revision: 0004, after 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# One step for a transaction, however many pages it changes. The row stays locked until the transaction ends: revisions
# of a caller become visible in their order, and nobody who has seen one can miss an earlier one. They are drawn from
# one sequence, so that a caller who was erased and calls again has none twice. `erased_at` is drawn after `revision`.
STEP = """
CREATE FUNCTION next_caller_revision(of_business text, of_caller text, erases boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    stepped bigint;
BEGIN
    SELECT revision INTO stepped FROM caller_revisions
    WHERE business_id = of_business AND caller = of_caller
        AND xmin = pg_current_xact_id()::xid AND (NOT erases OR erased_at > revision);
    IF stepped IS NULL THEN
        INSERT INTO caller_revisions AS mine (business_id, caller, revision, erased_at)
        VALUES (of_business, of_caller, nextval('caller_revision'), nextval('caller_revision'))
        ON CONFLICT (business_id, caller) DO UPDATE SET revision = nextval('caller_revision');
        IF erases THEN
            UPDATE caller_revisions SET erased_at = nextval('caller_revision')
            WHERE business_id = of_business AND caller = of_caller AND erased_at < revision;
        END IF;
        SELECT revision INTO stepped FROM caller_revisions
        WHERE business_id = of_business AND caller = of_caller;
    END IF;
    RETURN stepped;
END
$$
"""
ON_WRITE = """
CREATE FUNCTION pages_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.caller IS NOT NULL AND OLD.caller IS DISTINCT FROM NEW.caller THEN
        PERFORM next_caller_revision(OLD.business_id, OLD.caller, true);
    END IF;
    IF NEW.caller IS NOT NULL THEN
        NEW.revision := next_caller_revision(NEW.business_id, NEW.caller, false);
    END IF;
    RETURN NEW;
END
$$
"""
ON_DELETE = """
CREATE FUNCTION pages_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM next_caller_revision(business_id, caller, true)
    FROM (SELECT DISTINCT business_id, caller FROM gone WHERE caller IS NOT NULL) AS owners;
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "caller_revisions",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("caller <> ''", name=op.f("ck_caller_revisions_caller")),
        sa.PrimaryKeyConstraint("business_id", "caller", name=op.f("pk_caller_revisions")),
    )
    op.execute("CREATE SEQUENCE caller_revision START WITH 2 CACHE 1")
    # Pages of before have revision 1, which their callers have reached.
    op.add_column("pages", sa.Column("revision", sa.BigInteger(), server_default="1", nullable=False))
    op.execute(
        "INSERT INTO caller_revisions (business_id, caller, revision, erased_at)"
        " SELECT DISTINCT business_id, caller, 1, 1 FROM pages WHERE caller IS NOT NULL"
    )
    op.create_index(
        op.f("ix_pages_business_id_caller_revision_page_id"),
        "pages",
        ["business_id", "caller", "revision", "page_id"],
    )
    for statement in (STEP, ON_WRITE, ON_DELETE):
        op.execute(statement)
    op.execute(
        "CREATE TRIGGER pages_written BEFORE INSERT OR UPDATE ON pages"
        " FOR EACH ROW EXECUTE FUNCTION pages_written()"
    )
    op.execute(
        "CREATE TRIGGER pages_deleted AFTER DELETE ON pages REFERENCING OLD TABLE AS gone"
        " FOR EACH STATEMENT EXECUTE FUNCTION pages_deleted()"
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
