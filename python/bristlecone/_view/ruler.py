"""Widths of texts before they are drawn, and texts in lines that fit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from bristlecone._data.texts import number, printable, round_numbers

# Distance between the bases of two lines, as a share of the font size.
LEADING = 1.28
# Characters of a user's text: no picture has room for more.
_LONGEST = 160
_SIGNS = {"<=", ">=", "<", ">", "=", "!="}
# Advance of characters, in units of the font size; wide enough for every font asked for.
_NARROW, _USUAL, _CAPITAL, _WIDE = 0.4, 0.65, 0.78, 1.05
_BOLD = 1.06
# Least space between two texts.
_GAP = 0.8
# Parts of a word between which it may be broken: numbers are whole.
_PARTS = re.compile(
    r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?=\s|$)"
    r"|[^_\-./:\s]*\s+|[^_\-./:\s]*[_\-./:]+\s*|[^_\-./:\s]+"
)


class Ruler:
    """Widths of texts whose font is not known, in units of the font size."""

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """Width of one line, with a little to spare."""
        return size * (_BOLD if bold else 1.0) * sum(map(_advance, text))

    def widest(self, texts: Iterable[str], size: float, *, bold: bool = False) -> float:
        """Width of the widest of several lines."""
        return max((self.width(text, size, bold=bold) for text in texts), default=0.0)

    def ticks(
        self, low: float, high: float, width: float, size: float, most: int = 6
    ) -> list[float]:
        """Round numbers from ``low`` to ``high`` whose texts fit side by side on this width."""
        ticks = round_numbers(low, high, most)
        while len(ticks) > 2 and most > 1:
            text = self.widest(map(number, ticks), size)
            if text + _GAP * size <= width * (ticks[1] - ticks[0]) / (high - low):
                break
            most -= 1
            ticks = round_numbers(low, high, most)
        return ticks

    def wrap(
        self, text: str, width: float, size: float, *, bold: bool = False, most: int = 0
    ) -> list[str]:
        """Lines of at most this width: broken between words, a bound beside its sign.

        Words that are too long are broken after marks such as "_", or where they must be. What is
        joined by no-break spaces stays together, if it can. With ``most`` lines, what does not fit
        is left out in the middle.
        """
        text = printable(text).strip()
        # No line holds more characters, however narrow they are.
        kept = most * (2 + int(max(width, 0.0) / self.width("i", size))) if most else len(text)
        lines = self._lines(shortened(text, kept), width, size, bold)
        kept = min(kept, len(text))
        while most and len(lines) > most and kept > 1:
            kept -= max(1, sum(map(len, lines[most:])) // 2)
            lines = self._lines(shortened(text, kept), width, size, bold)
        return lines

    def _lines(self, text: str, width: float, size: float, bold: bool) -> list[str]:
        lines = [""]
        for word in _words(text):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if self.width(joined, size, bold=bold) <= width:
                lines[-1] = joined
                continue
            if not lines[-1]:
                lines.pop()
            lines += self._broken(word, width, size, bold)
        return [line.replace("\xa0", " ") for line in lines]

    def _broken(self, word: str, width: float, size: float, bold: bool) -> list[str]:
        parts = _PARTS.findall(word) or [word]
        lines = [""]
        for part in parts:
            if self.width((lines[-1] + part).rstrip(), size, bold=bold) <= width:
                lines[-1] += part
                continue
            if lines[-1]:
                lines.append("")
            for letter in part:
                longer = lines[-1] + letter
                if lines[-1] and self.width(longer, size, bold=bold) > width:
                    lines.append(letter)
                else:
                    lines[-1] = longer
        return [line.strip() for line in lines if line.strip()]

    def cut(self, text: str, width: float, size: float, *, bold: bool = False) -> str:
        """The text, or as much of it as fits, with an ellipsis."""
        text = printable(text)
        if len(text) <= _LONGEST and self.width(text, size, bold=bold) <= width:
            return text
        kept = min(len(text), _LONGEST)
        while kept > 1 and self.width(f"{text[:kept]}…", size, bold=bold) > width:
            kept -= 1
        return f"{text[:kept].rstrip()}…"


def shortened(text: str, most: int = _LONGEST) -> str:
    """A user's text without the middle of what is too long to be drawn.

    Names of columns differ at their beginning, and conditions stand at the end.
    """
    if len(text) <= most:
        return text
    end = most // 2
    return f"{text[: most - end].rstrip()}…{text[len(text) - end :].lstrip()}"


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in re.split(r"[^\S\xa0]+", text):
        if words and words[-1] in _SIGNS:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _advance(character: str) -> float:
    if character in "iljtfrI.,:;'|![]() \xa0":
        return _NARROW
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW@%…":
        return _WIDE
    return _CAPITAL if character.isupper() else _USUAL
