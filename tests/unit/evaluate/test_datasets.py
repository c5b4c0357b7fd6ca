"""Each format of labelled sets, on files of a few lines in the authors' layouts."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundwire.engine.extend import make_request
from groundwire.evaluate.datasets import list_formats, read_dataset
from groundwire.evaluate.datasets.examples import Example, label_by_hallucination, shuffle_knowledge
from groundwire.evaluate.datasets.plain import CONSISTENT, INCONSISTENT, make_examples
from groundwire.files.reading import read_lines
from groundwire.runtime.errors import InvalidRequest
from tests.support.dataset_files import BEGIN, CROSS, FACTUAL, Q2, lines, save, table


def test_json_lines(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        "own.jsonl",
        lines(
            {
                "id": 7,
                "response": "Otters hold hands.",
                "knowledge": ["Otters sleep holding hands.", " ", "Otters eat crabs."],
                "history": ["Tell me about otters."],
                "label": 1,
                "grade": 0.5,
                "verifiable": True,
                "system": "mine",
                "context": "otters",
                "source": "zoo",
                "weather": "fine",
            },
            {"response": "Otters fly.", "knowledge": "Otters swim.", "label": False},
            {"response": "I like them.", "knowledge": "", "label": None, "verifiable": False},
        ),
    )
    assert read_dataset(path) == [
        Example(
            id="7",
            response="Otters hold hands.",
            knowledge=("Otters sleep holding hands.", "Otters eat crabs."),
            history=("Tell me about otters.",),
            label=1,
            grade=0.5,
            verifiable=True,
            system="mine",
            context="otters",
            source="zoo",
        ),
        Example(id="2", response="Otters fly.", knowledge=("Otters swim.",), label=0),
        Example(id="3", response="I like them.", knowledge=(), verifiable=False),
    ]


NORMALISED = {
    "several models gave the response": (
        {"retriever": "knn", "models": ["small/beam", "large/beam"], "correctness": 0.25, "label": 0},
        Example(
            id="1", response="r", knowledge=("k",), label=0, grade=0.25, system="small/beam + large/beam", source="knn"
        ),
    ),
    "no label where nothing can be verified": (
        {"retriever": "gt", "models": ["small/beam"], "correctness": None, "label": None, "verifiable": False},
        Example(id="1", response="r", knowledge=("k",), verifiable=False, system="small/beam", source="gt"),
    ),
    "a turn that two systems answered": (
        {"context_id": 0, "dialogue": 3, "system": "a", "subsets": ["a_good"], "topic": "tea", "label": 1},
        Example("1", "r", ("k",), label=1, system="a", context="0", dialogue="3", source="a_good"),
    ),
    "a generic response": (
        {"begin_label": "Generic", "label": 0, "source": "cmu"},
        Example(id="1", response="r", knowledge=("k",), label=0, verifiable=False, source="cmu"),
    ),
    "a pair of sentences of natural language inference": (
        {"nli_label": "neutral", "label": 0, "history": []},
        Example(id="1", response="r", knowledge=("k",), label=0),
    ),
}


@pytest.mark.parametrize("name", NORMALISED)
def test_json_lines_with_the_field_names_of_normalised_sets(name: str, tmp_path: Path) -> None:
    fields, expected = NORMALISED[name]
    assert read_dataset(save(tmp_path, "set.jsonl", lines({"response": "r", "knowledge": "k"} | fields))) == [expected]


def test_a_pair_is_two_examples_of_one_context(tmp_path: Path) -> None:
    pair = {"id": "p", "knowledge": "Tea is brewed.", "consistent": "Tea is brewed.", "inconsistent": "Tea is fried."}
    good, bad = read_dataset(save(tmp_path, "pairs.jsonl", lines(pair)))
    assert (good.id, good.response, good.label, good.context) == ("p-consistent", "Tea is brewed.", 1, "p")
    assert (bad.id, bad.response, bad.label, bad.context) == ("p-inconsistent", "Tea is fried.", 0, "p")
    assert good.knowledge == bad.knowledge == ("Tea is brewed.",)


def test_csv(tmp_path: Path) -> None:
    text = table(
        ("response", "knowledge", "label", "grade", "verifiable", "history", "system"),
        ("Tea is hot, often.", 'They call it\n"chai".', "1.0", "0.75", "yes", "Hello.\nTea?\n", "a"),
        ("Tea is blue.", "Tea is brown.", "", "", "", "", ""),
    )
    assert read_dataset(save(tmp_path, "own.csv", text)) == [
        Example(
            id="1",
            response="Tea is hot, often.",
            knowledge=('They call it\n"chai".',),
            history=("Hello.", "Tea?"),
            label=1,
            grade=0.75,
            verifiable=True,
            system="a",
        ),
        Example(id="2", response="Tea is blue.", knowledge=("Tea is brown.",)),
    ]


def test_q2_cross_annotation_labels_inconsistency_1(tmp_path: Path) -> None:
    text = table(
        CROSS,
        ("0", "4", "1", "Tea", "Is tea hot?", "tea is hot .", "tea is cold .", "Tea is served hot.", "Yes!", "0", "1"),
        ("1", "4", "0", "Tea", "", "do you like tea ?", 'i like "it"', "Tea is a drink.", "No.", "0", "0"),
    )
    hot, cold, first, second = read_dataset(save(tmp_path, "cross_annotation.csv", text))
    assert hot == Example(
        id="0-dodeca",
        response="tea is hot .",
        knowledge=("Tea is served hot.",),
        history=("Is tea hot?",),
        label=1,
        system="dodeca",
        context="0",
        dialogue="4",
    )
    assert (cold.id, cold.label, cold.system, cold.context) == ("0-memnet", 0, "memnet", "0")
    assert (first.history, first.context, second.response, second.label) == ((), "1", 'i like "it"', 1)


@pytest.mark.parametrize(
    ("name", "label", "system", "source"),
    [
        ("dodeca_inconsistent.csv", 0, "dodeca", "dodeca_inconsistent"),
        ("memnet_consistent.csv", 1, "memnet", "memnet_consistent"),
        ("Consistent.csv", 1, "", "consistent"),
        ("sample.csv", None, "", ""),
    ],
)
def test_q2_sets_are_labelled_by_their_name(
    name: str, label: int | None, system: str, source: str, tmp_path: Path
) -> None:
    text = table((*Q2, "response", "knowledge", "gold"), ("0", "1", "2", "Tea", "Tea?", "yes .", "Tea is hot.", "No."))
    assert read_dataset(save(tmp_path, name, text)) == [
        Example(
            id="0",
            response="yes .",
            knowledge=("Tea is hot.",),
            history=("Tea?",),
            label=label,
            system=system,
            dialogue="1",
            source=source,
        )
    ]


def test_begin_does_not_quote(tmp_path: Path) -> None:
    text = BEGIN + (
        't5\twow\tThe "snurfer" is a board.\tHi\t"a board" they say\tFully attributable\n'
        '\ngpt2\tcmu\t"Rain\t\tit rains\tNot fully attributable\n'
        "doha\ttc\tFog.\tOh\thaha\tGeneric\n"
    )
    quoted, open_quote, generic = read_dataset(save(tmp_path, "begin_dev_wow.tsv", text))
    assert quoted == Example(
        id="0",
        response='"a board" they say',
        knowledge=('The "snurfer" is a board.',),
        history=("Hi",),
        label=1,
        system="t5",
        source="wow",
    )
    assert (open_quote.knowledge, open_quote.history, open_quote.label) == (('"Rain',), (), 0)
    assert (generic.label, generic.verifiable, generic.source) == (0, False, "tc")


def test_begin_of_2021(tmp_path: Path) -> None:
    text = (
        "evidence\tprevious turn\tresponse\tgold label\tcoarse label\tfull label set\n"
        "Rain is wet.\tRain?\tit is wet\tentailment\tentailment\ton-topic;faithful\n"
        "Rain is wet.\tRain?\tit is dry\tcontradiction\tcontradiction\ton-topic\n"
        "Rain is wet.\tRain?\tsure\tgeneric\tneutral\tgeneric\n"
    )
    examples = read_dataset(save(tmp_path, "dev_05_24_21.tsv", text))
    assert [(example.label, example.verifiable) for example in examples] == [(1, None), (0, None), (0, False)]
    assert (examples[0].knowledge, examples[0].history) == (("Rain is wet.",), ("Rain?",))


DIALOGUE = "A: I like tea. <br>B: So do I: it is hot. <br>"


def test_factual_labels_only_what_is_verifiable(tmp_path: Path) -> None:
    text = table(
        FACTUAL,
        ("9", "GPT2-small", "beam search", DIALOGUE, "Tea It is hot.", "Tea is hot.", "0.5", "No", "y"),
        ("9", "GPT2-large", "nucleus", DIALOGUE, "Tea It is hot.", "Tea is ice.", "0.333333333", "Yes", "y"),
        ("3", "GPT2-large", "DBS", DIALOGUE, "", "I love it!", "", "", "n"),
    )
    half, third, opinion = read_dataset(save(tmp_path, "knn.csv", text))
    assert half == Example(
        id="0",
        response="Tea is hot.",
        knowledge=("Tea It is hot.",),
        history=("I like tea.", "So do I: it is hot."),
        label=1,
        grade=0.5,
        verifiable=True,
        hallucinated=False,
        system="GPT2-small/beam search",
        context="knn-9",
        source="knn",
    )
    assert (third.label, third.grade, third.context, third.hallucinated) == (0, 0.333333333, "knn-9", True)
    assert opinion.hallucinated is None
    assert [example.label for example in label_by_hallucination([half, third, opinion])] == [1, 0, None]
    with pytest.raises(InvalidRequest, match="No example says whether it is a hallucination"):
        label_by_hallucination([opinion])
    assert (opinion.label, opinion.grade, opinion.verifiable, opinion.knowledge) == (None, None, False, ())


def test_factual_by_experts(tmp_path: Path) -> None:
    text = table(FACTUAL, ("0", "GPT2-small", "nucleus", DIALOGUE, "Tea.", "Mmh.", "1.0", "No", "n"))
    (example,) = read_dataset(save(tmp_path, "factual_dataset_expert.csv", text))
    assert (example.source, example.label, example.grade) == ("expert", None, None)


USR = [
    {
        "context": "tea or coffee ?\nboth , i think .\n",
        "fact": "tea is older than coffee .\n",
        "annotators": ["a", "b", "c"],
        "responses": [
            {"response": "i see . \n", "model": "Original Ground Truth", "Uses Knowledge": [1, 1, 1], "Overall": [5]},
            {"response": "tea is older .", "model": "Argmax Decoding", "Uses Knowledge": [1, 0, 1], "Overall": [3]},
        ],
    },
    {
        "context": "nice day\n",
        "fact": "_nofact\n",
        "annotators": ["a"],
        "responses": [{"response": "indeed", "model": "New Human Generated", "Uses Knowledge": [0], "Overall": [5]}],
    },
]


def test_usr(tmp_path: Path) -> None:
    path = save(tmp_path, "tc_usr_data.json", json.dumps(USR))
    original, argmax, human = read_dataset(path)
    assert argmax.grade == pytest.approx(2 / 3)
    assert (argmax.id, argmax.response, argmax.knowledge) == ("0-1", "tea is older .", ("tea is older than coffee .",))
    assert argmax.history == ("tea or coffee ?", "both , i think .")
    assert (original.context, argmax.context, human.context) == ("0", "0", "1")
    assert (human.knowledge, human.label) == ((), None)
    assert read_dataset(path, "usr-q2") == [argmax]


def test_usr_as_unieval_has_it(tmp_path: Path) -> None:
    shared = {"source": "tea or coffee ? \n both . \n\n", "context": "tea is old .\n"}
    flat = [
        shared | {"system_id": "Original Ground Truth", "system_output": "hm ", "scores": {"groundedness": 1.0}},
        shared | {"system_id": "Argmax Decoding", "system_output": "old .", "scores": {"groundedness": 0.25}},
        shared | {"context": "_nofact\n", "system_id": "x", "system_output": "no", "scores": {"groundedness": 0.0}},
    ]
    path = save(tmp_path, "topical_chat.json", json.dumps(flat))
    examples = read_dataset(path)
    assert [(example.grade, example.context, example.knowledge) for example in examples] == [
        (1.0, "0", ("tea is old .",)),
        (0.25, "0", ("tea is old .",)),
        (0.0, "1", ()),
    ]
    assert examples[0].history == ("tea or coffee ?", "both .")
    assert read_dataset(path, "usr-q2") == [examples[1]]


def test_usr_as_json_lines(tmp_path: Path) -> None:
    line = {"history": ["tea ?"], "uses_knowledge": 0.5, "scores": {"groundedness": 0.5}}
    text = lines(
        line | {"id": "a", "system": "Original Ground Truth", "knowledge": "Tea is old.", "response": "Hm."},
        line | {"id": "b", "system": "Argmax Decoding", "knowledge": "Tea is old.", "response": "Old."},
        line | {"id": "c", "system": "Argmax Decoding", "knowledge": "_nofact", "response": "No."},
    )
    path = save(tmp_path, "usr.jsonl", text)
    assert [(example.id, example.grade, example.knowledge) for example in read_dataset(path)] == [
        ("a", 0.5, ("Tea is old.",)),
        ("b", 0.5, ("Tea is old.",)),
        ("c", 0.5, ()),
    ]
    assert [example.id for example in read_dataset(path, "usr-q2")] == ["b"]


DNLI = [
    {
        "id": "dialogue_nli_test_1",
        "label": "positive",
        "sentence1": "my dog is big .",
        "sentence2": "i have a dog .",
        "triple1": ["i", "have_pet", "dog"],
        "triple2": ["i", "have_pet", "dog"],
        "dtype": "matchingtriple_up",
    },
    {"label": "neutral", "sentence1": "i ski .", "sentence2": "i have a dog .", "dtype": "miscutterance_up"},
    {"label": "negative", "sentence1": "i own no pets .", "sentence2": "i have a dog .", "dtype": "relationswap_up"},
]


@pytest.mark.parametrize("text", [json.dumps(DNLI), lines(*DNLI)], ids=["array", "lines"])
def test_dnli(text: str, tmp_path: Path) -> None:
    positive, neutral, negative = read_dataset(save(tmp_path, "dialogue_nli_verified_test.jsonl", text))
    assert positive == Example(
        id="dialogue_nli_test_1",
        response="my dog is big .",
        knowledge=("i have a dog .",),
        label=1,
        source="matchingtriple_up",
    )
    assert (neutral.id, neutral.label, negative.label) == ("1", 0, 0)


def path_of(*triples: tuple[str, str, str]) -> dict[str, Any]:
    return {"type": "action", "sender": "assistant", "metadata": {"path": [0.5, list(triples), "As a sentence."]}}


def chat(sender: str, message: str) -> dict[str, Any]:
    return {"type": "chat", "sender": sender, "message": message}


def test_opendialkg(tmp_path: Path) -> None:
    dialogue = [
        {"type": "action", "sender": "user", "action_id": "meta_thread/send_meta_message", "metadata": {"text": "go"}},
        chat("user", "Do you know Solaris?"),
        path_of(("Solaris", "written_by", "Stanisław Lem"), ("Stanisław Lem", "~written_by", "Eden")),
        chat("assistant", 'Lem wrote it, and "Eden".'),
        chat("user", "Thanks!"),
    ]
    text = table(
        ("Messages", "User Rating", "Assistant Rating"), (json.dumps(dialogue), "5", ""), (json.dumps([]), "", "")
    )
    assert read_dataset(save(tmp_path, "opendialkg.csv", text)) == [
        Example(
            id="0-3",
            response='Lem wrote it, and "Eden".',
            knowledge=("Solaris written by Stanisław Lem", "Eden written by Stanisław Lem"),
            history=("Do you know Solaris?",),
            system="assistant",
        )
    ]


def test_faithdial(tmp_path: Path) -> None:
    wizard = {
        "speaker": "Wizard",
        "knowledge": "Tea was first drunk in China.",
        "history": ["Tea?"],
        "VRM": ["Edification"],
    }
    utterances = [
        {"speaker": "Apprentice", "response": "Tea?"},
        wizard
        | {
            "response": "It was first drunk in China.",
            "original_response": "I love it! It was first drunk in China.",
            "BEGIN": ["Entailment", "Hallucination"],
        },
        wizard | {"response": "China drank it first.", "original_response": None, "BEGIN": ["Entailment"]},
        wizard | {"response": "It began in China.", "original_response": "Oh yes.", "BEGIN": ["Generic"]},
    ]
    examples = read_dataset(save(tmp_path, "train.json", json.dumps([{"utterances": utterances}])))
    assert examples[0] == Example(
        id="0-1-wow",
        response="I love it! It was first drunk in China.",
        knowledge=("Tea was first drunk in China.",),
        history=("Tea?",),
        label=0,
        system="wow",
        context="0-1",
    )
    assert [(example.id, example.label, example.verifiable) for example in examples[1:]] == [
        ("0-1-faithdial", 1, None),
        ("0-2-wow", 1, None),
        ("0-3-wow", None, False),
        ("0-3-faithdial", 1, None),
    ]
    flat = read_dataset(save(tmp_path, "flat.jsonl", lines(utterances[1])))
    assert [(example.id, example.label) for example in flat] == [("0-wow", 0), ("0-faithdial", 1)]


def test_every_format_is_described() -> None:
    assert all(form.about and name == name.lower() for name, form in list_formats().items())


def test_shuffled_knowledge_is_that_of_another_example() -> None:
    examples = [Example(str(i), f"r{i}", (f"k{i % 4}",), ("h",), label=i % 2, grade=0.5) for i in range(40)]
    shuffled = shuffle_knowledge(examples, 0)
    assert [(e.id, e.response, e.history) for e in shuffled] == [(e.id, e.response, e.history) for e in examples]
    assert all(new.knowledge != old.knowledge for new, old in zip(shuffled, examples, strict=True))
    assert {example.knowledge for example in shuffled} == {example.knowledge for example in examples}
    assert {(example.label, example.grade) for example in shuffled} == {(0, None)}
    assert shuffled == shuffle_knowledge(examples, 0)
    assert shuffled != shuffle_knowledge(examples, 1)
    with pytest.raises(InvalidRequest, match="the same knowledge"):
        shuffle_knowledge(examples[::4], 0)


def test_shuffled_knowledge_of_the_same_dialogue() -> None:
    """Dialogue 3 has one passage for all turns, and the last example names no dialogue."""
    examples = [Example(str(i), f"r{i}", (f"k{i % 4}-{i % 12}",), dialogue=str(i % 4)) for i in range(48)]
    flat = [msgspec.structs.replace(e, knowledge=("k3",)) if e.dialogue == "3" else e for e in examples]
    shuffled = shuffle_knowledge([*flat, Example("x", "r", ("k0-x",))], 0, same_dialogue=True)
    assert [e.id for e in shuffled] == [e.id for e in flat if e.dialogue != "3"]
    old = {e.id: e for e in flat}
    for example in shuffled:
        assert example.knowledge != old[example.id].knowledge
        assert example.knowledge[0].startswith(f"k{example.dialogue}-")
    with pytest.raises(InvalidRequest, match="name the dialogue of each row"):
        shuffle_knowledge([Example(str(i), "r", (f"k{i}",)) for i in range(4)], 0, same_dialogue=True)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("consistent", 1), ("Faithful", 1), ("TRUE", 1), ("1", 1), (1.0, 1), (True, 1),
        ("inconsistent", 0), ("hallucinated", 0), ("not_supported", 0), ("false", 0), (0, 0),
        ("", None), (None, None),
    ],
)  # fmt: skip
def test_labels_may_be_words(tmp_path: Path, label: Any, expected: int | None) -> None:
    row = {"response": "Rain.", "knowledge": "Rain.", "label": label}
    assert read_dataset(save(tmp_path, "own.jsonl", lines(row)))[0].label == expected
    cells = ("Rain.", "Rain.", "" if label is None else str(label))
    path = save(tmp_path, "own.csv", table(("response", "knowledge", "label"), cells))
    assert read_dataset(path)[0].label == expected


def test_other_names_compression_and_parquet_are_one_set(tmp_path: Path) -> None:
    rows = [{"question": "Why?", "answer": f"Rain {i}.", "contexts": ["Rain."], "label": i % 2} for i in range(3)]
    path = save(tmp_path, "own.jsonl", lines(*rows))
    expected = read_dataset(path)
    assert (expected[1].response, expected[1].knowledge, expected[1].history) == ("Rain 1.", ("Rain.",), ("Why?",))
    (tmp_path / "own.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_dataset(tmp_path / "own.jsonl.gz") == expected
    names = ("question", "text", "contexts", "label")
    cells = [(row["question"], row["answer"], row["contexts"][0], str(row["label"])) for row in rows]
    renamed = read_dataset(save(tmp_path, "own.csv", table(names, *cells)), columns={"response": "text"})
    assert renamed == expected
    pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "own.parquet")
    assert read_dataset(tmp_path / "own.parquet") == expected


def test_lettucedetect_spans_are_labels(tmp_path: Path) -> None:
    row = {"prompt": "Tea is hot.", "answer": "Tea is cold.", "split": "test", "task_type": "QA"}
    spans = [{"start": 7, "end": 11, "label": "Evident Conflict"}]
    path = save(tmp_path, "ragtruth.json", json.dumps([row | {"labels": spans}, row | {"labels": []}]))
    wrong, right = read_dataset(path)
    assert (wrong.response, wrong.knowledge) == ("Tea is cold.", ("Tea is hot.",))
    assert (wrong.label, wrong.unsupported) == (0, ((7, 11),))
    assert (right.label, right.unsupported) == (1, ())


def test_a_chat_log_and_a_table_with_semicolons_are_examples(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Tea is hot."}, {"role": "assistant", "content": "Tea is cold."}]
    (example,) = read_dataset(save(tmp_path, "chats.jsonl", lines({"messages": chat, "label": 0})))
    assert (example.response, example.knowledge, example.label) == ("Tea is cold.", ("Tea is hot.",), 0)
    (row,) = read_dataset(save(tmp_path, "rows.csv", "response;knowledge;label\nTea is cold.;Tea, it is hot.;0\n"))
    assert (row.response, row.knowledge, row.label) == ("Tea is cold.", ("Tea, it is hot.",), 0)


def test_unverifiable_is_a_label_of_neither_class(tmp_path: Path) -> None:
    row = {"response": "Hm.", "knowledge": "Tea is hot."}
    first, second = read_dataset(save(tmp_path, "a.jsonl", lines(row | {"label": " Unverifiable"}, row | {"label": 1})))
    assert (first.label, first.verifiable) == (None, False)
    assert (second.label, second.verifiable) == (1, None)


@pytest.mark.parametrize(("word", "label"), [("Yes", 1), ("no", 0), ("y", 1), ("N", 0), ("not_supported", 0)])
def test_words_are_labels(tmp_path: Path, word: str, label: int) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"response,knowledge,label\nIt rains.,Rain.,{word}\n", encoding="utf-8")
    assert [example.label for example in read_dataset(path)] == [label]


def test_the_guide_lists_the_words() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "calibration.md"
    rows = {line.split(" | ")[0].strip("| "): line for line in guide.read_text(encoding="utf-8").splitlines()}
    for name, words in (("consistent", CONSISTENT), ("inconsistent", INCONSISTENT)):
        listed = re.findall("`([^`]+)`", rows[name])
        assert sorted(listed) == sorted(word for word in words if not word.endswith(".0"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("own.csv", "response,knowledge,hhem,other\nIt rains.,Rain.,0.25,x\nIt snows.,Snow.,,y\n"),
        (
            "own.jsonl",
            lines(
                {"response": "It rains.", "knowledge": "Rain.", "hhem": 0.25},
                {"response": "It snows.", "knowledge": "Snow."},
            ),
        ),
    ],
)
def test_score_columns_are_read(tmp_path: Path, name: str, text: str) -> None:
    path = save(tmp_path, name, text)
    assert [example.scores for example in read_dataset(path, score_columns=["hhem"])] == [(("hhem", 0.25),), ()]
    assert [example.scores for example in read_dataset(path)] == [(), ()]


RECORD = {"order": 17, "items": [{"name": "pen", "paid": True}]}


@pytest.mark.parametrize(
    ("knowledge", "passages"),
    [
        (RECORD, ["order: 17\nitems 1: name: pen, paid: true"]),
        ([RECORD, "It is here."], ["order: 17\nitems 1: name: pen, paid: true", "It is here."]),
        (["It is here.", " ", {}], ["It is here."]),
        ("[sic] It is here.", ["[sic] It is here."]),
    ],
)
def test_knowledge_is_read_as_the_engine_reads_it(knowledge: Any, passages: list[str], tmp_path: Path) -> None:
    row = {"response": "It is here.", "knowledge": knowledge, "label": 1}
    cell = knowledge if isinstance(knowledge, str) else json.dumps(knowledge)
    files = [
        save(tmp_path, "a.jsonl", json.dumps(row)),
        save(tmp_path, "b.csv", table(("response", "knowledge", "label"), ("It is here.", cell, "1"))),
    ]
    requests = [example.request for path in files for example in read_dataset(path)]
    requests += [example.request for example in make_examples([row])]
    for path in files:
        with read_lines(path) as lines_of_score:
            requests += [
                make_request(line.row["response"], line.row["knowledge"]) for line in lines_of_score if line.row
            ]
    assert requests == [make_request("It is here.", passages)] * 5
