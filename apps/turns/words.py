"""Words of actions, numbers and keys, as the rules about turns read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_READS = """
    get list find search check lookup look query read fetch show describe view browse retrieve preview quote estimate
    free busy availability compare calculate convert status track validate verify identify count summarize summary price
    offer see journeys history info details report recommend suggest
"""
_READ_NOUNS = "preview quote estimate history status info details availability"
_GENERIC = """
    done made completed complete success successful confirmed processed executed finished set started arranged through
    saved entered noted stored
"""
_IRREGULAR = (
    "told "  # terms: literal
    "sent set put done shut frozen known written withdrawn made paid held bought built undone let cut complete "
    "successful sorted arranged completed processed executed finished"
)
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_MONTH_NAMES = "january february march april may june july august september october november december"
_PLAIN_WORDS = """
    guest customer client patient passenger traveller caller user person people member holder ask asks asked want wants
    need needs needed request requests requested please kind regards dear hello thanks thank possible according charge
    cause including currently regarding reports report says said states note new their additional issue problem
"""
_OFFERED = "table seat seats room ticket tickets visit tour place list"
_THINGS = (
    "table restaurant; room hotel stay suite; taxi cab ride; car rental vehicle; flight plane; train; bus coach; ferry"
)
_NAME_WORDS = """
    mr mrs ms miss mx dr doctor prof professor sir madam herr frau saint st airport station city town county hotel
    restaurant centre center university school college hospital clinic theatre theater
    branch office shop store department team company ltd inc gmbh the international central main
