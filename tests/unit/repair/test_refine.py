"""Neural Path Hunter on a small graph, checked by hand; tests/integration/test_nph.py runs the embedded models."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from groundwire.engine import Engine, InvalidRequest, Options, Triple
from groundwire.repair import Critic, CritiqueOptions, KnowledgeGraph, Refinement, RefineOptions, Refiner
from groundwire.repair.nph.context import find_path
from groundwire.runtime.calls import ClassifyTokens, FindSpans, Retrieve, TextSpan
from groundwire.runtime.errors import ModelError, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.triples import SEPARATOR
from tests.support import fakes
from tests.support.graph_world import FACTS, FILMS, critic, world

GRAPH = KnowledgeGraph.from_triples(FILMS)
ALIEN = ("Do you know Alien?",)
PAPER = RefineOptions(veto=False)
ANY_TYPE = RefineOptions(veto=False, type_aware=False)


def run(response: str, history: tuple[str, ...] = ALIEN, graph: KnowledgeGraph = GRAPH, **settings: Any) -> Refinement:
    with Engine(world()) as engine:
        return Refiner(engine).refine(response, graph, history=history, **settings)


def consistent(refinement: Refinement) -> Refinement:
    """Checks what holds for every repair, and hands it back."""
    assert Refinement.from_json(refinement.to_json()) == refinement
    at = new_at = 0
    for change in refinement.changes:
        assert refinement.original[at : change.start] == refinement.response[new_at : change.new_start]
        assert refinement.original[change.start : change.end] == change.old
        assert refinement.response[change.new_start : change.new_end] == change.new
        assert change.triple in GRAPH.triples_between(change.triple.subject, change.triple.object)
        assert change.chosen.entity in GRAPH
        assert change.chosen.entity in (change.triple.subject, change.triple.object)
        assert change.chosen.entity not in [alternative.entity for alternative in change.runners_up]
        at, new_at = change.end, change.new_end
    assert refinement.original[at:] == refinement.response[new_at:]
    if refinement.status != "refined":
        assert (refinement.response, refinement.changes, refinement.after, refinement.accepted) == (
            refinement.original,
            (),
            None,
            None,
        )
    return refinement


@pytest.mark.parametrize(
    ("response", "history", "expected"),
    [
        ("It was directed by James Cameron.", ALIEN, "It was directed by Ridley Scott."),
        ("Alien was directed by James Cameron.", ("Hi!",), "Alien was directed by Ridley Scott."),
        ("It was directed by John Smith. No?", ALIEN, "It was directed by Ridley Scott. No?"),
        ("Alien came out in 1997!", ALIEN, "Alien came out in 1979!"),
        ("Alien came out in 1950!", ALIEN, "Alien came out in 1979!"),
        ("Sure, Alien is a romance.  No?", ALIEN, "Sure, Alien is a science fiction.  No?"),
        ("Alien stars Kate Winslet.", ALIEN, "Alien stars Sigourney Weaver."),
        ("alien came out in 1997", ("do you know alien?",), "alien came out in 1979"),
        ("Gladiator is a romance.", ("Gladiator?",), "Gladiator is an epic."),
    ],
)
def test_wrong_names_are_replaced_by_what_the_graph_has(response: str, history: tuple[str, ...], expected: str) -> None:
    refinement = consistent(run(response, history))
    assert (refinement.response, refinement.status, refinement.accepted) == (expected, "refined", True), (
        refinement.message
    )
    assert refinement.before.hallucinated is True
    assert refinement.after is not None
    assert refinement.after.hallucinated is False
    assert refinement.unresolved == ()


def test_a_change_names_its_triple_its_score_and_the_runners_up() -> None:
    options = RefineOptions(type_aware=False, top=3, veto=False)
    (change,) = run("Alien stars James Cameron.", options=options).changes
    assert (change.old, change.new, change.start, change.end) == ("James Cameron", "Sigourney Weaver", 12, 25)
    assert change.triple == Triple("Alien", "starring", "Sigourney Weaver")
    assert (change.mention.entity, change.mention.probability) == ("James Cameron", pytest.approx(0.9))
    assert (change.chosen.anchor, change.chosen.score) == ("Alien", 8.0)
    assert change.runners_up[0].entity == "John Hurt"
    assert len(change.runners_up) == 2
    shares = [change.chosen.probability, *(alternative.probability for alternative in change.runners_up)]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    "response", ["Alien was directed by Ridley Scott.", "Yes, it is great. I like it!", "Alien came out in 1979."]
)
def test_what_is_right_or_claims_nothing_stays(response: str) -> None:
    refinement = consistent(run(response))
    assert (refinement.status, refinement.before.hallucinated, refinement.unresolved) == ("clean", False, ())


def test_a_swapped_subject_and_object_change_back() -> None:
    refinement = consistent(run("Ridley Scott was directed by Alien.", ("Hi!",)))
    assert refinement.response == "Alien was directed by Ridley Scott."
    assert [(change.old, change.new) for change in refinement.changes] == [
        ("Ridley Scott", "Alien"),
        ("Alien", "Ridley Scott"),
    ]
    assert {change.triple for change in refinement.changes} == {FILMS[0]}
    assert refinement.accepted


def test_a_swap_of_which_one_end_is_flagged_changes_back_too() -> None:
    def half(call: ClassifyTokens) -> Any:
        answer = critic(call)
        if call.text.startswith("Ridley"):  # in this order the critic flags only the second name
            fine = tuple(
                token if token.start > 12 else type(token)(token.start, token.end, (0.9, 0.05, 0.05))
                for token in answer.tokens  # type: ignore[union-attr]
            )
            return type(answer)(answer.labels, fine, answer.read)  # type: ignore[union-attr, call-arg]
        return answer

    with Engine(world(critic=half)) as engine:
        refinement = Refiner(engine).refine("Ridley Scott was directed by Alien.", GRAPH, history=("Hi!",))
    assert consistent(refinement).response == "Alien was directed by Ridley Scott."
    assert refinement.accepted


def test_several_wrong_names_are_filled_together_and_differ() -> None:
    refinement = consistent(
        run("Alien stars James Cameron. Alien stars Kate Winslet.", options=RefineOptions(type_aware=False))
    )
    names = [change.new for change in refinement.changes]
    assert len(names) == 2
    assert set(names) <= {"Sigourney Weaver", "John Hurt"}
    assert len(set(names)) == 2


def test_both_occurrences_of_a_name_get_the_same_entity() -> None:
    refinement = consistent(run("James Cameron directed Alien. Alien was directed by James Cameron."))
    assert refinement.response == "Ridley Scott directed Alien. Alien was directed by Ridley Scott."


def test_no_candidate_reproduces_what_was_flagged() -> None:
    """The critic flags everything; the paper's way never chooses the flagged entity itself."""
    with Engine(world(critic=doubter)) as engine:
        refinement = Refiner(engine).refine(
            "Alien was directed by Ridley Scott.", GRAPH, history=("Alien?",), options=PAPER
        )
    assert consistent(refinement).response != refinement.original


