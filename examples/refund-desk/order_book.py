"""The shop's order book: a SQLite file with orders, and a line for everything that was done to them.

    OrderError    an order that does not exist, or a step that it does not allow; the text is for the customer's agent

Money is kept in whole cents. Every change is one transaction, so that two of them cannot both spend the same money.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY,
    customer TEXT NOT NULL,
    item TEXT NOT NULL,
    paid INTEGER NOT NULL CHECK (paid >= 0),
    refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded BETWEEN 0 AND paid),
    status TEXT NOT NULL CHECK (status IN ('open', 'delivered', 'cancelled'))
);
CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id TEXT NOT NULL REFERENCES orders (id),
    what TEXT NOT NULL,
    cents INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
"""

ORDERS = (
    ("A-1001", "Ines Duarte", "Desk lamp", 2550, "delivered"),
    ("A-1002", "Tomasz Lis", "Bookshelf", 12900, "delivered"),
    ("A-1003", "Mei Tanaka", "Office chair", 8990, "open"),
)


class OrderError(Exception):
    """The order does not exist, or does not allow this."""


class OrderBook:
    """The order book in one file. Safe to open from several processes at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with contextlib.closing(self._connect()) as database:
            database.executescript(SCHEMA)
            with database:
                # An order that is there already keeps what happened to it.
                database.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, 0, ?)", ORDERS)

    def order(self, order_id: str) -> dict[str, Any]:
        """An order as the agent sees it, amounts as decimal text. Raises OrderError."""
        with self._transaction() as database:
            return _shown(_row(database, order_id))

    def refund(self, order_id: str, amount: Decimal, reason: str) -> dict[str, Any]:
        """Pays `amount` back. Raises OrderError where that is more than is left of what was paid."""
        cents = _cents(amount)
        with self._transaction() as database:
            row = _row(database, order_id)
            left = row["paid"] - row["refunded"]
            if cents > left:
                raise OrderError(f"{_money(cents)} cannot be refunded: {_money(left)} is left of order {order_id}")
            database.execute("UPDATE orders SET refunded = refunded + ? WHERE id = ?", (cents, order_id))
            _remember(database, order_id, "refund", cents, reason)
            return _shown(_row(database, order_id))

    def cancel(self, order_id: str, reason: str) -> dict[str, Any]:
        """Cancels an order that is still open, and pays back what is left. Raises OrderError."""
        with self._transaction() as database:
            row = _row(database, order_id)
            if row["status"] != "open":
                raise OrderError(f"order {order_id} is {row['status']}: only open orders can be cancelled")
            left = row["paid"] - row["refunded"]
            database.execute("UPDATE orders SET status = 'cancelled', refunded = paid WHERE id = ?", (order_id,))
            _remember(database, order_id, "cancel", left, reason)
            return _shown(_row(database, order_id))

    def history(self, order_id: str) -> list[dict[str, Any]]:
        """What was done to an order, oldest first."""
        with self._transaction() as database:
            lines = database.execute("SELECT * FROM history WHERE order_id = ? ORDER BY number", (order_id,))
            return [{"what": line["what"], "amount": _money(line["cents"]), "reason": line["reason"]} for line in lines]

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.file, timeout=10.0, isolation_level=None)
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA foreign_keys = ON")
        return database

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside happens, or nothing of it; writers take turns from the first statement on."""
        with contextlib.closing(self._connect()) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")


def _row(database: sqlite3.Connection, order_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = database.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone()
    if row is None:
        raise OrderError(f"there is no order {order_id}")
    return row


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "order_id": row["id"],
        "customer": row["customer"],
        "item": row["item"],
        "paid": _money(row["paid"]),
        "refunded": _money(row["refunded"]),
        "status": row["status"],
    }


def _remember(database: sqlite3.Connection, order_id: str, what: str, cents: int, reason: str) -> None:
    line = (order_id, what, cents, reason)
    database.execute("INSERT INTO history (order_id, what, cents, reason) VALUES (?, ?, ?, ?)", line)


def _cents(amount: Decimal) -> int:
    """Whole cents. Raises OrderError for parts of one, for nothing, and for what is no amount."""
    if not amount.is_finite() or amount <= 0 or amount != amount.quantize(Decimal("0.01")):
        raise OrderError(f"{amount} is not an amount: it must be above zero, with at most two decimals")
    return int(amount * 100)


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
