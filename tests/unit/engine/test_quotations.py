"""Quotations: what is one, where it is, and whether it is quoted as its source has it."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, Score
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import QuotedText
from groundwire.engine.schema.results import SentenceVerdict, Verdict
from groundwire.engine.text import quotations
from groundwire.engine.text.matching import MAX_PLACES, SourceWords, read_quotation, squeeze
from groundwire.engine.text.quotations import find_quotations
from groundwire.engine.verdict.score import mark_spans
from groundwire.evaluate.quotations import make_quotations
from groundwire.runtime.fake import FakeRuntime
from tests.support.verdicts import bind

ART = (
    "# Lending\nThe museum lends 300 works a year to schools. Curator Hanne Vik wrote: “We lend 300 works a year, "
    "and none was ever lost.” The bar closes at one."
)
BUDGET = (
    "# Budget\nThe fund is nearly empty after the flood of 2019. “We cannot buy a single painting this year,” said Ole "
    "Dahl, the treasurer."
)
CALL = (
    "Anna: The room is booked for Friday at nine.\nBen: I will bring the slides and the coffee.\n"
    "Anna: Be early, please."
)
COUNCIL = (
    "Council minutes, 14 May. Mayor Ines Coll: “We will not raise the parking fee before 2027.” Councillor Tom Reed: "
    "“The library must stay open on Sundays.” The motion was carried. The fee had been raised in 2019, after a long "
    "dispute."
)
MATCH = (
    "“We stopped running,” said Rovers manager Pat Connolly. “You cannot defend a lead sitting down.” Athletic’s "
    "captain Joao Prates was calm. “They did not stop,” he said.\nThe shop owner, Marco Bellini, watched. “I was "
    "cold,” he said. His sister was ill. “I was in bed all day,” said Ines Bellini."
)
MAILS = (
    "From: Dana Whitfield\nSubject: Vans\nPlease move the vans before seven.\n\nFrom: Yusuf Ali\nSubject: Re: Vans\n"
    "The render is still wet on Monday.\n\nFrom: Dana Whitfield\nThen I pay for every extra day."
)
CHAT = (
    "[09:12] priya: the rollback is finished\n[09:14] tomasz: who merged it without a review?\n[09:15] lin: that was me"
)
PODCAST = (
    "HOST: What does one eat?\nGUEST: I know the shelf life of everything.\nHOST: And the wind?\nGUEST: It was loud."
)
INTERVIEW = "Interview with chef Amara Obi\nQ: What do you never cook?\nA: I never cook veal, and I do not miss it."
REPLY = (
    "From: Karl Mohr\nTo: Eva Lind\n\nThe client has not paid yet.\n\nOn 3 May, Eva Lind <eva@x.example> wrote:\n"
    "> The printer is broken again.\n"
)
STARS = "★★☆☆☆ by hoverfan88\nThe battery dies at once.\n★★★★★ by maria_t\nThe battery lasts for ever."
LETTERS = (
    "Letter from Clara to Emil\nThe roof leaks over the piano.\n",
    "Letter from Emil to Clara\nA bucket is no remedy at all.\n",
    "Our guest\nPer Solberg kept the light.",
)
ASKED = "I asked for a quiet room at the back of the house."


def score(response: str, *knowledge: str, history: tuple[str, ...] = ()) -> Score:
    with Engine(FakeRuntime({})) as engine:
        return engine.score(response, knowledge or (ART, BUDGET, CALL), history=history, metrics=["quotations"])


def check(response: str) -> QuotedText:
    (quotation,) = score(response, history=(ASKED,)).quotations
    return quotation


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("“We lend 300 works.”", ["We lend 300 works."]),
        ('He says "we lend 300 works".', ["we lend 300 works"]),
        ("‘We don’t lend works’, she said.", ["We don’t lend works"]),
        ("He said, 'We don't lend works.'", ["We don't lend works."]),
        ("«Nous prêtons des œuvres»", ["Nous prêtons des œuvres"]),
        ("> We lend works.\n> All year.\n> — Hanne Vik", ["We lend works.\n> All year."]),
        ("“First paragraph of it.\n\n“And the second one.”", ["First paragraph of it.", "And the second one."]),
        ("He went on to say “it is nearly empty”.", ["it is nearly empty"]),
        ("It guarantees “refunds within 90 days”.", ["refunds within 90 days"]),
        # No quotations:
        ("The “small fund” is “gone”.", []),
        ('The song "All you need is love" ran.', []),
        ('We saw "The Little House of Art".', []),
        ("He came to see “A Walk along the Coast”.", []),
        ("Here's a draft:\n\n> We lend 300 works.", []),
        ("`say “we lend 300 works”`", []),
        ('{"a key of it": "a value of it"}', []),
        ('name="three words here"', []),
        ('You can say "I would like a table".', []),
        ('It does not say "no pets are allowed".', []),
        ('Vik denied saying "no pets are allowed".', []),
        ("It is not “the end of it all”.", []),
        ('It means "to be free of debt".', []),
        ("A 24\" screen and a 27\" one, 5'10\" tall, in the '90s and the '80s.", []),
        ("the artists' works and the schools' rooms", []),
    ],
)
def test_quotations_are_found_and_other_marks_are_not(text: str, quoted: list[str]) -> None:
    assert [text[item.start : item.end] for item in find_quotations(text)] == quoted


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Vik wrote: “We lend 300 works.”", "Vik"),
        ("According to the manual, “we lend 300 works”.", "the manual"),
        ("“We lend 300 works,” said Anna Berg, the owner.", "Anna Berg"),
        ("“We lend 300 works” (source: Lease, section 4).", "Lease"),
        ("As the landlord put it, “heating is included”.", "the landlord"),
        ("“We lend 300 works,” it says.", ""),
        ("The document states: “We lend 300 works.”", ""),
        ("> We lend 300 works.\n> — Hanne Vik, curator", "Hanne Vik"),
        ("> “We lend 300 works.” – Hanne Vik", "Hanne Vik"),
        ("About the rule for changes she said: “We did not follow it.”", ""),
        ("First in the poll is “we lend 300 works”.", ""),
        ("Her words were read out. Mrs. Doyle was blunt: “We lend 300 works.”", "Doyle"),
        ("On loans the curator is clear: “We lend 300 works.”", "the curator"),
        ("Vik’s answer was short: “We lend 300 works.”", "Vik"),
        ("The people in Holmen said “we lend 300 works”.", "The people in Holmen"),
        ("hoverfan88 says “we lend 300 works”.", "hoverfan88"),
        ("“We lend 300 works.” Ole Dahl disagreed: he wrote nothing.", ""),
        ("“We lend 300 works.” Ole Dahl said.", "Ole Dahl"),
    ],
)
def test_the_speaker_is_named_before_or_after(text: str, speaker: str) -> None:
    assert [item.speaker for item in find_quotations(text)] == [speaker]


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("Vik says “we lend 300 works” and “none was ever lost”.", "Vik"),
        ("Vik says “we lend 300 works”[2], and adds that “none was ever lost”.", "Vik"),
        ("“We lend 300 works,” said Vik. “None was ever lost.”", "Vik"),
        ("“We lend 300 works,” said Vik. She adds: “None was ever lost.”", "Vik"),
        ("Vik says “we lend 300 works”. Ole Dahl smiled. He says: “None was ever lost.”", "Ole Dahl"),
        ("Vik says “we lend 300 works”; Ole Dahl says “none was ever lost”.", "Ole Dahl"),
        ("Vik says “we lend 300 works”. The other one is old: “None was ever lost.”", ""),
        ("Vik says “we lend 300 works”.\n\n“None was ever lost.”", ""),
    ],
)
def test_the_speaker_goes_on_to_the_next_quotation(text: str, second: str) -> None:
    assert [item.speaker for item in find_quotations(text)] == ["Vik", second]


@pytest.mark.parametrize(
    ("response", "outcomes"),
    [
        # An ellipsis joins words of one speech.
        ("Coll said “We will not … before 2027.”", ["normalized"]),
        ("Coll said “We will not raise the fee … stay open on Sundays.”", ["stitched"]),
        ("Coll said “We will not raise … the library must stay open.”", ["stitched"]),
        ("Coll said “We will not … after a long dispute.”", ["stitched"]),
        ("Coll said “raise the parking fee before 2027. The library must stay open.”", ["stitched"]),
        ("Dana wrote “Please move the vans … I pay for every extra day.”", ["stitched"]),
        ("Connolly said “We stopped running … You cannot defend a lead.”", ["normalized"]),
        ("Coll said “We will not raise the parking fee [at all] before 2027.”", ["normalized"]),
        ("Coll said “We will not raise the parking [charge].”", ["normalized"]),
        # Another speaker.
        ("Mayor Reed said “We will not raise the parking fee before 2027.”", ["misattributed"]),
        ("Ines Reed said “We will not raise the parking fee before 2027.”", ["misattributed"]),
        ("Mayor Coll said “We will not raise the parking fee before 2027.”", ["exact"]),
        ("The library director wrote: “The library must stay open on Sundays.”", ["exact"]),  # it may be Reed
        ("The mayor wrote: “The library must stay open on Sundays.”", ["misattributed"]),
        ("A local woman said “I was in bed all day.”", ["exact"]),
        ("Rovers’ coach said “We stopped running.”", ["exact"]),
        ("Coll says “We will not raise the parking fee” and “the library must stay open”.", ["exact", "misattributed"]),
        (
            "Coll says “We will not raise the parking fee”. Reed says “the library must stay open”.",
            ["exact", "normalized"],
        ),
        ("Captain Connolly said “They did not stop.”", ["misattributed"]),
        ("Prates said “They did not stop.”", ["exact"]),
        ("The other side answered “They did not stop.”", ["exact"]),
        ("Marco Bellini said “I was in bed all day.”", ["misattributed"]),
        ("Dana Whitfield wrote “The render is still wet on Monday.”", ["misattributed"]),
        ("Yusuf wrote “The render is still wet on Monday.”", ["exact"]),
        ("Obi says “I never cook veal.”", ["exact"]),
        ("Obi asks “What do you never cook?”", ["misattributed"]),
        ("The interviewer says “I never cook veal.”", ["misattributed"]),
        ("Karl wrote “The printer is broken again.”", ["misattributed"]),
        ("Lind wrote “The printer is broken again.”", ["exact"]),
        ("hoverfan88 writes “The battery lasts for ever.”", ["misattributed"]),
        ("maria_t writes “The battery lasts for ever.”", ["exact"]),
        ("Priya asked “who merged it without a review?”", ["misattributed"]),
        ("Tomasz asked “who merged it without a review?”", ["exact"]),
        ("Per Solberg says “I know the shelf life of everything.”", ["exact"]),
        ("The host says “I know the shelf life of everything.”", ["misattributed"]),
        (
            "Clara writes that “the roof leaks over the piano”. Her brother answers: “A bucket is no remedy.”",
            ["normalized", "exact"],
        ),
        ("Clara wrote “A bucket is no remedy.”", ["misattributed"]),
    ],
)
def test_words_are_those_of_one_speaker_in_one_place(response: str, outcomes: list[str]) -> None:
    quoted = score(response, COUNCIL, MATCH, MAILS, CHAT, PODCAST, INTERVIEW, REPLY, STARS, *LETTERS).quotations
    assert [quotation.outcome for quotation in quoted] == outcomes


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("Vik says “We lend 300 works a year, and none was ever lost.”", "exact"),
        ('Vik says "We lend 300 works a year, and none was ever lost!"', "exact"),
        ("Vik says “we lend 300 works a year”.", "normalized"),
        ("Vik says “We lend 300 works … none was ever lost.”", "normalized"),
        ("Vik says “[The museum] lends … works a year to schools”.", "normalized"),
        ("It says “The … lends 300 works a year.”", "normalized"),
        ("Vik says “We lend 400 works a year, and none was ever lost.”", "altered"),
        ("It says “The museum lends 300 works to schools.”", "altered"),
        ("It says “We can buy a single painting this year.”", "altered"),
        ("“We lend 300 works a year, and we cannot buy a single painting this year,” it says.", "stitched"),
        ("“None was ever lost … we lend 300 works a year,” it says.", "stitched"),
        ("Ole Dahl said “We lend 300 works a year, and none was ever lost.”", "misattributed"),
        ("“We cannot buy a single painting this year” [1].", "misattributed"),
        ("“We cannot buy a single painting this year” [2].", "exact"),
        ("“We cannot buy a single painting this year” [1][2].", "exact"),
        ("Ben said “The room is booked for Friday at nine.”", "misattributed"),
        ("Anna said “The room is booked for Friday at nine.”", "exact"),
        ("The treasurer said “We cannot buy a single painting this year.”", "exact"),
        ("You asked for “a quiet room at the back”.", "exact"),
        ("Vik says “The lending of art is my favourite task.”", "absent"),
        ("It costs “€300 works a year, and none was ever lost”.", "altered"),
    ],
)
def test_a_quotation_has_an_outcome(response: str, outcome: str) -> None:
    assert check(response).outcome == outcome


def test_what_was_changed_is_marked_with_what_the_source_has() -> None:
    response = "Vik says “We lend 400 works a year, and never was ever lost.”"
    quotation = check(response)
    assert [(part.text, part.knowledge_says) for part in quotation.changed] == [("400", "300"), ("never", "none")]
    for part in (*quotation.parts, *quotation.changed):
        assert part.evidence is not None
        assert response[part.start : part.end] == part.text
        assert (ART, BUDGET, CALL)[part.evidence.passage][
            part.evidence.start : part.evidence.end
        ] == part.knowledge_says
    (change,) = (
        score("Coll: “We will not raise the parking fee before two thousand thirty.”", COUNCIL).quotations[0].changed
    )
    assert (change.text, change.knowledge_says) == ("two thousand thirty", "2027")  # not what another speaker says
    omission = check("It says “The museum lends 300 works to schools.”")
    assert [(part.text, part.knowledge_says) for part in omission.changed] == [("", "a year")]


@pytest.mark.parametrize(
    ("response", "added"),
    [
        ("It says “the green bar closes at one”.", "the green"),
        ("It says “bar closes at one with them”.", "with them"),
    ],
)
@pytest.mark.parametrize("after", [(), ("With no cats.",)])
def test_words_before_or_after_a_passage_are_not_compared_with_another_passage(
    response: str, added: str, after: tuple[str, ...]
) -> None:
    (quotation,) = score(response, "The lions sleep all of the", "bar closes at one", *after).quotations
    (change,) = quotation.changed
    assert (change.text, change.knowledge_says, change.evidence) == (added, "", None)


def test_a_result_has_the_share_of_faithful_quotations_and_the_words_that_are_not_supported() -> None:
    response = "It says “the museum lends 300 works a year”, “we lend 400 works a year” and “art is for all of us”."
    result = score(response)
    metric = result.metrics["quotations"]
    assert metric.value == pytest.approx(1 / 3)
    assert [(span.text, span.reason) for span in metric.unsupported] == [
        ("400", "mismatch"),
        ("art is for all of us", "absent_quotation"),
    ]
    assert Score.from_json(result.to_json()) == result


def test_words_of_the_history_have_their_turn() -> None:
    (part,) = check("You asked for “a quiet room at the back”.").parts
    assert (part.turn, part.evidence, part.knowledge_says) == (0, None, "a quiet room at the back")


def test_a_quotation_may_go_from_one_passage_to_the_next() -> None:
    (quotation,) = score(
        "It says “the bar closes at one and opens at noon”.", "The bar closes at one", "and opens at noon."
    ).quotations
    assert quotation.outcome == "normalized"


def test_a_term_is_a_quotation_only_if_the_knowledge_has_it() -> None:
    response = "Their “pay what you want” days are popular."
    assert score(response).metrics["quotations"].status == "nothing_to_verify"
    (quotation,) = score(response, "On Mondays you pay what you want.").quotations
    assert quotation.outcome == "exact"


@pytest.mark.parametrize("response", ["Nothing is quoted.", "“”", '"', "> ", "“one two”"])
def test_a_response_without_quotations_has_nothing_to_verify(response: str) -> None:
    result = score(response)
    assert (result.status, result.value, result.quotations) == ("nothing_to_verify", None, ())


def test_ranges_are_those_of_the_original_texts() -> None:
    response, knowledge = "It says “we lend <b>&#51;00</b> works”.", "Indeed <i>we</i> lend &#51;00 works."
    (quotation,) = score(response, knowledge).quotations
    assert response[quotation.start : quotation.end] == quotation.text == "we lend <b>&#51;00</b> works"
    (part,) = quotation.parts
    assert part.evidence is not None
    assert part.knowledge_says == knowledge[part.evidence.start : part.evidence.end] == "we</i> lend &#51;00 works"


def test_made_quotations_are_read_as_they_were_made() -> None:
    texts = [
        f"The {name} has {number} rooms and a garden with {number + 3} old trees, which people like. It was built in "
        f"18{number} by the {name} family, who sold it after nine years to the town."
        for number, name in enumerate(("Larch", "Elm", "Birch", "Alder", "Rowan", "Aspen"), 21)
    ]
    made = make_quotations(texts, 70)
    assert made == make_quotations(texts, 70)
    assert made != make_quotations(texts, 70, seed=14)
    assert {item.outcome for item in made} == {
        *("exact", "normalized", "altered", "stitched", "misattributed", "absent"),
        None,
    }
    for item in made:
        assert item.text in item.response
    with pytest.raises(InvalidRequest, match="1 of 2 texts have two sentences"):
        make_quotations([texts[0], "Short."], 1)


WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40)


@given(WORDS, WORDS, WORDS)
def test_words_that_are_in_a_text_are_found_whole(before: list[str], quoted: list[str], after: list[str]) -> None:
    """The reference: a search for the words themselves, where no pair of words is too frequent."""
    text = " ".join((*before, *quoted, *after))
    words = read_quotation(" ".join(quoted), 0, len(" ".join(quoted)))
    source = SourceWords(["other text", text], [words])
    assert len(list(source.read())) == 0
    if len(quoted) < 2 or any(text.count(f"{a} {b}") > MAX_PLACES for a, b in itertools.pairwise(quoted)):
        return
    (piece,) = source.find(words)
    assert (piece.start, piece.end, piece.changes) == (0, len(quoted), ())
    where, start, end = source.locate(piece.first, piece.last)
    assert (where, text[start:end]) == (1, " ".join(quoted))


def test_a_signature_is_looked_for_in_the_last_line_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters: each quotation mark before it may begin a signature that ends with the line."""
    searched: list[int] = []

    class Counted:
        @staticmethod
        def search(text: str, start: int) -> None:
            searched.append(len(text) - start)

    monkeypatch.setattr(quotations, "_BLOCK_SIGNATURE", Counted)
    find_quotations("> three words here " + '"-' * 1_000 + "\n> x")
    assert searched == [len("\n> x")]