def doubter(call: ClassifyTokens) -> Any:
    """Flags every name."""
    return critic(ClassifyTokens(call.role, ("",), call.text))


def test_what_a_triple_states_is_not_flagged() -> None:
    with Engine(world(critic=doubter)) as engine:
        right, wrong = "Alien was directed by Ridley Scott.", "Alien was directed by James Cameron."
        said = [Critic(engine).critique(text, GRAPH, history=ALIEN) for text in (right, wrong)]
        doubted = Critic(engine).critique(right, GRAPH, history=ALIEN, options=CritiqueOptions(look_up=False))
        assert Refiner(engine).refine(right, GRAPH, history=ALIEN).status == "clean"
    assert [critique.hallucinated for critique in (*said, doubted)] == [False, True, True]


def test_the_other_order_of_names_that_a_triple_states_is_not_preferred() -> None:
    def mistaken(call: ClassifyTokens) -> Any:
        """Takes the exchanged names for right."""
        return doubter(call) if call.text.startswith("Alien") else critic(ClassifyTokens(call.role, call.premises, "x"))

    def run_critic(response: str, *, look_up: bool) -> list[str]:
        with Engine(world(critic=mistaken)) as engine:
            options = CritiqueOptions(look_up=look_up)
            critique = Critic(engine).critique(response, GRAPH, history=("Hi!",), options=options)
        return [mention.text for mention in critique.mentions]

    right = "Alien was directed by Ridley Scott."
    assert run_critic(right, look_up=True) == []
    assert run_critic(right, look_up=False) == ["Alien", "Ridley Scott"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RefineOptions(min_probability=1.0), r"best candidate has probability 0\.\d\d, and min_probability is 1\.0"),
        (RefineOptions(min_probability=1.0, veto=False), "min_probability is 1"),
    ],
)
def test_a_repair_that_is_not_good_enough_is_refused(options: RefineOptions, message: str) -> None:
    def lost(call: ClassifyTokens) -> Any:
        """Has forgotten every triple."""
        return critic(ClassifyTokens(call.role, (call.premises[0].split(SEPARATOR)[-1],), call.text))

    with Engine(world(critic=lost)) as engine:
        refinement = Refiner(engine).refine("Alien stars Kate Winslet.", GRAPH, history=ALIEN, options=options)
    assert consistent(refinement).status == "refused"
    assert re.search(message, refinement.message), refinement.message
    assert [mention.text for mention in refinement.unresolved] == ["Kate Winslet"]


