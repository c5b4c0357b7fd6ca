"""Documents that language models wrote for training: knowledge, and answers with two wordings of each slot."""

from .documents import Document, WordingSlot, WrittenAnswer, read_documents
from .pairs import WrittenPair, WrittenPairs, WrittenRow, WrittenSpan
from .rows import write_labelled_rows

__all__ = [
    "Document",
    "WordingSlot",
    "WrittenAnswer",
    "WrittenPair",
    "WrittenPairs",
    "WrittenRow",
    "WrittenSpan",
    "read_documents",
    "write_labelled_rows",
]
