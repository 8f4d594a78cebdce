"""A pause in the terminal: what waits, shown so that nothing in it can deceive, and the questions to a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sayso_cli.chat.wire import ASK_USER, CONTINUE, OUTCOME_UNKNOWN, Ask
from sayso_cli.output import one_line, pretty, safe

Paint = Callable[[str, str], str]
Line = Callable[[str], str]  # shows a prompt, returns what was typed; EOFError where nobody types


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger says about a call beside what the agent sent. `short` is its name in `sayso approvals`."""

    short: str
    server: str
    requirements: tuple[str, ...] = ()
    expires: str | None = None


@dataclass(slots=True)
class Decided:
    """The verdicts of one round by id; what is not in it stays pending."""

    verdicts: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[list[str]]] = field(default_factory=dict)  # of those that ask something, per question


def picture(ask: Ask, known: Known | None, paint: Paint) -> str:
    """One pending call for people."""
    arguments: Mapping[str, Any] = ask.arguments if isinstance(ask.arguments, Mapping) else {}
    if ask.name == OUTCOME_UNKNOWN:
        title = f"Nobody knows whether {safe(str(arguments.get('tool', 'a tool')))} ran"
        value: Any = arguments.get("arguments")
    elif ask.name == CONTINUE:
        title, value = "The model failed after a tool had run; the result is kept", None
    elif ask.name == ASK_USER:
        title, value = "The agent asks you", None
    else:
        title, value = f"{safe(ask.name)} wants your say-so", ask.arguments
    lines = [paint("‖ " + title, "bold yellow")]
    if known is not None:
        lines.append(_field("server", known.server))
        if known.requirements:
            lines.append(_field("asked for by", ", ".join(known.requirements)))
        if known.expires:
            lines.append(_field("until", known.expires))
        lines.append(_field("id", known.short))
    else:
        lines.append(_field("id", ask.id))
    if ask.name == OUTCOME_UNKNOWN and arguments.get("startedAt"):
        lines.append(_field("started", str(arguments["startedAt"])))
    if ask.name == CONTINUE:
        lines.append(_field("failure", str(arguments.get("reason", ""))))
    if ask.name == ASK_USER:
        lines += [_field(f"question {number}", entry.text) for number, entry in enumerate(entries(ask), 1)]
    elif ask.hint:
        lines.append(_field("hint", ask.hint))
    if value is not None:
        lines += ["  arguments", pretty(value, 4)]
    return "\n".join(lines)


def _field(name: str, text: str) -> str:
    first, *rest = [safe(line) for line in text.splitlines()] or [""]
    return "\n".join([f"  {name:<13}{first}", *(" " * 15 + line for line in rest)])


def words(ask: Ask) -> tuple[str, str]:
    """What yes and no mean for it."""
    match ask.name:
        case "sayso_outcome_unknown":
            return "run it again", "leave it"
        case "sayso_continue":
            return "go on", "end the run"
        case "ask_user":
            return "answer", "decline"
        case _:
            return "approve", "reject"


def question(asks: Sequence[Ask], read: Line, say: Callable[[str], None]) -> Decided:
    """Asks about each call: yes, no (with a reason) or later. Anything else is asked again; no answer means later."""
    decided = Decided()
    for ask in asks:
        yes, no = words(ask)
        name = safe(ask.name) if ask.name not in (OUTCOME_UNKNOWN, CONTINUE) else "this"
        try:
            choice = _choice(f"{name}: [a] {yes}  [r] {no}  [l] later > ", yes, no, read, say)
            if choice == "approve" and ask.name == ASK_USER:
                decided.answers[ask.id] = form(ask, read, say)  # first: answers that were broken off are none
            if choice == "approve":
                decided.verdicts[ask.id] = "approve"
            elif choice == "reject":
                # The reason first: a verdict whose reason was broken off is no verdict.
                reason = read("reason (for the model and the record; may be empty) > ").strip()
                decided.verdicts[ask.id] = "reject"
                decided.reasons[ask.id] = reason
        except EOFError:
            say("")
            return decided
    return decided


