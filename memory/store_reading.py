"""Reads of one row in one round trip, on connections of their own: what a caller waits for passes no other layer."""

import asyncio
from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg

OF_BUSINESS: LiteralString = "SELECT set_config('app.business', %s, true)"
"""Until the end of the transaction: a pooled connection carries no business over."""


class Readers:
    """Connections kept open, at most so many. A dead one is noticed when it is used, and replaced then."""

    def __init__(self, conninfo: str, size: int, **options: Any) -> None:
        """`options` are for connecting (e.g. `connect_timeout`)."""
        self._conninfo = conninfo
        self._options = options
        self._idle: list[psycopg.AsyncConnection[Any]] = []
        self._slots = asyncio.Semaphore(size)

    async def row(
        self, business_id: str, statement: LiteralString, values: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """The one row of a statement, in binary format; its transaction belongs to this business.

        Raises: `psycopg.Error`.
        """
        async with self._slots:
            if self._idle:
                try:
                    return await self._read(self._idle.pop(), business_id, statement, values)
                except (psycopg.OperationalError, psycopg.InterfaceError):
                    # The server was restarted since, perhaps; then all of these are dead.
                    await self.close()
            connection = await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, **self._options
            )
            return await self._read(connection, business_id, statement, values)

    async def close(self) -> None:
        """Close what is idle. Usable again afterwards."""
        while self._idle:
            await self._idle.pop().close()

    async def _read(
        self,
        connection: psycopg.AsyncConnection[Any],
        business_id: str,
        statement: LiteralString,
        values: Mapping[str, Any],
    ) -> tuple[Any, ...]:
        try:
            async with connection.pipeline():
                await connection.execute("BEGIN READ ONLY", prepare=True)
                await connection.execute(OF_BUSINESS, (business_id,), prepare=True)
                cursor = await connection.execute(statement, values, prepare=True, binary=True)
                await connection.execute("COMMIT", prepare=True)
            row = await cursor.fetchone()
        except BaseException:
            # Whatever is left in it, nobody shall read it as an answer of theirs.
            await connection.close()
            raise
        self._idle.append(connection)
        if row is None:
            raise psycopg.ProgrammingError("the statement gave no row")
        return tuple(row)
