"""The tables, as SQLAlchemy Core. The migrations in `alembic/` add up to exactly this (a test compares them).

Caller data is keyed by `business_id` first, so that one business is one partition. Ids of pages and threads
come from sequences and are unique by themselves: jobs carry them and nothing of the caller.
"""

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSONB, REGCONFIG

VECTOR_DIMENSION = 384

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _time(name: str, *, nullable: bool = False) -> Column[object]:
    default = None if nullable else func.now()
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=default)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _json(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def _trust() -> Column[object]:
    """A `memory.model.Trust`. What was written before there was any is as sure as a number."""
    return Column("trust", SmallInteger, nullable=False, server_default="1")


def _terms(side: str) -> Column[object]:
    return Column(f"{side}_terms", BYTEA, Computed(f"memory_terms(text_config, {side}_text)", persisted=True))


# Which businesses there are: for work that is done for one after the other. A trigger on `calls` keeps it.
businesses = Table(
    "businesses",
    metadata,
    Column("business_id", Text, nullable=False),
    PrimaryKeyConstraint("business_id"),
)

calls = Table(
    "calls",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("call_sid", Text, nullable=False),
    Column("caller", Text),  # E.164 or an address; NULL is nobody: it owns nothing and equals nothing
    Column("to_number", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    _time("started_at"),
    _time("last_activity_at"),
    _time("ended_at", nullable=True),
    Column("epoch", Integer, nullable=False, server_default="0"),
    Column("stream_sid", Text),
    Column("snapshot", JSONB),
    Column("flow_hash", Text, nullable=False),
    Column("resumed_from", Text),
    Column("ended_by", Text),  # an EndedBy of memory.model; NULL: under way, or nobody knows
    _trust(),
    Column(
        "account_sid", Text, nullable=False, server_default=""
    ),  # Twilio's; empty: nobody said, the main one
    PrimaryKeyConstraint("business_id", "call_sid"),
    UniqueConstraint("call_sid"),
    CheckConstraint("business_id <> ''", name="business"),
    CheckConstraint("caller <> ''", name="caller"),
    CheckConstraint("status IN ('active', 'finished', 'transferred', 'dropped', 'failed')", name="status"),
    CheckConstraint("ended_by IN ('us', 'caller', 'network', 'worker', 'model', 'twilio')", name="ended_by"),
    Index(None, "business_id", "caller", "last_activity_at"),
    Index("ix_calls_active", "last_activity_at", postgresql_where=text("status = 'active'")),
)

spent_tokens = Table(
    "spent_tokens",
    metadata,
    Column("nonce", Text, nullable=False),
    Column("call_sid", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("nonce"),
    Index(None, "expires_at"),
)

flow_documents = Table(
    "flow_documents",
    metadata,
    Column("flow_hash", Text, nullable=False),
    Column("yaml", Text, nullable=False),
    _time("used_at"),
    PrimaryKeyConstraint("flow_hash"),
)

pages = Table(
    "pages",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("page_id", BigInteger, Identity(always=True), nullable=False),
    Column("caller", Text),
    Column("call_id", Text, nullable=False),  # the CallSid
    Column("exchange_no", Integer, nullable=False),
    _text("user_text"),
    _text("reply_text"),
    _text("summary"),
    _text("user_audio_path"),
    _text("reply_audio_path"),
    Column("user_audio_ms", Integer, nullable=False, server_default="0"),
    Column("reply_audio_ms", Integer, nullable=False, server_default="0"),
    Column("interrupted", Boolean, nullable=False, server_default=text("false")),
    _text("user_item_id"),
    _text("flow_node"),
    _json("usage"),
    _json("states"),
    Column("embedded_with", Text),  # the model's name; '' with none; NULL: its job is still to do
    _time("created_at"),
    Column("text_config", REGCONFIG, nullable=False, server_default=text("'english'::regconfig")),
    # Hashed stems, four bytes an occurrence: all of a caller's are read at once, and ranked by us.
    _terms("user"),
    _terms("reply"),
    Column("revision", BigInteger, nullable=False, server_default="1"),  # the caller's, set by a trigger
    _trust(),
    PrimaryKeyConstraint("business_id", "page_id"),
    UniqueConstraint("business_id", "call_id", "exchange_no"),
    ForeignKeyConstraint(
        ["business_id", "call_id"], ["calls.business_id", "calls.call_sid"], ondelete="CASCADE"
    ),
    CheckConstraint("caller <> ''", name="caller"),
    Index(None, "business_id", "caller", "created_at"),
    Index(None, "business_id", "caller", "revision", "page_id"),
    Index(None, "page_id"),
)

# What was paid for. It says nothing of what was said, and is kept when its call is erased, without call and caller:
# what a month has cost stays what it was.
charges = Table(
    "charges",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("charge_id", Text, nullable=False),
    Column("call_id", Text),
    Column("caller", Text),
    Column("kind", Text, nullable=False),
    _text("model"),
    Column("usd", Double, nullable=False),
    Column("is_estimate", Boolean, nullable=False, server_default=text("false")),
    Column("input_tokens", Integer, nullable=False, server_default="0"),
    Column("cached_tokens", Integer, nullable=False, server_default="0"),
    Column("output_tokens", Integer, nullable=False, server_default="0"),
    _time("created_at"),
    # The transaction that wrote it: what is committed late is not missed by who adds up in steps.
    Column(
        "written_by", BigInteger, nullable=False, server_default=text("pg_current_xact_id()::text::bigint")
    ),
    PrimaryKeyConstraint("business_id", "charge_id"),
    CheckConstraint("kind IN ('speech', 'transcription', 'summary')", name="kind"),
    Index(None, "business_id", "call_id"),
    Index(None, "business_id", "created_at"),
    Index(None, "business_id", "written_by"),
)

# The last change of a caller's pages, and the last deletion among them. Triggers on `pages` keep it.
caller_revisions = Table(
    "caller_revisions",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("erased_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("business_id", "caller"),
    CheckConstraint("caller <> ''", name="caller"),
)

# What is known of a caller beside what they said. No row: nothing.
callers = Table(
    "callers",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    _time("shared_at", nullable=True),  # several people use the number
    Column("pin_hash", Text),  # a hash of memory.pins; NULL: not enrolled
    _time("enrolled_at", nullable=True),
    _time("forget_at", nullable=True),  # they asked to be forgotten: then it is done
    PrimaryKeyConstraint("business_id", "caller"),
    CheckConstraint("caller <> ''", name="caller"),
)

# Narrow on purpose: an exact scan of one caller's vectors reads nothing else (2.7 ms a thousand, measured).
# No approximate index: filtered by caller it would give too few rows.
page_vectors = Table(
    "page_vectors",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("page_id", BigInteger, nullable=False),
    Column("model", Text, nullable=False),
    Column("side", SmallInteger, nullable=False, server_default="0"),  # a `Side` of memory.store_pages
    Column("chunk", SmallInteger, nullable=False),  # 0 is the beginning of the text; a long one has more
    Column("embedding", Vector(VECTOR_DIMENSION), nullable=False),  # STORAGE PLAIN, set by its migration
    PrimaryKeyConstraint("business_id", "caller", "page_id", "model", "side", "chunk"),
    ForeignKeyConstraint(
        ["business_id", "page_id"], ["pages.business_id", "pages.page_id"], ondelete="CASCADE"
    ),
    CheckConstraint(
        "vector_norm(embedding) > 0", name="embedding"
    ),  # a zero vector has no direction to rank by
)

threads = Table(
    "threads",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("thread_id", BigInteger, Identity(always=True), nullable=False),
    Column("caller", Text, nullable=False),
    _text("summary"),
    _text("flow_node"),
    Column("model", Text),
    Column("embedding", Vector(VECTOR_DIMENSION)),
    _time("created_at"),
    _time("updated_at"),
    PrimaryKeyConstraint("business_id", "thread_id"),
    CheckConstraint("caller <> ''", name="caller"),
    Index(None, "business_id", "caller", "updated_at"),
    Index(None, "thread_id"),
)

thread_pages = Table(
    "thread_pages",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("thread_id", BigInteger, nullable=False),
    Column("page_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("business_id", "thread_id", "page_id"),
    ForeignKeyConstraint(
        ["business_id", "thread_id"], ["threads.business_id", "threads.thread_id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["business_id", "page_id"], ["pages.business_id", "pages.page_id"], ondelete="CASCADE"
    ),
    Index(None, "business_id", "page_id"),
)

# A business's documents in passages. The digest tells whether they are still those of its flow file.
fact_sets = Table(
    "fact_sets",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    _time("changed_at"),
    PrimaryKeyConstraint("business_id"),
)

business_facts = Table(
    "business_facts",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("fact_id", BigInteger, Identity(always=True), nullable=False),
    Column("title", Text, nullable=False),
    Column("passage", Text, nullable=False),
    Column("text_config", REGCONFIG, nullable=False),
    Column(
        "terms",
        ARRAY(Integer),
        Computed("memory_term_set(text_config, title || ' ' || passage)", persisted=True),
    ),
    Column("model", Text),  # that made the vector; NULL: its job is still to do
    Column("embedding", Vector(VECTOR_DIMENSION)),
    PrimaryKeyConstraint("business_id", "fact_id"),
    Index(None, "embedding", postgresql_using="hnsw", postgresql_ops={"embedding": "vector_cosine_ops"}),
)

# Messages that callers left, by Twilio's RecordingSid.
voicemails = Table(
    "voicemails",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("recording_sid", Text, nullable=False),
    Column("call_sid", Text, nullable=False),
    Column("duration_s", Integer, nullable=False, server_default="0"),
    Column("wants_text", Boolean, nullable=False, server_default=text("false")),
    _text("transcript"),
    _text("audio_path"),
    _time("created_at"),
    Column("told_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("business_id", "recording_sid"),
    ForeignKeyConstraint(
        ["business_id", "call_sid"], ["calls.business_id", "calls.call_sid"], ondelete="CASCADE"
    ),
    Index(None, "business_id", "call_sid"),
)

# What is to be done beside a call, by the key that makes it count once: text messages, calls back.
orders = Table(
    "orders",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("order_key", Text, nullable=False),
    Column("call_sid", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("to_number", Text, nullable=False),
    _text("body"),
    _time("due_at"),
    Column("status", Text, nullable=False, server_default="due"),
    _text("sid"),
    _time("created_at"),
    _time("begun_at", nullable=True),
    PrimaryKeyConstraint("business_id", "order_key"),
    ForeignKeyConstraint(
        ["business_id", "call_sid"], ["calls.business_id", "calls.call_sid"], ondelete="CASCADE"
    ),
    CheckConstraint("status IN ('due', 'begun', 'done', 'refused', 'failed')", name="status"),
    Index(None, "business_id", "call_sid"),
    Index(None, "business_id", "to_number", "begun_at"),
)

# Callers who were erased, without saying who they were, and the key that their hashes are made with.
erasures = Table(
    "erasures",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("caller_hash", Text, nullable=False),
    _time("erased_at"),
    PrimaryKeyConstraint("business_id", "caller_hash"),
)

erasure_key = Table("erasure_key", metadata, Column("key", Text, nullable=False), PrimaryKeyConstraint("key"))

# Audio of pages that are gone already.
doomed_files = Table(
    "doomed_files",
    metadata,
    Column("file_id", BigInteger, Identity(always=True), nullable=False),
    Column("business_id", Text, nullable=False),
    Column("path", Text, nullable=False),
    PrimaryKeyConstraint("file_id"),
)

# What a business's systems are to be told of: once for each call, event and subject (a recording, a stream's epoch).
notices = Table(
    "notices",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("notice_id", BigInteger, Identity(always=True), nullable=False),
    Column("call_sid", Text, nullable=False),
    Column("event", Text, nullable=False),
    _text("subject"),
    _json("body"),
    _time("created_at"),
    _time("sent_at", nullable=True),
    PrimaryKeyConstraint("business_id", "notice_id"),
    UniqueConstraint("business_id", "call_sid", "event", "subject"),
    ForeignKeyConstraint(
        ["business_id", "call_sid"], ["calls.business_id", "calls.call_sid"], ondelete="CASCADE"
    ),
    Index(None, "notice_id"),
)

# Schedules that somebody has opened or closed by hand, until a time.
hours_overrides = Table(
    "hours_overrides",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
    _time("set_at"),
    PrimaryKeyConstraint("business_id", "schedule"),
)