def test_the_first_quotations_are_read_of_each_kind() -> None:
    text = "> We lend 300 works.\n\n“The bar is open.” “The bar is closed.”\n\n> We lend no works.\n"
    assert [text[item.start : item.end] for item in find_quotations(text, 1)] == [
        "We lend 300 works.",
        "The bar is open.",
    ]


@given(st.text(alphabet="ab .,“”\"'‘’>[]…\n-", max_size=80), st.text(alphabet="ab .,“”\"'[]…\n-", max_size=80))
def test_odd_texts_are_read(response: str, knowledge: str) -> None:
    for item in score(f"a {response}", f"b {knowledge}").quotations:
        assert 0 <= item.start < item.end <= len(response) + 2


def test_the_work_grows_with_the_lengths_and_not_with_their_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of following a quotation, of texts that repeat themselves."""
    steps = 0
    follow = SourceWords._follow

    def count(self: SourceWords, *arguments: object) -> tuple[int, int, int, list[tuple[int, int, int, int]]]:
        nonlocal steps
        result = follow(self, *arguments)  # type: ignore[arg-type]
        steps += abs(result[0] - arguments[1]) + 1  # type: ignore[operator]
        return result

    monkeypatch.setattr(SourceWords, "_follow", count)
    counted = []
    for size in (400, 800):
        draw = random.Random(5)
        sentence = " ".join(draw.choices("abcdefghij", k=20))
        steps = 0
        score(f"It says: “{' '.join([sentence] * (size // 20))}.”", " ".join([sentence] * (2 * size // 20)))
        counted.append(steps)
    assert 0 < counted[1] <= 2.5 * counted[0]


def test_marks_and_dashes_of_other_kinds_are_the_same() -> None:
    assert squeeze("the “old” house –\n> and  more…") == squeeze('the "old" house - and more...')


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("Coll said: “We will … raise the parking fee before 2027.”", "altered"),
        ("Coll said: “… raise the parking fee before 2027.”", "altered"),
        ("Coll said: “[They will] raise the parking fee before 2027.”", "altered"),
        ("Coll said: “We will [definitely] raise the parking fee before 2027.”", "altered"),
        ("Coll said: “We will not raise … before 2027.”", "normalized"),
    ],
)
def test_an_ellipsis_that_leaves_out_a_negation_alters(response: str, outcome: str) -> None:
    knowledge = "Mayor Ines Coll: “We will not raise the parking fee before 2027.”"
    (quotation,) = score(response, knowledge).quotations
    assert quotation.outcome == outcome
    says = [part.knowledge_says.split()[0] for part in quotation.changed]
    assert says == (["not"] if outcome == "altered" else [])


@pytest.mark.parametrize(
    ("source", "response", "outcome"),
    [
        ("We will in no way refund tickets.", "We will … refund tickets.", "altered"),
        ("I doubt that the show will be repeated.", "… the show will be repeated.", "altered"),
        ("We refuse to pay for parking.", "We … pay for parking.", "altered"),
        ("Nothing of it was shown to us.", "[All] of it was shown to us.", "altered"),
        ("It was late, not early, and we fired Ann.", "… we fired Ann.", "normalized"),
        ("The notice went to the wrong ship.", "The notice went to … ship.", "normalized"),
    ],
)
def test_denials_are_read_in_the_clause_that_is_cut(source: str, response: str, outcome: str) -> None:
    (quotation,) = score(f"The manager said: “{response}”", f"The manager said: “{source}”").quotations
    assert quotation.outcome == outcome


@pytest.mark.parametrize(
    ("response", "reason", "says"),
    [
        ("Coll said “We will not raise … the library must stay open.”", "stitched_quotation", ""),
        ("Reed said “We will not raise the parking fee before 2027.”", "misattributed_quotation", "Mayor Ines Coll"),
        ("Coll said “The weather has been very kind to us.”", "absent_quotation", ""),
    ],
)
@pytest.mark.parametrize("label", ["consistent", "inconsistent"])
def test_a_wrong_quotation_is_marked_whatever_the_verdict_says(
    response: str, reason: str, says: str, label: str
) -> None:
    result = score(response, COUNCIL).metrics["quotations"]
    request = ReadRequest(response, (COUNCIL,))
    decided = SentenceVerdict(response, 0, len(response), Verdict(label))  # type: ignore[arg-type]
    (span,) = mark_spans(request, bind([result]), [decided])
    (quotation,) = find_quotations(response)
    assert (span.start, span.end, span.reason, span.knowledge_says) == (quotation.start, quotation.end, reason, says)
    assert (span.severity, span.metrics) == ("high", ("quotations",))


CONTRACTED = (
    "Tom Wexley said: “We will not raise the fee. I do not think it's fair, and we cannot pay more. They are not going "
    "to stop.” Rosa Lind said: “I won't sell the farm. We don't owe anyone, it isn't ours. I've never lied.”"
)


@pytest.mark.parametrize(
    ("quoted", "outcome"),
    [
        ("Tom said: “We won’t raise the fee.”", "normalized"),
        ("Tom said: “I don’t think it is fair.”", "normalized"),
        ("Tom said: “They aren’t going to stop.”", "normalized"),
        ("Tom said: “They’re not going to stop.”", "normalized"),
        ("Tom said: “We can’t pay more.”", "normalized"),
        ("Rosa said: “I will not sell the farm.”", "normalized"),
        ("Rosa said: “We do not owe anyone, it is not ours.”", "normalized"),
        ("Rosa said: “I have never lied.”", "normalized"),
        ("Tom said: “We will raise the fee.”", "altered"),
        ("Tom said: “We don’t raise the fee.”", "altered"),
        ("Rosa said: “I will sell the farm.”", "altered"),
        ("Rosa said: “I wouldn’t sell the farm.”", "altered"),
        ("Rosa said: “We owe anyone, it is not ours.”", "altered"),
    ],
)
def test_a_short_form_is_its_words(quoted: str, outcome: str) -> None:
    (quotation,) = score(quoted, CONTRACTED).quotations
    assert quotation.outcome == outcome


SHOP = (
    "Owner Edda Lorne said: “I never wanted a chain.” Her brother, Magnus Lorne, who keeps the books, "
    "disagrees: “A second shop would pay for itself within eighteen months.”"
)
FERRY = (
    "Anna Roth runs the ferry. “I cross the bay nine times a day,” she said. Her husband, Milo Roth, repairs the "
    "engine: “The pump is older than I am.”"
)


@pytest.mark.parametrize(
    ("knowledge", "quoted", "is_other"),
    [
        (SHOP, "Her brother says “I never wanted a chain”.", True),
        (SHOP, "Edda’s brother says “I never wanted a chain”.", True),
        (SHOP, "Her brother says “a second shop would pay for itself”.", False),
        (SHOP, "The owner’s brother believes “a second shop would pay for itself”.", False),
        (SHOP, "Her sister says “I never wanted a chain”.", False),
        (FERRY, "Her husband said “I cross the bay nine times a day”.", True),
        (FERRY, "Her husband said “The pump is older than I am.”", False),
        (FERRY, "Her partner said “The pump is older than I am.”", False),
        (FERRY, "Anna Roth says “The pump is older than I am.”", True),
    ],
)
def test_a_relative_is_known_by_name(knowledge: str, quoted: str, is_other: bool) -> None:
    (quotation,) = score(quoted, knowledge).quotations
    assert (quotation.outcome == "misattributed") == is_other
