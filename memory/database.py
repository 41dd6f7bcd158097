"""The engine, and the border at which driver errors end."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg
from procrastinate.exceptions import ConnectorException
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.embedded import conninfo_of, normalise_url
from memory.errors import StorageFault, StorageUnavailable
from memory.model import Owner
from memory.store_reading import Readers

CONNECT_TIMEOUT_S = 2
POOL_TIMEOUT_S = 2.0
STATEMENT_TIMEOUT_S = 5.0


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

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back by an exception in it.

        Raises: `StorageUnavailable` (try again), `StorageFault` (no use trying).
        """
        try:
            async with asyncio.timeout(self._timeout_s), self._engine.begin() as connection:
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
