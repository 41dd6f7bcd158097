"""Row-level security by business: a transaction sees the rows of the business it has named (`app.business`), no others.

Revision: 0006, after 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Run after every upgrade (alembic/env.py): a table that has a `business_id` cannot be forgotten.
PROTECT = """
CREATE FUNCTION protect_businesses() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT pg_class.oid::regclass FROM pg_class
        JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'business_id' AND NOT attisdropped
        WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname <> 'businesses'
    LOOP
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = one AND polname = 'of_business') THEN
            EXECUTE format(
                'CREATE POLICY of_business ON %s USING (business_id = current_setting(''app.business'', true))', one
            );
        END IF;
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', one);
        -- Also for the tables' owner, where there is one role for everything.
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', one);
    END LOOP;
END
$$
"""
# A migration works on the rows of all businesses, and may be run by an owner who is no superuser.
UNPROTECT = """
CREATE FUNCTION unforce_businesses() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT oid::regclass FROM pg_class
        WHERE relforcerowsecurity AND relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', one);
    END LOOP;
END
$$
"""
# Who knows a call's CallSid (Twilio's signed request names it) may learn whose it is; and no more than that.
OF_CALL = """
CREATE POLICY of_call ON calls FOR SELECT
USING (call_sid = nullif(current_setting('app.call', true), ''))
"""
ENTER_CALL = """
CREATE FUNCTION enter_call(of_call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    PERFORM set_config('app.call', of_call, true);
    SELECT business_id INTO found FROM calls WHERE call_sid = of_call;
    PERFORM set_config('app.call', '', true);
    PERFORM set_config('app.business', coalesce(found, ''), true);
    RETURN found;
END
$$
"""
# Jobs carry the number of a page or thread and nothing else: its business is found by asking each.
ENTER = """
CREATE FUNCTION enter_{one}(of_{one} bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    here text;
BEGIN
    FOR here IN SELECT business_id FROM businesses LOOP
        PERFORM set_config('app.business', here, true);
        IF EXISTS (SELECT FROM {one}s WHERE {one}_id = of_{one}) THEN
            RETURN here;
        END IF;
    END LOOP;
    PERFORM set_config('app.business', '', true);
    RETURN NULL;
END
$$
"""
ON_CALL = """
CREATE FUNCTION calls_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO businesses (business_id) VALUES (NEW.business_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "businesses",
        sa.Column("business_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("business_id", name=op.f("pk_businesses")),
    )
    op.execute("INSERT INTO businesses (business_id) SELECT DISTINCT business_id FROM calls")
    for one in ("page", "thread"):
        op.execute(ENTER.format(one=one))
    for statement in (PROTECT, UNPROTECT, OF_CALL, ENTER_CALL, ON_CALL):
        op.execute(statement)
    op.execute(
        "CREATE TRIGGER calls_opened AFTER INSERT ON calls FOR EACH ROW EXECUTE FUNCTION calls_opened()"
    )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
