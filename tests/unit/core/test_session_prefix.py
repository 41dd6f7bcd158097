"""What the provider can cache: from turn to turn all that comes before the new turn stays as it was."""

from ivr.core import commands as do
from memory.model import Form, Window, WindowEntry
from tests.unit.core.harness import World, remembered, speech


def said_so_far(world: World, turns: int) -> Window:
    """The call's pages as transcripts, as a recall gives them while all fits."""
    pages = [remembered("CA1", no, f"Question {no}?", f"Answer {no}.") for no in range(1, turns + 1)]
    return Window(tuple(WindowEntry(page, Form.TRANSCRIPT, 9) for page in pages))


def test_two_windows_in_a_row_share_their_prefix_to_the_end_of_the_conversation() -> None:
    world = World(speech("Answer 3."), speech("Answer 4."), speech("Answer 5."))
    world.greet()
    for turns in (2, 3, 4):
        world.window = said_so_far(world, turns)
        world.says(f"Question {turns + 1}?")
        world.run(6_000)
    first, second, third = world.asked()
    assert len({reply.instructions for reply in world.asked()}) == 1
    assert len({repr(reply.tools).encode() for reply in world.asked()}) == 1
    for before, after in ((first, second), (second, third)):
        conversation = [item for item in before.input[:-2] if not is_greeting(item)]
        later = [item for item in after.input if not is_greeting(item)]
        assert (
            repr(conversation).encode()[:-1] == repr(later).encode()[: len(repr(conversation).encode()) - 1]
        )
        assert isinstance(
            before.input[-2], do.ItemRef
        )  # the turn, then the state, which alone is new each time
        assert isinstance(before.input[-1], do.SystemText)


def is_greeting(item: do.InputItem) -> bool:
    return isinstance(item, do.AssistantText) and item.text.startswith("Hello, this is the clinic")


def test_the_state_comes_last_behind_functions_too() -> None:
    from_model = World(speech("At nine."))
    from_model.greet()
    from_model.says("When do you open?")
    from_model.run(6_000)
    (reply,) = from_model.asked()
    assert [isinstance(item, do.SystemText) for item in reply.input].index(True) == len(reply.input) - 1
