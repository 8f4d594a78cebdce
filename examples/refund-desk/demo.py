"""Shows the whole of it in one go: a question, a free look-up, a pause, your say-so, and what the order book says then.

    make demo

Everything is real: the tool server, the agent's process, the store. Without a terminal to ask on, the answer is
`SAYSO_DEMO_ANSWER` (approve or reject; approve when it is not set). The exit code is 0 only if the order book ends as
decided.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from order_book import OrderBook

from sayso_cli.chat.asking import picture, ran
from sayso_cli.chat.client import Client, Refused
from sayso_cli.chat.wire import Shown, decision_parts, text_part
from sayso_cli.dev.state import StateDir
from sayso_cli.errors import CliError
from sayso_cli.output import one_line, painter, safe

HERE = Path(__file__).parent
ADDRESS = "http://127.0.0.1:8765"  # of the tool server, in agent.yaml
ORDER, AMOUNT = "A-1001", "25.50"  # what the scripted model asks for
QUESTION = "My desk lamp from order A-1001 arrived broken. Can I have my money back?"
PATIENCE = 60.0  # seconds for a process to come up

paint = painter()


def main() -> int:
    """Runs the demonstration in a temporary directory that is gone afterwards."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, break_off)
    with tempfile.TemporaryDirectory(prefix="sayso-demo-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        title("1. A tool server with an order book, and an agent that may use it")
        database = folder / "orders.sqlite"
        port = free_port()
        server = [sys.executable, str(HERE / "orders_server.py"), "--port", str(port), "--database", str(database)]
        running.enter_context(started("tool server", server, folder, lambda: listens(port)))
        manifest = folder / "agent.yaml"
        manifest.write_text((HERE / "agent.yaml").read_text().replace(ADDRESS, f"http://127.0.0.1:{port}"))
        state = StateDir(folder / "state")
        dev = [sys.executable, "-m", "sayso_cli.main", "dev", str(manifest), "--state-dir", str(state.root)]
        running.enter_context(started("sayso dev", dev, folder, lambda: state.endpoints() is not None))
        endpoints = state.endpoints()
        assert endpoints is not None
        urls = endpoints.agents["shop/refund-desk"]
        say(
            f"Agent shop/refund-desk answers at {urls[0]}; `refund` and `cancel_*` need a say-so, `get_order` does not."
        )

        book = OrderBook(database)
        title("2. The order book before")
        say(f"  {one_line(book.order(ORDER))}")

        title("3. The question")
        say(f"  customer: {QUESTION}")
        client = Client("shop/refund-desk", urls, show_call, say)
        running.callback(client.close)
        reply = client.send([text_part(QUESTION)], context_id="demo")
        if not reply.asks:
            raise DemoError(f"the agent did not pause: {safe(reply.text or reply.note or reply.state)}")

        title("4. The pause: nothing has happened yet, and nothing will before you say so")
        for ask in reply.asks:
            say(picture(ask, None, paint))
        verdict, reason = say_so()
        verdicts = {ask.id: verdict for ask in reply.asks}
        reply = client.send(
            decision_parts(verdicts, dict.fromkeys(verdicts, reason)), context_id="demo", task_id=reply.task_id
        )

        title("5. The agent's answer")
        say(f"  {safe(reply.text or reply.note, lines=True)}")

        title("6. The order book after")
        after = book.order(ORDER)
        say(f"  {one_line(after)}")
        for line in book.history(ORDER):
            say(f"  history: {one_line(line)}")
        expected = AMOUNT if verdict == "approve" else "0.00"
        if after["refunded"] != expected or reply.state != "completed":
            raise DemoError(f"you said {verdict}, so {expected} should be refunded; the run is {reply.state}")
        say(paint(f"\nAs you said: {'refunded, once' if verdict == 'approve' else 'nothing was refunded'}.", "green"))
    return 0


class DemoError(Exception):
    """The demonstration did not go as it should; the text says why."""


def break_off(number: int, frame: object) -> None:
    """Ctrl-C and `kill` clean up; once that has begun, asking again does not break it off."""
    for known in (signal.SIGINT, signal.SIGTERM):
        signal.signal(known, signal.SIG_IGN)
    print("\nBroken off; cleaning up.", file=sys.stderr, flush=True)
    sys.exit(128 + number)


def say_so() -> tuple[str, str]:
    """`approve` or `reject`, and the reason: from the terminal, else from SAYSO_DEMO_ANSWER."""
    if not sys.stdin.isatty():
        answer = os.environ.get("SAYSO_DEMO_ANSWER") or "approve"
        if answer not in ("approve", "reject"):
            raise DemoError(f"SAYSO_DEMO_ANSWER is {answer!r}; it can be approve or reject")
        say(f"\nThere is no terminal to ask on: the answer is {answer!r}, from SAYSO_DEMO_ANSWER or its default.")
        return answer, "not without a photo of the damage" if answer == "reject" else ""
    while True:
        typed = input("\nYour say-so: [a]pprove or [r]eject > ").strip().lower()
        if typed in ("a", "approve"):
            return "approve", ""
        if typed in ("r", "reject"):
            return "reject", input("Why? > ").strip()


@contextlib.contextmanager
def started(name: str, command: list[str], folder: Path, ready: Callable[[], bool]) -> Iterator[None]:
    """A process that is ready inside, and ended afterwards. Raises DemoError with the end of its output."""
    log = folder / f"{name.replace(' ', '-')}.log"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}
    with log.open("wb") as output:
        # A session of its own: Ctrl-C is for the demonstration, which then ends its processes in order.
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"the {name} did not come up:\n" + safe(log.read_text()[-2000:], lines=True))
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listens(port: int) -> bool:
    """Whether something accepts connections on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def show_call(shown: Shown) -> None:
    """A call that needed nobody."""
    say(ran(shown.name, shown.value, result=shown.result, is_error=shown.is_error, paint=paint))


def title(text: str) -> None:
    """A heading."""
    say("\n" + paint(text, "bold cyan"))


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DemoError, Refused, CliError) as error:
        print(f"\nThe demonstration failed: {error}", file=sys.stderr)
        sys.exit(1)
    except EOFError:
        print("\nThe demonstration was not answered, and nothing was decided.", file=sys.stderr)
        sys.exit(1)
