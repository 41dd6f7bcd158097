"""The engine, and the border at which driver errors end."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, LiteralString

import psycopg
from procrastinate.exceptions import ConnectorException
from sqlalchemy import TextClause, exc, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.embedded import conninfo_of, normalise_url
from memory.errors import StorageFault, StorageUnavailable
from memory.model import Owner
from memory.store_reading import Readers

CONNECT_TIMEOUT_S = 2
POOL_TIMEOUT_S = 2.0
STATEMENT_TIMEOUT_S = 5.0

# Each holds until the end of its transaction: a pooled connection carries no business over.
IN_BUSINESS = text("SELECT set_config('app.business', :where, true)")
IN_CALL = text("SELECT enter_call(:where)")
IN_PAGE = text("SELECT enter_page(:where)")
IN_NOTICE = text("SELECT enter_notice(:where)")
IN_THREAD = text("SELECT enter_thread(:where)")
ALL_BUSINESSES = text("SELECT business_id FROM businesses ORDER BY business_id")


class Database:
    """A pool of connections to one database. Dead ones are found before they are used, and replaced."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 5,
        timeout_s: float = STATEMENT_TIMEOUT_S,
        name: str = "callthread",
    ) -> None:
        """`timeout_s` bounds each transaction, connecting included. `name` is how the server shows us to others."""
        self._timeout_s = timeout_s
        self._name = name
        self._engine: AsyncEngine = create_async_engine(
            normalise_url(url),
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=POOL_TIMEOUT_S,
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": name},
        )
        self._readers = Readers(
            conninfo_of(normalise_url(url)),
            2 * pool_size,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name=name,
        )

    async def close(self) -> None:
        """Close every pooled connection. The object stays usable: it would connect again."""
        await self._engine.dispose()
        await self._readers.close()

    def transaction(self, business_id: str) -> AbstractAsyncContextManager[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back by an exception in it.

        It sees and changes what is this business's, and what is no business's; the rest does not exist for it
        (row-level security, migration 0006).

        Raises: `StorageUnavailable` (try again), `StorageFault` (no use trying); `ValueError` for an empty business.
        """
        check_business(business_id)
        return self._transaction(IN_BUSINESS, business_id)

    def shared_transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """The same for what is no business's."""
        return self._transaction(IN_BUSINESS, "")

    def call_transaction(self, call_sid: str) -> AbstractAsyncContextManager[AsyncConnection]:
        """The same for the business of a call; with no such call it sees what is no business's."""
        return self._transaction(IN_CALL, call_sid)

    def page_transaction(self, page_id: int) -> AbstractAsyncContextManager[AsyncConnection]:
        """The same for the business of a page, which is found by asking each: for jobs."""
        return self._transaction(IN_PAGE, page_id)

    def thread_transaction(self, thread_id: int) -> AbstractAsyncContextManager[AsyncConnection]:
        """The same for the business of a thread."""
        return self._transaction(IN_THREAD, thread_id)

    def notice_transaction(self, notice_id: int) -> AbstractAsyncContextManager[AsyncConnection]:
        """The same for the business of a notice."""
        return self._transaction(IN_NOTICE, notice_id)

    async def businesses(self) -> list[str]:
        """Every business that ever had a call, for work that is done for one after the other."""
        async with self.shared_transaction() as connection:
            return list((await connection.execute(ALL_BUSINESSES)).scalars())

    @asynccontextmanager
    async def _transaction(self, enter: TextClause, where: str | int) -> AsyncIterator[AsyncConnection]:
        try:
            async with asyncio.timeout(self._timeout_s), self._engine.begin() as connection:
                await connection.execute(enter, {"where": where})
                yield connection
        except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, ConnectorException) as error:
            raise StorageUnavailable(type(error).__name__) from error
        except TimeoutError as error:
            raise StorageUnavailable(f"no answer within {self._timeout_s} s") from error
        except exc.DBAPIError as error:
            if error.connection_invalidated:
                raise StorageUnavailable(type(error).__name__) from error
            # The text of the statement may hold a caller's words: only its kind leaves here.
            raise StorageFault(type(error.orig).__name__) from error

    async def read_row(
        self, business_id: str, statement: LiteralString, values: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """The one row of a statement that only reads, in one round trip, in binary format.

        A transaction of its own that belongs to this business. Raises: as `transaction`.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._readers.row(business_id, statement, values)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StorageUnavailable(type(error).__name__) from error
        except TimeoutError as error:
            raise StorageUnavailable(f"no answer within {self._timeout_s} s") from error
        except psycopg.Error as error:
            raise StorageFault(type(error).__name__) from error


def check_owner(owner: Owner) -> None:
    """An empty business would match no rule of isolation. Raises: `ValueError`."""
    check_business(owner.business_id)


def check_business(business_id: str) -> None:
    """Raises: `ValueError` if `business_id` is empty."""
    if not business_id:
        raise ValueError("business_id is empty")


def clean_text(text: str) -> str:
    """What PostgreSQL can store: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def clean_json(value: Any) -> Any:
    """The same for every string inside a JSON-compatible value."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return value