def test_nothing_near_of_the_right_kind_is_refused() -> None:
    graph = KnowledgeGraph.from_triples(
        [("Alien", "release_year", "1979"), ("Titanic", "directed_by", "James Cameron")]
    )
    refinement = run("Alien was directed by James Cameron.", graph=graph)
    assert refinement.status == "refused"
    assert "nothing else for what the response states about “James Cameron”" in refinement.message
    assert "type is near" in run("Alien was directed by James Cameron.", graph=graph, options=PAPER).message


def test_what_is_of_another_kind_counts_less_and_a_number_is_no_name() -> None:
    def asked(options: RefineOptions) -> tuple[set[str], dict[str, float]]:
        with Engine(world()) as engine:
            refinement = Refiner(engine).refine(
                "Alien is a film of James Cameron.", GRAPH, history=ALIEN, options=options
            )
            assert isinstance(engine.core.runtime, FakeRuntime)
            ((call,),) = [calls for role, calls in engine.core.runtime.batches if role == "retriever"]
        assert isinstance(call, Retrieve)
        (change,) = refinement.changes
        shares = {alternative.entity: alternative.probability for alternative in (change.chosen, *change.runners_up)}
        return {candidate.entity for candidate in call.candidates[0]}, shares

    offered, shares = asked(PAPER)
    every, plain = asked(ANY_TYPE)
    assert {"Ridley Scott", "John Hurt", "Science fiction"} <= offered
    assert every - offered == {"1979"}
    # The retriever weighs the director 8 and the three others 1 each; an actor and a genre count 0.3 of that.
    assert shares["Ridley Scott"] == pytest.approx(8 / (8 + 3 * 0.3))
    assert shares["John Hurt"] == pytest.approx(0.3 / 11)
    assert plain["Ridley Scott"] == pytest.approx(8 / 12)
    assert plain["John Hurt"] == pytest.approx(1 / 12)


