"""Writes and reads tables of Markdown, and the numbers in them."""

from __future__ import annotations


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def split_row(line: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def format_ms(value: float) -> str:
    """Return milliseconds as a table shows them: one decimal below 10."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
