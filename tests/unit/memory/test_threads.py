"""Which threads a page joins."""

from memory.threads import Append, PageLink, Spawn, ThreadLink, ThreadProfile, place, profile_for

PROFILE = ThreadProfile(append_link=0.35, page_link=0.45, threads_max=2, founders_max=2)


def test_the_nearest_two_threads_are_joined() -> None:
    threads = [ThreadLink(1, 0.36), ThreadLink(2, 0.6), ThreadLink(3, 0.34), ThreadLink(4, 0.5)]
    assert place(threads, [], PROFILE) == Append((2, 4))


def test_without_a_thread_similar_pages_found_one() -> None:
    pages = [PageLink(1, 0.44), PageLink(2, 0.5), PageLink(3, 0.9), PageLink(4, 0.6)]
    assert place([ThreadLink(1, 0.2)], pages, PROFILE) == Spawn((3, 4))


def test_with_neither_the_page_is_alone() -> None:
    assert place([], [], PROFILE) == Spawn(())


def test_thresholds_belong_to_a_model() -> None:
    assert profile_for("BAAI/bge-small-en-v1.5").append_link > profile_for("all-MiniLM-L6-v2").append_link
    assert profile_for("unheard-of") == profile_for("all-MiniLM-L6-v2")
