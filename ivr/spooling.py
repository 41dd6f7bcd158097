"""A call's journal that goes on without a database, and the replay once there is one again."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from ivr.core.commands import EndReason
from ivr.errors import CallTakenOver, StorageUnavailable
from ivr.ports import Journal
from ivr.remembering import Claim, Prices, StoreJournal, in_our_terms
from ivr.spool import (
    ChargeLine,
    EndLine,
    ExchangeLine,
    Line,
    SnapshotLine,
    SpoolFile,
    SpoolFolder,
    StreamHeader,
)
from memory import errors as faults
from memory.calls import CallStatus
from memory.model import LATE_NO, CallSnapshot, Charge, EndedBy, Exchange, Owner
from memory.service import Memory
from memory.store import Store

DATABASE_WAIT_S = 1.5
"""A write that takes longer goes to the disk; should it have been made all the same, the replay changes nothing."""
REPLAY_EVERY_S = 1.0

NOT_AGAIN = (faults.MemoryFault, msgspec.MsgspecError, ValueError)
"""What a line that is tried again would raise again."""

log = structlog.get_logger()


class Replay:
    """Writes lines of one stream to the database, each as often as it takes, in order."""

    def __init__(self, memory: Memory, store: Store, claim: Claim, prices: Prices) -> None:
        self.claim = claim
        self._memory = memory
        self._store = store
        self._journal = StoreJournal(memory.of_call(claim.owner, claim.call_sid), store, claim, prices)
        self._prices = prices

    async def write(self, line: Line) -> None:
        """Raises: `StorageUnavailable`. What a newer stream has made void is left out, but for what was said."""
        if isinstance(line, ExchangeLine):
            line = ExchangeLine(replace(line.exchange, is_late=True, spoken_at=line.at))
        try:
            await write_to(self._journal, line)
        except CallTakenOver:
            if isinstance(line, ExchangeLine):
                await self._commit_late(line.exchange)

    async def _commit_late(self, exchange: Exchange) -> None:
        try:
            async with in_our_terms():
                if await self._store.has_exchange(exchange):
                    return  # that write was made all the same: only its answer never came
        except CallTakenOver:
            return
        late = replace(self._prices.priced(exchange), exchange_no=LATE_NO + exchange.exchange_no)
        try:
            async with in_our_terms():
                await self._memory.commit(self.claim.owner, late)
        except CallTakenOver:  # the call was erased: so is this
            log.info("spool_line_of_erased_call")


async def write_to(journal: Journal, line: Line) -> None:
    """Make the write that a line stands for."""
    match line:
        case ExchangeLine(exchange=exchange):
            await journal.commit_exchange(exchange)
        case SnapshotLine(snapshot):
            await journal.save_snapshot(snapshot)
        case EndLine(reason, by):
            await journal.end(reason, by)
        case ChargeLine(charge):
            await journal.charge(charge)


class SpooledJournal:
    """`ivr.ports.Journal`: to the database while it answers, else to the disk, and in order in both cases."""

    def __init__(self, direct: Journal, replay: Replay, folder: SpoolFolder) -> None:
        self._direct = direct
        self._replay = replay
        self._folder = folder
        self._file: SpoolFile | None = None
        self._replayed = 0
        self._order = asyncio.Lock()

    @property
    def path(self) -> Path | None:
        """The file, while something waits in it."""
        return self._file.path if self._file is not None else None

    async def commit_exchange(self, exchange: Exchange) -> None:
        """See the port; *accepted* also once it is on disk."""
        await self._write(ExchangeLine(exchange, datetime.now(UTC)))

    async def charge(self, charge: Charge) -> None:
        """See the port."""
        await self._write(ChargeLine(charge))

    async def save_snapshot(self, snapshot: CallSnapshot) -> None:
        """See the port."""
        await self._write(SnapshotLine(snapshot))

    async def end(self, reason: EndReason, by: EndedBy | None) -> None:
        """See the port."""
        await self._write(EndLine(reason, by))

    async def drain(self) -> None:
        """Replay what waits on disk. Raises: `StorageUnavailable`, with the rest still there."""
        async with self._order:
            if self._file is None:
                return
            try:
                _, lines = await asyncio.to_thread(self._file.read)
                for line in lines[self._replayed :]:
                    await self._replay.write(line)
                    self._replayed += 1
            except NOT_AGAIN:
                log.exception("spool_file_set_aside", path=self._file.path)
                await asyncio.to_thread(self._file.set_aside)
            else:
                await asyncio.to_thread(self._file.remove)
                log.info("spool_replayed", lines=len(lines))
            self._file, self._replayed = None, 0

    async def _write(self, line: Line) -> None:
        async with self._order:
            if self._file is None:
                try:
                    async with asyncio.timeout(DATABASE_WAIT_S):
                        return await write_to(self._direct, line)
                except (StorageUnavailable, TimeoutError):
                    pass
            await self._append(line)

    async def _append(self, line: Line) -> None:
        try:
            async with self._folder.room() as folder:
                if self._file is None:
                    self._file = await asyncio.to_thread(SpoolFile.create, folder, self._header())
                    log.warning("journal_on_disk")
                self._folder.wrote(await asyncio.to_thread(self._file.append, line))
        except OSError as error:
            raise StorageUnavailable(f"the spool cannot be written: {error.strerror}") from error

    def _header(self) -> StreamHeader:
        claim = self._replay.claim
        owner = claim.owner
        return StreamHeader(
            owner.business_id,
            owner.caller,
            claim.call_sid,
            claim.stream_sid,
            claim.to_number,
            claim.flow_hash,
            claim.held_epoch,
            claim.began_at,
            claim.trust,
            claim.account_sid,
        )


class Spool:
    """All spooled writes of this process, and those that a dead one left in this data folder.

    `prices` are for the latter: which models a business had is not told by its lines.
    """

    def __init__(self, folder: SpoolFolder, memory: Memory, store: Store, prices: Prices) -> None:
        self._folder = folder
        self._memory = memory
        self._store = store
        self._prices = prices
        self._live: set[SpooledJournal] = set()
        self._over: set[SpooledJournal] = set()

    def journal(self, direct: Journal, claim: Claim, prices: Prices) -> SpooledJournal:
        """The journal of one stream."""
        made = SpooledJournal(direct, Replay(self._memory, self._store, claim, prices), self._folder)
        self._live.add(made)
        return made

    def over(self, journal: SpooledJournal) -> None:
        """Its stream is over: it is kept only while something of it waits on disk."""
        self._live.discard(journal)
        if journal.path is not None:
            self._over.add(journal)

    async def run(self) -> None:
        """Replay, when something waits and the database answers, until cancelled."""
        while True:
            try:
                await self.replay()
            except StorageUnavailable:
                pass  # tried again
            except Exception:  # a task's border: calls go on with what is on disk
                log.exception("spool_replay_failed")
            await asyncio.sleep(REPLAY_EVERY_S)

    async def replay(self) -> None:
        """Everything once, oldest first. Raises: `StorageUnavailable`."""
        for journal in (*self._over, *self._live):
            await journal.drain()
        self._over = {journal for journal in self._over if journal.path is not None}
        own = {journal.path for journal in self._live}
        for path in self._folder.paths():
            if path not in own:
                await self._adopt(path)

    async def _adopt(self, path: Path) -> None:
        file = SpoolFile.adopt(path)
        if file is None:
            return
        try:
            header, lines = await asyncio.to_thread(file.read)
            if header is not None:
                await self._replay_left(header, lines)
        except StorageUnavailable:
            file.release()
            raise
        except NOT_AGAIN:
            log.exception("spool_file_set_aside", path=path)
            await asyncio.to_thread(file.set_aside)
            return
        await asyncio.to_thread(file.remove)

    async def _replay_left(self, header: StreamHeader, lines: list[Line]) -> None:
        claim = Claim(
            self._store,
            Owner(header.business_id, header.caller),
            header.call_sid,
            header.stream_sid,
            header.to_number,
            header.flow_hash,
            header.began_at,
            header.trust,
            header.account_sid,
        )
        if not await self._take(claim, header.epoch):
            log.info("spool_file_of_erased_caller")
            return
        replay = Replay(self._memory, self._store, claim, self._prices)
        for line in lines:
            await replay.write(line)
        log.info("spool_replayed", call_sid=header.call_sid, lines=len(lines))

    async def _take(self, claim: Claim, epoch: int | None) -> bool:
        """The dead stream's hold on its call, unless its caller was erased.

        One that never had a hold must not take the call from a living stream.
        """
        if epoch is None:
            try:
                async with in_our_terms():
                    row = await claim.open()
            except CallTakenOver:
                return False
            if row.epoch == 0 and row.status is CallStatus.ACTIVE:
                return True  # nobody's: the first write claims it
            epoch = 0
        claim.take_over(epoch)
        return True
