"""Everything to be said about flow files: the errors, and warnings about what will disappoint a caller."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from callflows.document import Document
from callflows.document import Path as DocumentPath
from callflows.engine import at_node, fit
from callflows.faults import FlowFault, Severity, in_order
from callflows.lexicon import plain
from callflows.lines import line_name
from callflows.model import Business, Talk, names_in, referred
from callflows.nodes.collect import CollectNode
from callflows.nodes.flow import FlowNode
from callflows.nodes.later import CallbackNode
from callflows.nodes.menu import MenuNode
from callflows.nodes.override import OverrideNode
from callflows.nodes.prompts import Asks
from callflows.nodes.queue import QueueNode, TakeNode
from callflows.nodes.rings import Rings
from callflows.nodes.tool import ToolNode
from callflows.nodes.voicemail import VoicemailNode
from callflows.parse import read_files
from callflows.references import fills, reads, rotas, schedules, single_texts, texts_at, texts_of
from callflows.spoken import unrecorded
from callflows.stock import is_known
from callflows.texts import lacks, slots_in
from callflows.tools import slots_of


def check_paths(path: str | Path, *, has_voice: bool = True) -> list[FlowFault]:
    """Errors and warnings of a folder's flow files (or of one file), by file and place. Never raises.

    `has_voice`: exact words are spoken by a voice that says them exactly.
    """
    files, errors = read_files(Path(path))
    found = [*errors, *_wrong_endings(Path(path))]
    for parsed in files:
        if parsed.business is not None and parsed.document is not None:
            found.extend(_warnings(parsed.document, parsed.business))
            found.extend([] if has_voice else _inexact(parsed.document, parsed.business))
    return list(in_order(found))


def _warnings(document: Document, business: Business) -> list[FlowFault]:
    found = [*_ways_out(business), *_left_out(business), *_language(business)]
    found += [*_disclosure(business), *_languages(document, business), *_unused(document, business)]
    found += [*_tools(business), *_own_phrases(business), *_untold(business), *_lines(business)]
    found += [
        *_unasked(business),
        *_same_words(business),
        *_no_owners(business),
        *_no_audio(document, business),
    ]
    unused = [*_unused_targets(business), *_unused_names(document, business)]
    # What others share, not every business must use.
    found += [warning for warning in unused if document.is_own(warning[0])]
    return [_warning(document, *warning) for warning in found]


def _inexact(document: Document, business: Business) -> Iterator[FlowFault]:
    """Exact words that only the speech model could say: told once, at the first of them."""
    names = unrecorded(business)
    if names:
        others = f", and in {len(names) - 1} more nodes," if len(names) > 1 else ""
        message = f"the words here{others} are left to the speech model, which may say others"
        hint = "set OPENAI_API_KEY or OPENAI_BASE_URL for a text-to-speech endpoint, or give sound files (`audio`)"
        yield _warning(document, ("nodes", names[0]), message, hint)


def _warning(document: Document, path: DocumentPath, message: str, hint: str) -> FlowFault:
    fault = document.fault(path, message, hint, at_key=True)
    return replace(fault, severity=Severity.WARNING)


_Said = tuple[DocumentPath, str, str]


def _unused_targets(business: Business) -> Iterator[_Said]:
    used, _ = referred(business.nodes)
    for node in business.nodes.values():
        used.update(business.allowed_transfers(node) if isinstance(node, Talk) else ())
    used.update(name for rota in business.rotas.values() for name in rota.people())
    ways_out = [business.operator, *(each.transfer for each in business.emergency)]
    ways_out += [part.transfer for part in (business.on_model_down, business.on_busy)]
    used.update(name for name in (*ways_out, business.spending.transfer) if name)
    for name in business.transfers:
        if name not in used:
            yield ("transfers", name), f"no node transfers to `{name}`", "allow it in a node, or take it out"


def _ways_out(business: Business) -> Iterator[_Said]:
    for name, node in business.nodes.items():
        if isinstance(node, Talk) and not node.exits and not business.allowed_transfers(node):
            hint = "add an exit or a transfer"
            yield (
                ("nodes", name),
                f"from `{name}` a caller reaches nobody: hanging up is the only way out",
                hint,
            )


def _left_out(business: Business) -> Iterator[_Said]:
    """Text that does not fit the speech model's limit, told once for each place."""
    fits = [
        (name, fit(business, at_node(business, name)))
        for name, node in business.nodes.items()
        if isinstance(node, Talk)
    ]
    kept = min((each.facts_kept for _, each in fits), default=len(business.facts))
    if kept < len(business.facts):
        message = f"facts from here on do not fit a speech model: {kept} of {len(business.facts)} are used"
        yield ("facts", kept), message, "shorten them, or put the most important first"
    if any(each.manner_cut for _, each in fits):
        yield ("instructions",), "too long for a speech model: the end is left out", "shorten them"
    for name, each in fits:
        if each.node_cut:
            yield (
                ("nodes", name, "instructions"),
                "too long for a speech model: the end is left out",
                "shorten them",
            )


