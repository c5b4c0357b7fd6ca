"""What came of a call that changes something is read of its result."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine import ToolCall
from groundwire.turns.actions import find_outcome


@pytest.mark.parametrize(
    ("name", "result", "outcome"),
    [
        ("book_table", {"status": "confirmed", "ref": "TR-1"}, "succeeded"),
        ("book_table", {"status": "rejected"}, "failed"),
        ("book_table", {"state": "Declined"}, "failed"),
        ("book_table", {"status": "waitlisted"}, "pending"),
        ("book_table", {"booked": False}, "failed"),
        ("book_table", {"confirmed": False, "reason": "full"}, "failed"),
        ("book_table", {"booked": True, "deposit_paid": False}, "succeeded"),
        ("book_table", "Error: no table left", "failed"),
        ("cancel_order", {"status": "cancelled"}, "succeeded"),
        ("cancel_order", {"cancelled": False}, "failed"),
        ("reject_offer", {"state": "rejected"}, "succeeded"),
        ("queue_song", {"status": "queued"}, "succeeded"),
        ("book_table", None, "pending"),
    ],
)
def test_the_outcome_of_a_call(name: str, result: Any, outcome: str) -> None:
    assert find_outcome(ToolCall(name=name, result=result)) == outcome


def test_a_status_counts_more_than_the_result() -> None:
    assert find_outcome(ToolCall(name="book", result={"status": "rejected"}, status="succeeded")) == "succeeded"
