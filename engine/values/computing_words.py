"""Words that say that a number is computed, and how: "altogether", "less", "each", "twice", "the rest"."""

from __future__ import annotations

from collections.abc import Set

from .records import Content, Measure
from .tokens import read_table
from .units import MONEY

TOTALS = frozenset(
    read_table("""
    total totals totalling totaling altogether together combined sum overall plus both all including include includes
    adds add extra pay pays paid spend spends whole
""")
)
DIFFERENCES = frozenset(
    read_table("""
    difference differ more less fewer longer shorter cheaper higher lower older younger bigger smaller heavier later
    earlier left remain remains remaining rest save saves saving off discount minus without change gap apart refund
    lighter dearer deeper wider narrower taller thicker thinner faster slower warmer colder closer farther further
    below above short others except reduced down saved increase increased decrease decreased rise rose add adds added
    comes hotter cooler span range
""")
)
SHARE_DIFFERENCES = frozenset(
    read_table("""
    difference differ differs more less fewer higher lower bigger smaller larger greater cheaper dearer further extra
    additional gap apart minus points point up down rise rises rose risen rising fall falls fell fallen falling grow
    grows grew grown gain gains gained drop drops dropped increase increases increased decrease decreases decreased
    reduced cut cuts climbed declined lost remain remains remaining remainder rest left exceeds
""")
)
"""Words that speak of the difference between two percentages. "20% off" does not."""
BOUNDS = frozenset({"more", "less", "fewer", "up"})
"""Differences that are words of limits too: "orders of more than £50"."""
SHARES = frozenset(read_table("each per apiece every half split share shared divided person"))
AVERAGES = frozenset(read_table("average averages mean typical typically"))
FACTORS = {"twice": 2.0, "double": 2.0, "doubles": 2.0, "triple": 3.0, "half": 0.5, "quarter": 0.25, "both": 2.0}
"""Words that multiply."""
CHANGES = {"doubled": 2.0, "doubling": 2.0, "tripled": 3.0, "halved": 0.5}
"""Words that say how an amount has changed, so that it may be the amount before or after."""
RESTS = frozenset({"rest", "remaining", "remainder", "others"})
"""Words of the knowledge that leave an amount to be computed: "95 on the balcony, the rest in the stalls"."""
SERVINGS = frozenset(read_table("serves serving servings portion portions people persons person recipe makes yields"))
"""Words of the knowledge with which its amounts are for a number of people or portions."""
COMPUTING = (TOTALS | DIFFERENCES | SHARES | AVERAGES | FACTORS.keys()) - {"every", "per", "each", "all"}
"""Words that name a computation; not "every" and "each", which name rates: "every 20 minutes"."""
_OF_MONEY = frozenset({"pay", "pays", "paid", "spend", "spends", "cheaper", "dearer", "discount", "refund"})
"""Words that name computations of amounts of money alone."""
_OF_REDUCTIONS = frozenset({"off", "discount", "refund", "save", "saves", "saving", "saved"})
"""Words that say what a percentage is of, and of an amount how it is computed: "20% off" and "£20 off"."""
NAMED_FACTORS = {**FACTORS, **CHANGES, "quarters": 0.75, "thirds": 2 / 3, "year": 12.0, "yearly": 12.0, "annual": 12.0}
"""Words that may multiply a number where nothing more is said."""
PASSING = frozenset(
    read_table("""
    arrive arrives arriving arrival end ends ending finish finishes later earlier after before lasts takes back ready
    last get gets
""")
)
"""Words with which a time follows from another and a duration."""
AGAIN = frozenset({"again", "open", "opens", "reopen", "reopens", "after", "next", "starts", "resumes"})
"""Words with which a date follows the last day of a period."""


def leave_out_others(content: Content, words: Set[str]) -> Set[str]:
    """The words without words that name computations of other contents: of money alone, or none of percentages."""
    if isinstance(content, Measure) and content.measure == "share":
        return words - _OF_REDUCTIONS
    of_money = isinstance(content, Measure) and content.measure in MONEY
    return words if of_money else words - _OF_MONEY