def _language(business: Business) -> Iterator[_Said]:
    """What would be told in English, for want of words of the business's, or of our own, in a language."""
    unknown = [each for each in (business.language, *business.languages) if not is_known(each)]
    if not is_known(business.language) and business.resume.greeting != "never" and not business.resume.say:
        yield ("resume",), "callers are welcomed back in English", "give `resume: say:` in your language"
    if business.language in unknown and not business.on_busy.say:
        yield (
            ("on_busy",),
            "that all lines are busy is told in English",
            "give `on_busy: say:` in your language",
        )
    if unknown and not business.on_model_down.say:
        message = f"a failure is told in English to callers in {', '.join(unknown)}"
        yield ("on_model_down",), message, "give `on_model_down: say:` in that language"
    spending = business.spending
    limited = spending.per_call_usd is not None or spending.per_month_usd is not None
    if limited and unknown and not spending.say:
        message = f"a spent ceiling is told in English to callers in {', '.join(unknown)}"
        yield ("spending",), message, "give `spending: say:` in that language"


def _own_phrases(business: Business) -> Iterator[_Said]:
    """Languages in which we have no words of our own for people who are not reached."""
    unknown = [each for each in (business.language, *business.languages) if not is_known(each)]
    for name, node in business.nodes.items():
        if isinstance(node, Rings) and unknown and not node.not_reached:
            message = f"that nobody was reached is told in English to callers in {', '.join(unknown)}"
            yield ("nodes", name), message, "give `not_reached:` in that language"


def _unasked(business: Business) -> Iterator[_Said]:
    """Nobody is called back who was not asked."""
    back = business.resume.call_back
    asks = any(isinstance(node, CallbackNode) and node.when == "dropped" for node in business.nodes.values())
    if back is not None and back.consent == "asked" and not asks:
        message = "nobody is asked, so nobody is called back"
        yield ("resume", "call_back"), message, "add a node `type: callback` with `when: dropped`"
    if back is None and asks:
        message = "callers are asked whether to be called back, and never are"
        yield ("resume",), message, "give `resume: {call_back: {}}`"


def _untold(business: Business) -> Iterator[_Said]:
    """Messages that the business would only find by looking."""
    is_told = business.notices.email or any("voicemail" in each.events for each in business.webhooks)
    if business.on_model_down.voicemail and not is_told:
        message = "nobody is told of the messages left without a speech model"
        yield ("on_model_down", "voicemail"), message, "give `notices: {email: [office@example.com]}`"
    for name, node in business.nodes.items():
        if isinstance(node, VoicemailNode) and not is_told:
            message = "nobody is told of the messages left here"
            yield ("nodes", name), message, "give `notices: {email: [office@example.com]}`"


def _same_words(business: Business) -> Iterator[_Said]:
    """Words that choose nothing, because they stand for two choices of one menu."""
    for name, node in business.nodes.items():
        if not isinstance(node, MenuNode):
            continue
        first: dict[str, str] = {}
        for choice, option in node.options.items():
            for words in option.words:
                other = first.setdefault(plain(words), choice)
                if other != choice:
                    path = ("nodes", name, "options", choice, "words")
                    message = f"`{words}` stands for {other} too: whoever says it is asked again"
                    yield path, message, "leave it at one of them"


def _no_owners(business: Business) -> Iterator[_Said]:
    """Hours that nobody may set."""
    for name, node in business.nodes.items():
        if isinstance(node, OverrideNode) and not business.callers.owners:
            message = "nobody may set hours by telephone"
            yield ("nodes", name), message, 'give `callers: {owners: ["+16175550123"]}`'


def _no_audio(document: Document, business: Business) -> Iterator[_Said]:
    """Sound files that are not there: the text is spoken instead."""
    folder = Path(document.file).parent
    for name, node in business.nodes.items():
        key, files, instead = "audio", node.audio if isinstance(node, Asks) else {}, "`say` is spoken"
        if isinstance(node, QueueNode):
            key, files, instead = "music", node.music, "who waits hears nothing"
        for file in dict.fromkeys(files.values()):
            if not (folder / file).is_file():
                message = f"there is no file {file}: {instead} instead"
                yield ("nodes", name, key), message, "put it beside this file"


