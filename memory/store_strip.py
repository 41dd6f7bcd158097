"""What is taken away from a call that goes on: its caller does not want to be recorded."""

from sqlalchemy import delete, insert, select, union_all, update

from memory.database import Database, check_owner
from memory.jobqueue import enqueue_thread
from memory.model import Owner
from memory.schema import doomed_files, page_vectors, pages, thread_pages, threads


class StripStore(Database):
    """Statements that take sound, or words too, from a call's pages; what they cost stays."""

    async def strip(self, owner: Owner, call_sid: str, *, words: bool) -> None:
        """Take away the audio of what is kept of a call, and with `words` all that was said. Done twice, no harm."""
        check_owner(owner)
        mine = (
            pages.c.business_id == owner.business_id,
            pages.c.call_id == call_sid,
            pages.c.caller.is_not_distinct_from(owner.caller or None),
        )
        columns = (pages.c.user_audio_path, pages.c.reply_audio_path)
        paths = union_all(
            *(select(pages.c.business_id, path.label("path")).where(*mine, path != "") for path in columns)
        ).subquery()
        values: dict[str, object] = dict.fromkeys(("user_audio_path", "reply_audio_path"), "")
        if words:
            values |= dict.fromkeys(("user_text", "reply_text", "summary", "user_item_id", "flow_node"), "")
            values["states"] = {}
        async with self.transaction(owner.business_id) as connection:
            await connection.execute(
                insert(doomed_files).from_select(
                    ["business_id", "path"], select(paths.c.business_id, paths.c.path)
                )
            )
            await connection.execute(update(pages).where(*mine).values(**values))
            if not words:
                return
            ids = select(pages.c.page_id).where(*mine)
            of_business = thread_pages.c.business_id == owner.business_id
            left = await connection.execute(
                delete(thread_pages)
                .where(of_business, thread_pages.c.page_id.in_(ids))
                .returning(thread_pages.c.thread_id)
            )
            touched = sorted(set(left.scalars()))
            await connection.execute(
                delete(page_vectors).where(
                    page_vectors.c.business_id == owner.business_id, page_vectors.c.page_id.in_(ids)
                )
            )
            await connection.execute(
                delete(threads).where(
                    threads.c.business_id == owner.business_id,
                    threads.c.thread_id.in_(touched),
                    threads.c.thread_id.not_in(select(thread_pages.c.thread_id).where(of_business)),
                )
            )
            still = select(threads.c.thread_id).where(
                threads.c.business_id == owner.business_id, threads.c.thread_id.in_(touched)
            )
            for thread_id in (await connection.execute(still)).scalars():
                await enqueue_thread(connection, thread_id)  # its summary still tells what is gone