"""
_STREETS = (
    "street st; road rd; lane ln; "  # terms: literal
    "avenue ave av; drive dr; close cl; court ct; place pl; square sq; crescent cres cr; terrace terr ter; "
    "gardens gdns; grove gr; boulevard blvd; parkway pkwy; highway hwy; way; row; walk; mews; hill; quay; yard; "
    "parade; rise; wharf; alley; circus"
)


def _read_kinds(table: str) -> Mapping[str, frozenset[str]]:
    """The kinds of each word of a table with a kind at the beginning of some lines."""
    kinds: dict[str, set[str]] = {}
    kind = ""
    for line in table.strip().splitlines():
        head, colon, rest = line.partition(": ")
        kind = head if colon else kind
        for word in (rest if colon else line).split():
            kinds.setdefault(word, set()).add(kind)
    return MappingProxyType({word: frozenset(of_word) for word, of_word in kinds.items()})


KIND_OF = _read_kinds(files(__package__).joinpath("actions.txt").read_text(encoding="utf-8"))
"""The kinds of action that a word may name: ``void`` is of the kind of ``cancel_booking``."""
READS = frozenset(_READS.split())
"""First words of tools that change nothing."""
READ_NOUNS = frozenset(_READ_NOUNS.split())
"""Last words of such tools."""
OFFERED = frozenset(_OFFERED.split())
"""Words of kinds of actions that tools may offer without any."""
THINGS: Mapping[str, str] = MappingProxyType(
    {word: group.split()[0] for group in _THINGS.split(";") for word in group.split()}
)
"""What is booked, and the first word of those that name the same."""
GENERIC = frozenset(_GENERIC.split())
"""Words that do not say what was done; the nouns beside them do."""
PARTICIPLES = "|".join(
    sorted(
        {*_IRREGULAR.split(), *(word for word in KIND_OF if word.endswith("ed"))}, key=lambda word: (-len(word), word)
    )
)
"""What an action that was done may be called, as alternatives of a pattern."""
NUMBERS: Mapping[str, float] = MappingProxyType(
    {word: float(number) for number, word in enumerate(_NUMBER_WORDS.split())}
    | {"single": 1, "once": 1, "twice": 2, "both": 2, "couple": 2, "pair": 2, "half": 0.5, "a": 1, "an": 1}
)
"""Numbers in words."""
MONTHS = tuple(_MONTH_NAMES.split())
PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words that the assistant may use although they were not mentioned."""
STREET_KINDS: Mapping[str, str] = MappingProxyType(
    {form: forms.split()[0] for forms in _STREETS.split(";") for form in forms.split()}
)
"""The kind of a street that a word or its abbreviation says."""
NAME_WORDS = frozenset((*_NAME_WORDS.split(), *STREET_KINDS))
"""Words that may be added to a name."""
FREE_KEY = re.compile(
    r"(?:^|_)(?:query|q|search|keywords?|subject|label|tags?|has_words\w*|words\w*|sort\w*|order_by|folder|format|fields?"
    r"|locale|prompt|question|greeting|headline|caption|cron|rrule|regex|pattern|sql|code|command|expression|filter)(?:_|$)"
)
"""Keys whose values the assistant composes."""
PROSE_KEY = re.compile(
    r"(?:^|_)(?:body|message|text|notes?|remarks?|description|reason|comments?|details?|instructions?|summary|content"
    r"|explanation|place|request|wish(?:es)?|special_requests?)(?:_|$)"
)
"""Keys whose values are sentences."""
CHOICE_KEY = re.compile(
    r"(?:^|_)(?:category|genre|\w*type|kind|class|cuisine|level|range|style|mode|priority|intent|plan|tier|size|colou?r"
    r"|status|state|scope|channel|method|unit|period|part_of_day)(?:_|$)|class$"
)
"""Keys of one of a few values, which the assistant chooses by their meaning."""
PROPER_KEY = re.compile(
    r"(?:^|_|[a-z])(?:name|guest|customer|patient|passenger|traveller|city|town|origin|destination|address|airport"
    r"|street|country|e?mail|month|recipient|payee|contact|holder|owner)$",
    re.IGNORECASE,
)
"""Keys of names, which are not composed."""
PLACE_KEY = re.compile(
    r"(?:^|_)(?:city|town|location|place|near|origin|destination|from|to|where|address|area|airport)(?:_|$)"
)
"""Keys of places, which may name a region after a comma."""
TITLE_KEY = re.compile(r"(?:^|_)(?:title|event|topic|occasion|purpose|activity)(?:_|$)")
"""Keys of titles, which the assistant composes around what was said."""
SETTING_KEY = re.compile(
    r"(?:^|_)(?:limit|page|max_results|top_k|top|offset|page_size|per_page|version|count|timeout\w*)(?:_|$)"
)
"""Keys of numbers that the assistant sets."""
PART_KEY = re.compile(r"(?:^|_)(?:day|month|year|hour|minute|week|dates?|time|at|start|end)(?:_|$)")
"""Keys of parts of dates and times of day."""
YEAR_KEY = re.compile(r"(?:^|_)year(?:_|$)")
PEOPLE_KEY = re.compile(
    r"(?:^|_)(?:people|persons?|guests?|party(?:_size)?|adults?|child(?:ren)?|kids|passengers?|travell?ers?|places|seats"
    r"|covers|pax|group_size|attendees|participants|tickets)(?:_|$)"
)
"""Keys of how many there are of people."""
QUANTITY_KEY = re.compile(r"(?:^|_)(?:qty|quantity|count|number|num|copies|pieces|units|nights)(?:_|$)")
"""Keys of how many there are of what a call is for."""
ID_KEY = re.compile(r"(?:^|_)(?:id|ref|reference|number|no|code|order|booking|account|ticket|invoice)(?:_|$)")
"""Keys of what names a record."""
COUNT_KEY = re.compile(r"(?:^|_)(?:number|num|no|count|quantity|qty|rating|stars?|id|tickets|rooms)(?:_|$)")
"""Keys of numbers that no amount of money is given to."""
DURATION_KEY = re.compile(r"(?:^|_)(?:min(?:ute)?s?|sec(?:ond)?s?|durations?|length|timeout|eta|wait)(?:_|$)")
"""Keys of durations."""
