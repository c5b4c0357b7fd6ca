"""Dialogues made from triples, and what makes them wrong: properties over many draws, and cases worked by hand."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

from groundwire.recipes.common.phrases import list_originals
from groundwire.recipes.common.sentence_pieces import EntityMention, EntityPiece, fill_template, join_pieces
from groundwire.recipes.common.triple_index import YEAR, TripleIndex, make_years, read_triples
from groundwire.recipes.nph import opendialkg
from groundwire.recipes.nph.corruption import (
    LABELS,
    CorruptedDialogue,
    Corruption,
    CorruptionRecipe,
    Corruptor,
    label_tokens,
    list_shown_entities,
)
from groundwire.recipes.nph.templates import GraphDialogue, TemplateDialogues, vary_surface
from groundwire.repair.kg import KnowledgeGraph
from groundwire.runtime.triples import Triple, linearise
from tests.support import graph_sets
from tests.support.graph_sets import ACTED, BORN, DIRECTED, GENRE, SPOUSE

DRAWS = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_sets.save(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def templates(data: Path) -> TemplateDialogues:
    return TemplateDialogues.read(data)


@pytest.fixture(scope="module")
def made(templates: TemplateDialogues) -> list[GraphDialogue]:
    return [templates.draw(random.Random(seed)) for seed in range(DRAWS)]


@pytest.fixture(scope="module")
def corruptor(templates: TemplateDialogues) -> Corruptor:
    return Corruptor(templates.index)


# The index


def test_bookkeeping_and_marks_of_homonyms_are_left_out(data: Path) -> None:
    triples = [t for split in ("train", "dev", "test") for t in read_triples(data / f"fb15k237_{split}.jsonl.gz")]
    assert {triple.predicate for triple in triples} == {DIRECTED, ACTED, GENRE, BORN, SPOUSE, graph_sets.GENERIC}
    assert {t.object for t in triples if t.predicate == graph_sets.GENERIC} == {
        f"{t} Festival" for t in graph_sets.TOWNS
    }


def test_every_film_has_one_year_and_always_the_same(data: Path) -> None:
    triples = [Triple(*row) for row in graph_sets.rows()]
    dated = make_years(triples)
    assert sorted(t.subject for t in dated) == sorted(graph_sets.FILMS)
    assert set(make_years(triples[::-1])) == set(dated)
    assert all(t.predicate == YEAR and 1930 <= int(t.object) <= 2021 for t in dated)
    assert {t for t in TripleIndex.read(data).triples if t.predicate == YEAR} == set(dated)


def test_a_relation_is_symmetric_when_enough_of_it_holds_both_ways() -> None:
    both = [Triple("a", "meets", "b"), Triple("b", "meets", "a")]
    one_way = [Triple(f"{i}", "sees", f"{i + 1}") for i in range(9)] + [Triple("1", "sees", "0")]
    assert TripleIndex([*both, *one_way]).symmetric == {"meets", "sees"}, "2 of 10 is a fifth"
    assert TripleIndex([*both, *one_way, Triple("x", "sees", "y")]).symmetric == {"meets"}


def test_within_is_what_walking_the_graph_finds(templates: TemplateDialogues) -> None:
    index = templates.index

    def walked(entity: str, hops: int) -> set[str]:
        if hops == 0:
            return {entity}
        near = {end for t in index.triples if entity in (t.subject, t.object) for end in (t.subject, t.object)}
        return {entity}.union(*(walked(other, hops - 1) for other in near))

    for entity in ("Red River", "Ann Archer", "Drama"):
        for hops in (0, 1, 2):
            assert index.find_within([entity], hops) == walked(entity, hops)
    assert index.find_within(["Red River", "Ann Cole"], 1) == walked("Red River", 1) | walked("Ann Cole", 1)


def test_a_peer_plays_the_same_part_and_is_not_avoided(templates: TemplateDialogues) -> None:
    index = templates.index
    for seed, entity in enumerate((*graph_sets.FILMS, *graph_sets.PEOPLE, *graph_sets.GENRES)):
        avoid = {entity, *graph_sets.FILMS[:3], *graph_sets.PEOPLE[:3]}
        peer = index.draw_peer(entity, avoid, random.Random(seed))
        assert peer is not None
        assert peer not in avoid
        assert index.share_role(entity, peer)
    assert index.draw_peer("Drama", set(graph_sets.GENRES), random.Random(0)) is None
    assert index.draw_peer("unknown", set(), random.Random(0)) is None


# The templates


def test_mentions_stand_where_they_say_and_are_in_order(made: list[GraphDialogue]) -> None:
    for dialogue in made:
        assert all(a.end <= b.start for a, b in pairwise(dialogue.mentions))
        for mention in dialogue.mentions:
            text = dialogue.response[mention.start : mention.end]
            # Perhaps small, or without its article or first name; never anything else.
            assert text
            assert text.lower() in mention.entity.lower()


def test_what_is_stated_is_shown_and_named_by_its_mentions(made: list[GraphDialogue]) -> None:
    for dialogue in made:
        assert dialogue.stated_triples()
        for mention in dialogue.mentions:
            assert set(mention.triples) <= set(dialogue.triples)
        ends = {mention.entity for mention in dialogue.mentions}
        for triple in dialogue.stated_triples():
            # A pronoun may stand for one end, never for both.
            assert {triple.subject, triple.object} & ends
        for mention in dialogue.mentions:
            assert all(mention.entity in (triple.subject, triple.object) for triple in mention.triples)


def test_every_shown_triple_is_one_of_the_graph_under_some_name(
    made: list[GraphDialogue], templates: TemplateDialogues
) -> None:
    names = Counter[str]()
    for dialogue in made:
        assert len(set(dialogue.triples)) == len(dialogue.triples)
        for triple in dialogue.triples:
            assert any(original in templates.index for original in list_originals(triple)), triple
            names[triple.predicate] += 1
    assert {DIRECTED, "directed by", "genre", YEAR, graph_sets.GENERIC} <= set(names)


def test_turns_and_their_number(made: list[GraphDialogue]) -> None:
    lengths = Counter(len(dialogue.history) for dialogue in made)
    assert set(lengths) == {1, 2, 3}
    assert all(turn.strip() and "{" not in turn for dialogue in made for turn in dialogue.history)
    assert all("{" not in dialogue.response for dialogue in made)


def test_the_same_seed_makes_the_same_dialogue(templates: TemplateDialogues, made: list[GraphDialogue]) -> None:
    assert [templates.draw(random.Random(seed)) for seed in range(20)] == made[:20]
    assert len({dialogue.response for dialogue in made}) > DRAWS * 0.9


def test_held_out_phrases_are_not_trained_on(data: Path, templates: TemplateDialogues) -> None:
    held_out = TemplateDialogues.read(data, "test")
    test_triples = set(read_triples(data / "fb15k237_test.jsonl.gz"))
    said = [held_out.draw(random.Random(seed)) for seed in range(100)]
    firsts = {fact for dialogue in said for triple in dialogue.stated_triples() for fact in list_originals(triple)}
    assert test_triples & firsts
    train = " ".join(templates.draw(random.Random(s)).response for s in range(DRAWS))
    test = " ".join(dialogue.response for dialogue in said)
    # Both say these often, each in its own part of the phrases.
    assert "I hope that helps!" in train
    assert "I hope that helps!" not in test
    assert "Isn't that interesting?" in test
    assert "Isn't that interesting?" not in train


def test_no_triples_make_no_dialogues() -> None:
    with pytest.raises(ValueError, match="no triples to talk about"):
        TemplateDialogues(TripleIndex([]), [])


@pytest.mark.parametrize(
    ("template", "slots", "text"),
    [
        ("is a {o} film", {"o": "action film"}, "is an action film"),
        ("is a {o} film", {"o": "Western"}, "is a Western film"),
        ("won the {o}", {"o": "The Prize"}, "won The Prize"),
        ("won the {o}", {"o": "Prize"}, "won the Prize"),
        ("{s} has a {o}", {"s": "It", "o": "End"}, "It has an End"),
    ],
)
def test_articles_fit_what_fills_the_slot(template: str, slots: dict[str, str], text: str) -> None:
    pieces = fill_template(template, {name: [EntityPiece(value, value, ())] for name, value in slots.items()})
    said, mentions = join_pieces(["x ", *pieces])
    assert said == f"X {text}"
    assert [said[m.start : m.end] for m in mentions] == [slots[name] for name in ("s", "o") if name in slots]


def test_a_name_is_written_in_the_ways_of_its_kind() -> None:
    def ways(entity: str, kind: str) -> set[str]:
        return {vary_surface(entity, kind, random.Random(seed)) for seed in range(200)}

    assert ways("English Language", "word") == {"English", "english", "English Language", "english language"}
    assert ways("Ann Cole", "person") == {"Ann Cole", "Cole", "ann cole"}
    assert ways("The Moon", "it") == {"The Moon", "the moon", "Moon"}
    assert ways("The", "it") == {"The", "the"}


# The corruptions


def test_an_extrinsic_entity_is_of_the_type_and_not_near(
    made: list[GraphDialogue], corruptor: Corruptor, templates: TemplateDialogues
) -> None:
    index, done = templates.index, 0
    for seed, dialogue in enumerate(made):
        case = corruptor.make_extrinsic(dialogue, random.Random(seed))
        if case is None:
            continue
        done += 1
        put = changed(case)
        assert put
        ends = {end for t in dialogue.stated_triples() for end in (t.subject, t.object)} | {
            m.entity for m in dialogue.mentions
        }
        near = index.find_within(ends, 1)
        for old, new in put:
            assert new.entity not in near
            assert new.entity not in list_shown_entities(dialogue)
            assert new.entity.lower() not in " ".join((linearise(dialogue.triples), *dialogue.history)).lower()
            assert index.share_role(old.entity, new.entity)
            assert new.triples == ()
        assert case.dialogue.triples == dialogue.triples
        assert case.dialogue.history == dialogue.history
    assert done > DRAWS * 0.7


def test_every_mention_is_replaced_when_asked_to(made: list[GraphDialogue], templates: TemplateDialogues) -> None:
    dialogue = next(d for d in made if len(d.mentions) == 2 and len(d.triples) == 1 and len(d.stated_triples()) == 1)
    corruptor = Corruptor(templates.index, hops=0)
    cases = [corruptor.make_extrinsic(dialogue, random.Random(seed), more=1.0) for seed in range(30)]
    assert max(len(case.flagged) for case in cases if case) == 2
    single = [corruptor.make_extrinsic(dialogue, random.Random(seed), more=0.0) for seed in range(30)]
    assert {len(case.flagged) for case in single if case} == {1}


def test_a_swap_exchanges_the_ends_of_a_stated_fact(made: list[GraphDialogue], corruptor: Corruptor) -> None:
    done = 0
    for seed, dialogue in enumerate(made):
        case = corruptor.make_swapped(dialogue, random.Random(seed))
        if case is None:
            continue
        done += 1
        (first, new), (second, newer) = changed(case)
        assert (new.entity, newer.entity) == (second.entity, first.entity)
        texts = [dialogue.response[m.start : m.end] for m in (first, second)]
        assert [case.dialogue.response[m.start : m.end] for m in (new, newer)] == texts[::-1]
        ends = {first.entity, second.entity}
        facts = [t for t in first.triples if t in second.triples and {t.subject, t.object} == ends]
        assert facts
        assert all(t.predicate != SPOUSE for t in facts)
    assert done > DRAWS * 0.3


def test_the_papers_recipes_change_every_mention_and_pair(made: list[GraphDialogue], corruptor: Corruptor) -> None:
    def flagged(recipe: CorruptionRecipe, kind: str, corruptor: Corruptor, dialogues: list[GraphDialogue]) -> int:
        cases = [corruptor.draw(d, random.Random(i), recipe.corruption) for i, d in enumerate(dialogues * 20)]
        return max((len(case.flagged) for case in cases if case.kind == kind), default=0)

    facts = [Triple("a", "likes", "b"), Triple("c", "likes", "d")]
    mentions = tuple(
        EntityMention(at, at + 1, name, (facts[at > 10],)) for at, name in ((0, "a"), (8, "b"), (12, "c"), (20, "d"))
    )
    two_pairs = GraphDialogue((), tuple(facts), "a likes b & c likes d", mentions)
    small = Corruptor(TripleIndex(facts))
    assert flagged(CorruptionRecipe.INTRIN, "swapped", small, [two_pairs]) == 4
    assert flagged(CorruptionRecipe.EMBEDDED, "swapped", small, [two_pairs]) == 2
    shares = []
    for recipe in (CorruptionRecipe.EXTRIN, CorruptionRecipe.EMBEDDED):
        cases = [corruptor.draw(d, random.Random(i), recipe.corruption) for i, d in enumerate(made)]
        counts = [len(case.flagged) / len(case.dialogue.mentions) for case in cases if case.kind == "extrinsic"]
        shares.append(sum(counts) / len(counts))
    assert shares[0] > shares[1] + 0.1


def test_nothing_is_swapped_where_both_directions_hold(templates: TemplateDialogues, corruptor: Corruptor) -> None:
    spouse = next(t for t in templates.index.triples if t.predicate == SPOUSE)
    said = f"{spouse.subject} married {spouse.object}."
    mentions = (
        EntityMention(0, len(spouse.subject), spouse.subject, (spouse,)),
        EntityMention(len(said) - 1 - len(spouse.object), len(said) - 1, spouse.object, (spouse,)),
    )
    dialogue = GraphDialogue(("Hi.",), (spouse,), said, mentions)
    assert corruptor.make_swapped(dialogue, random.Random(0)) is None
    both = (Triple("a", "likes", "b"), Triple("b", "likes", "a"))
    dialogue = GraphDialogue(
        (), both, "a likes b", (EntityMention(0, 1, "a", both[:1]), EntityMention(8, 9, "b", both[:1]))
    )
    assert Corruptor(TripleIndex([Triple("x", "y", "z")])).make_swapped(dialogue, random.Random(0)) is None


def test_a_misplaced_entity_is_shown_but_the_fact_does_not_hold(
    made: list[GraphDialogue], corruptor: Corruptor, templates: TemplateDialogues
) -> None:
    done = 0
    for seed, dialogue in enumerate(made):
        case = corruptor.make_misplaced(dialogue, random.Random(seed))
        if case is None:
            continue
        done += 1
        ((old, new),) = changed(case)
        assert new.entity in list_shown_entities(dialogue)
        assert new.entity not in {mention.entity for mention in dialogue.mentions}
        for triple in old.triples:
            subject, thing = (new.entity if end == old.entity else end for end in (triple.subject, triple.object))
            said = Triple(subject, triple.predicate, thing)
            if new.entity in (subject, thing):
                assert not any(original in templates.index for original in list_originals(said))
    assert done > DRAWS * 0.5


def test_what_is_unseen_is_named_nowhere(made: list[GraphDialogue], corruptor: Corruptor) -> None:
    done = 0
    for seed, dialogue in enumerate(made):
        case = corruptor.make_unseen(dialogue, random.Random(seed))
        if case is None:
            continue
        done += 1
        assert case.dialogue.response == dialogue.response
        (gone,) = set(dialogue.triples) - set(case.dialogue.triples)
        around = " ".join((linearise(case.dialogue.triples), *dialogue.history)).lower()
        assert case.flagged
        for start, end in case.flagged:
            assert dialogue.response[start:end].lower() not in around
            assert any((m.start, m.end) == (start, end) and m.triples == (gone,) for m in dialogue.mentions)
    assert done > DRAWS * 0.1


def test_the_mix_decides_what_is_drawn(made: list[GraphDialogue], corruptor: Corruptor) -> None:
    def kinds(corruption: Corruption) -> Counter[str]:
        return Counter(corruptor.draw(d, random.Random(i), corruption).kind for i, d in enumerate(made))

    assert set(kinds(Corruption({"clean": 1}, every=False))) == {"clean"}
    intrinsic, extrinsic = (kinds(recipe.corruption) for recipe in (CorruptionRecipe.INTRIN, CorruptionRecipe.EXTRIN))
    assert set(intrinsic) == {"swapped", "clean"}
    assert set(extrinsic) == {"extrinsic", "clean"}
    paper = kinds(CorruptionRecipe.INTRIN_EXTRIN.corruption)
    assert 0.35 * DRAWS < paper["clean"] < 0.65 * DRAWS
    assert paper["misplaced"] == paper["unseen"] == 0
    assert paper["extrinsic"] + paper["swapped"] + paper["clean"] == DRAWS


def test_clean_ones_are_untouched(made: list[GraphDialogue], corruptor: Corruptor) -> None:
    case = corruptor.draw(made[0], random.Random(0), Corruption({"clean": 1}, every=False))
    assert (case.dialogue, case.original, case.flagged) == (made[0], made[0], ())


@pytest.mark.parametrize(
    ("offsets", "flagged", "expected"),
    [
        ([(0, 2), (3, 6), (7, 9), (9, 10)], [(3, 9)], "OBIO"),
        ([(0, 2), (2, 4), (5, 7)], [(0, 4), (5, 7)], "BIB"),
        ([(0, 2), (2, 4)], [(0, 2), (2, 4)], "BB"),
        ([(0, 5)], [(3, 4)], "B"),
        ([(0, 2), (2, 3)], [], "OO"),
        ([(0, 2), (2, 3)], [(2, 2)], "OO"),
        ([], [(0, 1)], ""),
    ],
)
def test_labels(offsets: list[tuple[int, int]], flagged: list[tuple[int, int]], expected: str) -> None:
    assert "".join(LABELS[label] for label in label_tokens(offsets, flagged)) == expected


def changed(case: CorruptedDialogue) -> list[tuple[EntityMention, EntityMention]]:
    """The mentions that were replaced, old and new, after a check that nothing else was and that offsets are exact."""
    old, new = case.original, case.dialogue
    assert len(old.mentions) == len(new.mentions)
    put = []
    assert between(old) == between(new)
    for before, after in zip(old.mentions, new.mentions, strict=True):
        texts = old.response[before.start : before.end], new.response[after.start : after.end]
        if (after.start, after.end) in case.flagged:
            put.append((before, after))
            assert texts[1].lower() in after.entity.lower()
        else:
            assert texts[0] == texts[1]
            assert (before.entity, before.triples) == (after.entity, after.triples)
    assert len(put) == len(case.flagged)
    return put


def between(dialogue: GraphDialogue) -> list[str]:
    """The words that belong to no mention."""
    starts = [0, *(mention.end for mention in dialogue.mentions)]
    ends = [*(mention.start for mention in dialogue.mentions), len(dialogue.response)]
    return [dialogue.response[start:end] for start, end in zip(starts, ends, strict=True)]


# OpenDialKG's rows

KG = [
    Triple("Red River", "director", "Ann Cole"),
    Triple("Red River", "actor", "Bob Dunn"),
    Triple("Last Moon", "director", "Ann Cole"),
    Triple("Her", "actor", "Bob Dunn"),
]


def row(resp: str, *context: str) -> dict[str, object]:
    return {"context": list(context), "entity": [], "rec": [], "resp": resp, "split": "test"}


@pytest.mark.parametrize(
    ("resp", "context", "mentions"),
    [
        ("Ann Cole directed red river.", ("Hi",), ["Ann Cole", "Red River"]),
        ("It was directed by Ann Cole.", ("Do you know Red River?",), ["Ann Cole"]),
        ("I like her, and Bob Dunn is in Red River.", ("Hi",), ["Bob Dunn", "Red River"]),
        ("Bob Dunn is in Her.", ("Hi",), ["Bob Dunn", "Her"]),
        ("Ann Cole is great.", ("Hi",), None),
        ("Ann Cole directed Red River with Zoe Quist.", ("Hi",), None),
        ("Ann Cole directed Red River, and there is Her.", ("Hi",), None),
    ],
)
def test_turns_are_kept_when_the_graph_accounts_for_them(
    resp: str, context: tuple[str, ...], mentions: list[str] | None
) -> None:
    dialogues = list(
        opendialkg.link_dialogues([row(resp, *context)], KnowledgeGraph.from_triples(KG), TripleIndex(KG), seed=1)
    )
    if mentions is None:
        assert dialogues == []
        return
    (dialogue,) = dialogues
    assert [mention.entity for mention in dialogue.mentions] == mentions
    assert set(dialogue.stated_triples()) <= set(dialogue.triples) <= set(KG)
    for mention in dialogue.mentions:
        assert dialogue.response[mention.start : mention.end].lower() == mention.entity.lower()


def test_the_history_is_cut_to_three_turns() -> None:
    turns = ("one", "two", "three", "Red River?")
    (dialogue,) = opendialkg.link_dialogues(
        [row("Ann Cole directed it.", *turns)], KnowledgeGraph.from_triples(KG), TripleIndex(KG), seed=1
    )
    assert dialogue.history == turns[1:]