def test_without_the_critics_masks_the_retriever_decides_about_every_name() -> None:
    """The critic sees nothing wrong; the retriever expects another director, and the right cast."""

    def blind(call: ClassifyTokens) -> Any:
        return critic(ClassifyTokens(call.role, call.premises, "x " * (len(call.text) // 2)))

    with Engine(world(critic=blind)) as engine:
        wrong, right = "Alien was directed by John Hurt.", "Alien was directed by Ridley Scott."
        assert Refiner(engine).refine(wrong, GRAPH, history=ALIEN, options=PAPER).status == "clean"
        everything = RefineOptions(mask_all=True, veto=False)
        refinement = Refiner(engine).refine(wrong, GRAPH, history=ALIEN, options=everything)
        kept = Refiner(engine).refine(right, GRAPH, history=ALIEN, options=everything)
    assert consistent(refinement).response == right
    assert (refinement.status, refinement.before.mentions) == ("refined", ())
    assert (kept.status, kept.response) == ("clean", right)


def test_names_that_are_only_recognised_are_masked_too() -> None:
    def masked(**roles: Any) -> set[str]:
        with Engine(world(**roles)) as engine:
            Refiner(engine).refine(
                "Alien stars John Hurt, not John Smith.",
                GRAPH,
                history=ALIEN,
                options=RefineOptions(mask_all=True, veto=False),
            )
            assert isinstance(engine.core.runtime, FakeRuntime)
            calls = [call for role, calls in engine.core.runtime.batches if role == "retriever" for call in calls]
        return {
            call.response[start:end] for call in calls if isinstance(call, Retrieve) for start, end in call.mentions
        }

    def trusting(call: ClassifyTokens) -> Any:
        return critic(ClassifyTokens(call.role, call.premises, "x " * (len(call.text) // 2)))

    assert masked(critic=trusting) == {"Alien", "John Hurt"}
    assert masked(critic=trusting, spans=recognise) == {"Alien", "John Hurt", "John Smith"}


def test_without_the_veto_the_most_probable_repair_is_taken() -> None:
    """The retriever has no reason to prefer an end of the triple."""
    graph = KnowledgeGraph.from_triples([("Alien", "produced by", "Gordon Carroll")])
    response = "It is great, says Ann. Alien produced James Cameron."

    def flag(call: ClassifyTokens) -> Any:
        return critic(ClassifyTokens(call.role, ("",), call.text.replace("produced", "directed")))

    with Engine(world(critic=flag)) as engine:
        refused, taken = (
            Refiner(engine).refine(response, graph, history=ALIEN, options=options) for options in (None, PAPER)
        )
    assert (refused.status, taken.status) == ("refused", "refined")
    assert "Gordon Carroll" in taken.response


PERSONS = re.compile("Ridley Scott|Sigourney Weaver|John Hurt|John Smith")


def recognise(call: FindSpans) -> Any:
    """A recogniser that knows persons, and takes half of "Alien" and every film for something else."""
    persons = [TextSpan(match[0], *match.span(), "ent:PERSON") for match in PERSONS.finditer(call.text)]
    works = [TextSpan(match[0], *match.span(), "ent:MISC") for match in re.finditer("Gladiator|Heat", call.text)]
    genres = [TextSpan(match[0], *match.span(), "noun_chunk") for match in re.finditer("Science fiction", call.text)]
    return (*persons, *works, *genres)


@pytest.mark.parametrize(
    ("name", "preferred", "options"),
    [
        ("John Smith", True, PAPER),
        ("John Smith", False, ANY_TYPE),
        ("James Brown", False, PAPER),  # the recogniser does not see it
        ("Heat", False, PAPER),  # none of the candidates' roles has works
    ],
)
def test_a_name_that_the_graph_does_not_know_has_the_type_that_is_recognised(
    name: str, preferred: bool, options: RefineOptions
) -> None:
    with Engine(world(spans=recognise)) as engine:
        response = f"Alien is a film of {name}."
        (change,) = Refiner(engine).refine(response, GRAPH, history=ALIEN, options=options).changes
    shares = {item.entity: item.probability for item in (change.chosen, *change.runners_up)}
    # The retriever weighs the director 8, two actors and the genre 1 each, and without types the year.
    if preferred:
        assert shares["Ridley Scott"] == pytest.approx(8 / (8 + 2 + 0.3))
        assert shares["Science fiction"] == pytest.approx(0.3 / 11)
    elif name == "Heat":
        assert shares["Science fiction"] == pytest.approx(1 / (1 + 0.3 * 10))
    else:
        assert shares["Science fiction"] == pytest.approx(1 / (11 if options.type_aware else 12))


def test_without_a_recogniser_a_name_that_the_graph_does_not_know_has_no_type() -> None:
    (change,) = run("Alien is a film of John Smith.", options=PAPER).changes
    assert {item.entity: item.probability for item in change.runners_up}["Science fiction"] == pytest.approx(1 / 11)


def test_candidates_come_from_as_far_as_asked_for() -> None:
    response, history = "It stars Russell Crowe, says Ridley Scott of Alien.", ("Tell me about South Shields.",)
    near, far = (GRAPH.neighbourhood(["South Shields"], hops).entities for hops in (1, 2))
    assert "Alien" not in near
    assert "Alien" in far
    assert run(response, history, options=RefineOptions(hops=2)).signature != run(response, history).signature


def test_a_far_candidate_is_justified_by_its_path() -> None:
    """From a film over its director to another of his films."""
    assert find_path(GRAPH, "Alien", "Gladiator", "he directed it", 2) == (FILMS[0], FILMS[5])
    assert find_path(GRAPH, "Alien", "Gladiator", "he directed it", 1) == ()
    assert find_path(GRAPH, "Alien", "Ridley Scott", "he directed it", 2) == (FILMS[0],)
    near = find_path(GRAPH, "South Shields", "Alien", "born", 2)
    assert near == (FILMS[-1], FILMS[0])
    assert find_path(GRAPH, "South Shields", "1979", "born", 2) == ()
    assert find_path(GRAPH, "South Shields", "1979", "born", 3) == (*near, FILMS[3])


def test_triples_stand_for_a_graph() -> None:
    with Engine(world()) as engine:
        refinement = Refiner(engine).refine("It was directed by James Cameron.", FILMS[:2], history=ALIEN)
        said = Critic(engine).critique("It was directed by James Cameron.", FILMS[:2], history=ALIEN)
        clean = Critic(engine).critique(
            "Alien was directed by Ridley Scott.", [("Alien", "directed_by", "Ridley Scott")]
        )
    assert refinement.response == "It was directed by Ridley Scott."
    assert said.mentions == refinement.before.mentions
    assert [mention.text for mention in said.mentions] == ["James Cameron"]
    assert (clean.hallucinated, clean.probability) == (False, pytest.approx(0.1))


def test_a_critique_says_what_it_was_based_on() -> None:
    with Engine(world()) as engine:
        said = Critic(engine).critique("Alien was directed by James Cameron.", GRAPH, history=ALIEN)
    assert said.status == "checked"
    assert said.context == ("Alien", "James Cameron")
    assert said.triples[0].predicate == "directed_by"  # what the response speaks of comes first
    assert {"Alien", "James Cameron"} >= {t.subject for t in said.triples if "Alien" in (t.subject, t.object)}
    assert "|metrics:critique|" in said.signature
    assert said.timings.stages_ms.keys() == {"critic"}


@pytest.mark.parametrize(
    "response",
    ["Это снял Джеймс Кэмерон.", "それはジェームズ・キャメロンの映画です。", "Sounds good!", "!?"],
    ids=["cyrillic", "japanese", "small talk", "no words"],
)
def test_a_response_that_names_nothing_of_the_graph_has_no_context(response: str) -> None:
    refinement = consistent(run(response, ("Hello!",)))
    assert (refinement.status, refinement.before.hallucinated, refinement.before.probability) == (
        "no_context",
        None,
        None,
    )
    assert "aliases" in refinement.message
    with Engine(world()) as engine:
        said = Critic(engine).critique(response, GRAPH)
        assert isinstance(engine.core.runtime, FakeRuntime)
        assert engine.core.runtime.batches == []
    assert said.status == "no_context"


def test_aliases_lead_from_another_script() -> None:
    graph = KnowledgeGraph.from_triples(FILMS, aliases={"Alien": ["Чужой"]})
    with Engine(world()) as engine:
        said = Critic(engine).critique("It was directed by James Cameron.", graph, history=("Ты видел Чужой?",))
    assert said.context == ("Alien", "James Cameron")
    assert FILMS[0] in said.triples


def test_loops_and_cycles_are_no_trouble() -> None:
    ring = [("Alien", "starring", "Alien"), ("John Hurt", "born_in", "Alien"), ("Alien", "born_in", "John Hurt")]
    graph = KnowledgeGraph.from_triples([*FILMS, *ring])
    for hops in (1, 2, 3):
        refinement = run("Alien was directed by James Cameron.", ALIEN, graph, options=RefineOptions(hops=hops))
        assert refinement.status in ("refined", "refused")
        assert all(change.chosen.entity != "Alien" for change in refinement.changes)


def test_a_name_with_punctuation_is_replaced_whole() -> None:
    triples = [
        *FILMS,
        Triple("Crouching Tiger, Hidden Dragon", "directed_by", "Ang Lee"),
        Triple("E.T.", "directed_by", "Steven Spielberg"),
    ]
    graph = KnowledgeGraph.from_triples(triples)

    def flag(call: ClassifyTokens) -> Any:
        from groundwire.runtime.calls import ClassifiedToken, ClassifiedTokens, Read

        bad = call.text.find("Tiger,")
        tokens = tuple(
            ClassifiedToken(i, i + 1, (0.05, 0.9, 0.05) if bad <= i < bad + 5 and bad >= 0 else (0.95, 0.03, 0.02))
            for i in range(len(call.text))
        )
        return ClassifiedTokens(("O", "B", "I"), tokens, Read(1, 1, 1))

    with Engine(world(critic=flag)) as engine:
        refinement = Refiner(engine).refine(
            "(Crouching Tiger, Hidden Dragon) was directed by Steven Spielberg.", graph, history=("E.T.?",)
        )
    assert refinement.response == "(E.T.) was directed by Steven Spielberg."


BAD: list[tuple[dict[str, Any], str]] = [
    ({"knowledge": None}, "knowledge is NoneType; pass triples, or a KnowledgeGraph"),
    ({"knowledge": KnowledgeGraph.from_triples([])}, "knowledge is empty; pass the triples or the graph"),
    ({"knowledge": ()}, "knowledge is empty"),
    ({"knowledge": "films.tsv"}, "knowledge is one string; .* a KnowledgeGraph, read with KnowledgeGraph.load"),
    ({"knowledge": Path("films.tsv")}, "knowledge is PosixPath; .* a KnowledgeGraph, read with KnowledgeGraph.load"),
    ({"knowledge": [("a", "b")]}, r"knowledge\[0\] has 2 parts"),
    ({"response": ""}, "response is empty"),
    ({"response": "x" * 20_001}, "response has 20001 characters"),
    ({"history": 7}, "history is int"),
    ({"history": ["a\0"]}, "NUL character"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_unusable_input_is_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"response": "Alien.", "history": ALIEN, "knowledge": GRAPH} | change
    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match=message):
            Refiner(engine).refine(**arguments)
        with pytest.raises(InvalidRequest, match=message):
            Critic(engine).critique(**arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hops": 0}, "hops is 0; Expected `int` >= 1"),
        ({"hops": True}, "hops is True"),
        ({"hops": 1.5}, r"hops is 1\.5"),
        ({"top": 0}, "top is 0"),
        ({"min_probability": 1.5}, r"min_probability is 1\.5; Expected `float` <= 1"),
        ({"min_probability": float("nan")}, "min_probability is nan"),
        ({"veto": "no"}, "veto is 'no'"),
    ],
)
def test_an_unusable_option_is_named(settings: dict[str, Any], message: str) -> None:
    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match=f"RefineOptions.{message}"):
            Refiner(engine).refine("Alien.", GRAPH, history=ALIEN, options=RefineOptions(**settings))
        if settings.keys() <= set(CritiqueOptions.__struct_fields__):
            with pytest.raises(InvalidRequest, match=f"CritiqueOptions.{message}"):
                Critic(engine).critique("Alien.", GRAPH, history=ALIEN, options=CritiqueOptions(**settings))


def test_options_of_another_kind_are_named() -> None:
    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match="pass an instance of RefineOptions"):
            Refiner(engine).refine("Alien.", GRAPH, options=CritiqueOptions())  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="pass an instance of CritiqueOptions"):
            Critic(engine).critique("Alien.", GRAPH, options=Options())  # type: ignore[arg-type]


def test_a_bundle_without_the_models_is_named() -> None:
    with Engine(fakes.world()) as engine:
        with pytest.raises(InvalidRequest, match=r"Refiner needs critic and retriever among .*extra=\['nph'\]"):
            Refiner(engine).refine("a", GRAPH)
        with pytest.raises(InvalidRequest, match="Critic needs critic"):
            Critic(engine).critique("a", GRAPH)
    with Engine(FakeRuntime({"critic": critic}, role_info=FACTS)) as engine:
        assert Critic(engine).critique("Alien.", GRAPH).status == "checked"
        with pytest.raises(InvalidRequest, match="Refiner needs retriever among"):
            Refiner(engine).refine("Alien.", GRAPH)


@pytest.mark.parametrize(
    ("role", "error", "status"),
    [
        ("critic", ModelError("broken"), "failed"),
        ("critic", TooLong("too much"), "truncated"),
        ("retriever", ModelError("broken"), "failed"),
    ],
)
def test_a_model_that_fails_is_a_status(role: str, error: Exception, status: str) -> None:
    def fail(call: object) -> Any:
        raise error

    with Engine(world(**{role: fail})) as engine:
        refinement = Refiner(engine).refine("Alien was directed by James Cameron.", GRAPH, history=ALIEN)
    assert consistent(refinement).status == status
    assert refinement.message == str(error)
    assert refinement.before.hallucinated is None


def test_a_deadline_is_a_status() -> None:
    import time

    def slow(call: ClassifyTokens) -> Any:
        time.sleep(0.05)
        return critic(call)

    with Engine(world(critic=slow)) as engine:
        refinement = Refiner(engine).refine("Alien.", GRAPH, history=ALIEN, scoring=Options(deadline_ms=10))
    assert (refinement.status, refinement.response) == ("deadline", "Alien.")


def test_without_options_the_defaults_of_the_record_hold() -> None:
    with Engine(world()) as engine:
        usual = Refiner(engine).refine("It was directed by James Cameron.", GRAPH, history=ALIEN)
        same = Refiner(engine).refine(
            "It was directed by James Cameron.", GRAPH, history=ALIEN, options=RefineOptions(), scoring=Options()
        )
    assert (usual.signature, usual.changes) == (same.signature, same.changes)
    for name in RefineOptions.__struct_fields__:
        assert f"{name}={getattr(RefineOptions(), name)}" in usual.signature


@pytest.mark.parametrize("response", ["It was directed by James Cameron.", "It is long.", "Hello there."])
def test_arefine_is_refine_for_asyncio(response: str) -> None:
    with Engine(world()) as engine:
        repaired = asyncio.run(Refiner(engine).arefine(response, GRAPH, history=ALIEN))
        again = Refiner(engine).refine(response, GRAPH, history=ALIEN)
    assert replace(repaired, timings=again.timings, before=again.before, after=again.after) == again
    assert repaired.before.mentions == again.before.mentions