def _choice(prompt: str, yes: str, no: str, read: Line, say: Callable[[str], None]) -> str:
    while True:
        typed = read(prompt).strip().lower()
        if typed in ("a", "approve", "y", "yes", yes):
            return "approve"
        if typed in ("r", "reject", "n", "no", no):
            return "reject"
        if typed in ("l", "later"):
            return "later"
        say("Please type a, r or l.")


@dataclass(frozen=True, slots=True)
class Entry:
    """One question as an agent sent it."""

    text: str
    choices: tuple[str, ...]
    several: bool


def entries(ask: Ask) -> list[Entry]:
    """The questions of a call of `ask_user`, whatever an agent has sent as them."""
    arguments: Mapping[str, Any] = ask.arguments if isinstance(ask.arguments, Mapping) else {}
    given = arguments.get("questions")
    found = []
    for item in given if isinstance(given, list) else []:
        entry: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
        choices = entry.get("choices")
        texts = tuple(str(choice) for choice in choices) if isinstance(choices, list) else ()
        found.append(Entry(str(entry.get("question", "")), texts, entry.get("multiple") is True))
    return found


def form(ask: Ask, read: Line, say: Callable[[str], None]) -> list[list[str]]:
    """Asks each question; a number chooses, anything else is the answer itself. EOFError: not now."""
    answers = []
    for entry in entries(ask):
        say(safe(entry.text, lines=True))
        for number, choice in enumerate(entry.choices, 1):
            say(f"  {number}  {safe(choice)}")
        how = "number or your own words" if entry.choices else "your own words"
        prompt = f"answer ({how}{'; several separated by commas' if entry.several else ''}) > "
        while not (given := _given(read(prompt), entry)):
            say("Please type an answer; Ctrl-D leaves the question pending.")
        answers.append(given)
    return answers


def _given(typed: str, entry: Entry) -> list[str]:
    parts = typed.split(",") if entry.several else [typed]
    return [_chosen(part.strip(), entry.choices) for part in parts if part.strip()]


def _chosen(typed: str, choices: Sequence[str]) -> str:
    if typed.isdecimal() and 1 <= int(typed) <= len(choices):
        return choices[int(typed) - 1]
    return typed


def how_to_decide(asks: Sequence[Ask], known: Mapping[str, Known], session: str, agent: str) -> str:
    """For somebody who cannot be asked now: commands that decide."""
    lines = ["Nothing was decided: there is no terminal to ask on. Decide with"]
    for ask in asks:
        name = known[ask.id].short if ask.id in known else ask.id
        if ask.name == OUTCOME_UNKNOWN:
            lines.append(f"  sayso approvals settle {safe(name)} --retry | --result JSON | --abandon")
        elif ask.name == ASK_USER:
            lines.append(f"  sayso approvals approve {safe(name)} --answer TEXT    or, for several: '[[TEXT], [TEXT]]'")
        else:
            lines.append(
                f"  sayso approvals approve {safe(name)}    or: sayso approvals reject {safe(name)} --reason …"
            )
    lines.append(f"or in a terminal: sayso chat {safe(agent)} --session {safe(session)}")
    return "\n".join(lines)


def ran(name: str, value: Any, *, result: bool, is_error: bool, paint: Paint) -> str:
    """A call that needed nobody, on one line."""
    arrow = "←" if result else "→"
    text = f"  {arrow} {safe(name)} {'failed: ' if is_error else ''}{one_line(gist(value), 160)}"
    return paint(text, "red" if is_error else "dim")


def gist(value: Any) -> Any:
    """What a tool server's result says, without the wrapping of MCP; anything else as it is."""
    if not isinstance(value, Mapping) or not isinstance(value.get("content"), list):
        return value
    if value.get("structuredContent"):
        return value["structuredContent"]
    texts = [part.get("text") for part in value["content"] if isinstance(part, Mapping)]
    return texts[0] if len(texts) == 1 else value
