"""All leases of a worker are renewed, and all lapsed ones found, in one statement each, whatever their business.

Both go from business to business as every statement does, by naming it (row-level security, 0006).

Revision: 0015, after 0014
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# A row that somebody writes just now is passed over: that writer renews it, and nobody waits for one call's lock.
RENEW = """
CREATE FUNCTION renew_leases(sids text[], epochs integer[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    held integer;
BEGIN
    FOR i IN 1 .. cardinality(sids) LOOP
        PERFORM enter_call(sids[i]);
        SELECT epoch INTO held FROM calls WHERE call_sid = sids[i] FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            CONTINUE;
        ELSIF held = epochs[i] THEN
            UPDATE calls SET last_activity_at = coalesce(ended_at, clock_timestamp()) WHERE call_sid = sids[i];
        ELSE
            RETURN NEXT sids[i];
        END IF;
    END LOOP;
    PERFORM set_config('app.business', '', true);
END
$$
"""
LAPSED = """
CREATE FUNCTION lapsed_leases(older interval) RETURNS TABLE (sid text, held integer) LANGUAGE plpgsql AS $$
DECLARE
    here text;
BEGIN
    FOR here IN SELECT business_id FROM businesses LOOP
        PERFORM set_config('app.business', here, true);
        RETURN QUERY SELECT call_sid, epoch FROM calls
            WHERE business_id = here AND status = 'active' AND epoch > 0
            AND last_activity_at < clock_timestamp() - older;
    END LOOP;
    PERFORM set_config('app.business', '', true);
END
$$
"""


def upgrade() -> None:
    for statement in (RENEW, LAPSED):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward only")
