"""Text of journals is anybody's, and of any length: a page gets as much of it as a person reads."""

from __future__ import annotations

SENTENCE = 2_000
NAME = 200
RECORD = 200_000


def clipped(text: str, most: int = SENTENCE) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