def _lines(business: Business) -> Iterator[_Said]:
    """Lines in which callers would wait for nobody."""
    taken = names_in(business.nodes, lambda node: node.QUEUES)
    for name, node in business.nodes.items():
        if isinstance(node, QueueNode) and name not in taken:
            hint = (
                f"add a node of type take, or have your own application dial `{line_name(business.id, name)}`"
            )
            yield ("nodes", name), "no node takes callers out of this line", hint
        if isinstance(node, TakeNode) and not (business.callers.staff or business.callers.owners):
            message = "nobody may take callers out of the line"
            yield ("nodes", name), message, 'give `callers: {staff: ["+16175550123"]}`'


def _disclosure(business: Business) -> Iterator[_Said]:
    """EU AI Act, Art. 50: whoever talks with a machine is told so."""
    if "disclosure" not in business.model_fields_set:
        message = "callers are not told that a machine speaks"
        hint = 'give `disclosure: You are speaking with a machine.`, or "" where the greeting says it'
        yield ("greeting",), message, hint


def _languages(document: Document, business: Business) -> Iterator[_Said]:
    """Texts that are given for some of the business's languages and lack others."""
    for path, value in texts_at(document):
        if isinstance(value, dict) and value:
            missing = [each for each in (business.language, *business.languages) if lacks(value, each)]
            if missing:
                yield path, f"no text in {', '.join(missing)}", "callers will hear another language"
            known = {each.casefold() for each in (business.language, *business.languages)}
            for tag in value:
                if str(tag).casefold() not in known:
                    hint = "add it under `languages`, or take the text out"
                    yield (*path, tag), f"nobody hears this: the business does not speak {tag}", hint


def _unused(document: Document, business: Business) -> Iterator[_Said]:
    """Slots that nothing looks at; secrets that a text would say."""
    said = {name for path, value in texts_at(document) for name in slots_in(texts_of(value))}
    read = said | {name for _, name in reads(document)}
    secret = {n.slot for n in business.nodes.values() if isinstance(n, CollectNode) and n.secret}
    talks = [node for node in business.nodes.values() if isinstance(node, Talk)]
    shown = {slot for node in talks for tool in node.tools for slot in business.tools[tool].result}
    shown |= {
        node.verifies for node in business.nodes.values() if isinstance(node, ToolNode) and node.verifies
    }
    for path, name in fills(document):
        if name not in read | shown and not business.tells("call_ended"):
            yield (
                path,
                f"nothing uses slot `{name}`",
                "look at it in a branch, say it in a text, or leave it out",
            )
    for path, text in single_texts(document):
        for name in sorted(slots_in([text]) & secret):
            message = f"`{{{name}}}` is secret: where a text names it, nothing is said"
            yield path, message, "take it out of the text"


def _unused_names(document: Document, business: Business) -> Iterator[_Said]:
    used = {name for _, name in schedules(document)}
    for name in business.hours:
        if name not in used:
            yield ("hours", name), f"nothing looks at the hours `{name}`", "use them in a node of type hours"
    used = {name for _, name in rotas(document)}
    for name in business.rotas:
        if name not in used:
            yield ("rotas", name), f"nothing looks at the rota `{name}`", "use it in a node of type ring"
    used = names_in(business.nodes, lambda node: node.TOOLS)
    for name in business.tools:
        if name not in used:
            hint = "use it in a node of type tool, or in a talk"
            yield ("tools", name), f"nothing uses the tool `{name}`", hint
    used = {node.flow for node in business.nodes.values() if isinstance(node, FlowNode)}
    for name in business.flows:
        if name not in used:
            yield ("flows", name), f"nothing uses the flow `{name}`", "use it in a node of type flow"


def _tools(business: Business) -> Iterator[_Said]:
    """Secrets where others read them, and silence while a tool runs."""
    secret = {n.slot for n in business.nodes.values() if isinstance(n, CollectNode) and n.secret}
    for name, tool in business.tools.items():
        for slot in sorted(slots_of(tool.url) & secret):
            message = f"`{{{slot}}}` is secret: URLs are written into logs on the way"
            yield ("tools", name, "url"), message, "send it in the body"
    for name, node in business.nodes.items():
        if isinstance(node, ToolNode) and not node.say and not business.tools[node.tool].say:
            hint = "give the tool, or the node, something to `say` meanwhile"
            yield ("nodes", name), "callers hear nothing while the tool runs", hint


def _wrong_endings(path: Path) -> list[FlowFault]:
    if not path.is_dir():
        return []
    hint = "rename it to end in .yaml"
    return [FlowFault(str(file), 1, 1, "is not read", hint, Severity.WARNING) for file in path.glob("*.yml")]
