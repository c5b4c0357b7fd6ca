"""Parsed sentences in two schemes, and tiny pipelines that know them by heart."""

from __future__ import annotations

from dataclasses import dataclass

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

# word/part of speech/head/relation in Universal Dependencies/head/relation in ClearNLP style; heads count from 1, 0 is
# the root. Entities are marked by words below.
PARSED = {
    "name, copula, coordination, prepositions": (
        "Bob/PROPN/5/nsubj/2/compound Ross/PROPN/1/flat/3/nsubj was/AUX/5/cop/0/ROOT the/DET/5/det/5/det "
        "creator/NOUN/0/ROOT/3/attr and/CCONJ/7/cc/5/cc host/NOUN/5/conj/5/conj of/ADP/10/case/5/prep "
        "The/DET/10/det/10/det Joy/PROPN/5/nmod/8/pobj of/ADP/12/case/10/prep Painting/PROPN/10/nmod/11/pobj "
        "./PUNCT/5/punct/3/punct",
        ["Bob Ross", "the creator", "host", "The Joy", "Painting"],
    ),
    "possessors, an adverb before a predicate": (
        "John/PROPN/5/nmod:poss/5/poss 's/PART/1/case/1/case new/ADJ/5/amod/5/amod red/ADJ/5/amod/5/amod "
        "car/NOUN/12/nsubj/6/nsubj is/AUX/12/cop/0/ROOT also/ADV/12/advmod/6/advmod in/ADP/12/case/6/prep "
        "my/PRON/10/nmod:poss/10/poss friend/NOUN/12/nmod:poss/12/poss 's/PART/10/case/10/case "
        "garage/NOUN/0/ROOT/8/pobj",
        ["John's new red car", "my friend's garage"],
    ),
    "passive, agent, quantity, bare temporal phrase": (
        "Over/ADV/3/advmod/3/quantmod 600/NUM/3/compound/3/compound million/NUM/4/nummod/4/nummod "
        "records/NOUN/6/nsubj:pass/6/nsubjpass were/AUX/6/aux:pass/6/auxpass sold/VERB/0/ROOT/0/ROOT "
        "by/ADP/9/case/6/agent the/DET/9/det/9/det singer/NOUN/6/obl:agent/7/pobj last/ADJ/11/amod/11/amod "
        "year/NOUN/6/obl:unmarked/6/npadvmod ./PUNCT/6/punct/6/punct",
        ["Over 600 million records", "the singer"],
    ),
    "list of subjects, relative clause": (
        "Coffee/NOUN/10/nsubj/9/nsubj ,/PUNCT/3/punct/1/punct tea/NOUN/1/conj/1/conj and/CCONJ/6/cc/3/cc "
        "both/DET/6/det:predet/6/predet kinds/NOUN/1/conj/3/conj of/ADP/8/case/6/prep milk/NOUN/6/nmod/7/pobj "
        "are/AUX/10/cop/0/ROOT drinks/NOUN/0/ROOT/9/attr that/PRON/13/obj/13/dobj people/NOUN/13/nsubj/13/nsubj "
        "love/VERB/10/acl:relcl/10/relcl",
        ["Coffee", "tea", "both kinds", "milk", "drinks", "that", "people"],
    ),
    "expletive there": (
        "There/PRON/2/expl/2/expl were/VERB/0/ROOT/0/ROOT 5/NUM/4/nummod/4/nummod cups/NOUN/2/nsubj/2/attr "
        "on/ADP/7/case/2/prep the/DET/7/det/7/det table/NOUN/2/obl/5/pobj ./PUNCT/2/punct/2/punct",
        ["5 cups", "the table"],
    ),
    "expletive it": (
        "It/PRON/3/expl/3/nsubj often/ADV/3/advmod/3/advmod rains/VERB/0/ROOT/0/ROOT ./PUNCT/3/punct/3/punct",
        ["It"],
    ),
    "a chunk inside a possessor blocks the outer one": (
        "You/PRON/2/nsubj/2/nsubj fed/VERB/0/ROOT/0/ROOT a/DET/4/det/4/det friend/NOUN/8/nmod:poss/8/poss "
        "of/ADP/6/case/4/prep mine/PRON/4/nmod/5/pobj 's/PART/4/case/4/case dog/NOUN/2/obj/2/dobj",
        ["You", "mine"],
    ),
    "object predicate, apposition": (
        "They/PRON/2/nsubj/2/nsubj elected/VERB/0/ROOT/0/ROOT him/PRON/2/obj/2/dobj "
        "president/NOUN/2/xcomp/2/oprd ,/PUNCT/8/punct/4/punct a/DET/8/det/8/det hard/ADJ/8/amod/8/amod "
        "job/NOUN/4/appos/4/appos ./PUNCT/2/punct/2/punct",
        ["They", "him", "president", "a hard job"],
    ),
    "two objects, compound noun": (
        "He/PRON/2/nsubj/2/nsubj gave/VERB/0/ROOT/0/ROOT the/DET/4/det/4/det children/NOUN/2/iobj/2/dative "
        "ice/NOUN/6/compound/6/compound cream/NOUN/2/obj/2/dobj",
        ["He", "the children", "ice cream"],
    ),
    "numbered name": (
        "World/PROPN/2/compound/3/compound War/PROPN/4/nsubj/3/compound II/PROPN/2/nummod/4/nsubj "
        "ended/VERB/0/ROOT/0/ROOT ./PUNCT/4/punct/4/punct",
        ["World War II"],
    ),
    "an adverb before a questioned predicate": (
        "also/ADV/2/advmod/3/advmod what/PRON/0/ROOT/3/attr is/AUX/2/cop/0/ROOT the/DET/5/det/5/det "
        "deal/NOUN/2/nsubj/3/nsubj",
        ["what", "the deal"],
    ),
    "quoted modifier": (
        'A/DET/5/det/5/det "/PUNCT/3/punct/5/punct big/ADJ/5/amod/5/amod "/PUNCT/3/punct/5/punct '
        "lie/NOUN/6/nsubj/6/nsubj spread/VERB/0/ROOT/0/ROOT",
        ['A "big" lie'],
    ),
    "personal": (
        "where/ADV/4/advmod/4/advmod did/AUX/4/aux/4/aux you/PRON/4/nsubj/4/nsubj leave/VERB/0/ROOT/0/ROOT "
        "your/PRON/6/nmod:poss/6/poss car/NOUN/4/obj/4/dobj ?/PUNCT/4/punct/4/punct",
        ["you", "your car"],
    ),
    "not personal": (
        "who/PRON/2/nsubj/2/nsubj told/VERB/0/ROOT/0/ROOT "  # terms: literal
        "you/PRON/2/iobj/2/dative ?/PUNCT/2/punct/2/punct",
        ["who", "you"],
    ),
    "seen by": (
        "i/PRON/3/nsubj:pass/3/nsubjpass was/AUX/3/aux:pass/3/auxpass seen/VERB/0/ROOT/0/ROOT "
        "by/ADP/5/case/3/agent bob/PROPN/3/obl:agent/4/pobj",
        ["i", "bob"],
    ),
}


ENTITIES = {"Bob Ross": "PERSON", "bob": "PERSON", "John": "PERSON", "World War II": "EVENT", "600 million": "CARDINAL"}


SCHEMES = {"ud": (2, 3), "clearnlp": (4, 5)}


@dataclass(frozen=True)
class Parsed:
    words: list[str]
    spaces: list[bool]
    pos: list[str]
    heads: list[int]
    deps: list[str]

    @property
    def text(self) -> str:
        return "".join(word + " " * space for word, space in zip(self.words, self.spaces, strict=True))

    def doc(self, nlp: Language) -> Doc:
        return Doc(nlp.vocab, words=self.words, spaces=self.spaces, pos=self.pos, heads=self.heads, deps=self.deps)


def parsed(table: str, scheme: str) -> Parsed:
    rows = [row.split("/") for row in table.split()]
    head, dep = SCHEMES[scheme]
    words = [row[0] for row in rows]
    quotes = [i for i, word in enumerate(words) if word == '"']
    glued = {i - 1 for i, word in enumerate(words) if word in ("'s", ".", ",", "?")} | {len(rows) - 1}
    glued |= {i if n % 2 == 0 else i - 1 for n, i in enumerate(quotes)}
    heads = [int(row[head]) for row in rows]
    return Parsed(
        words=words,
        spaces=[i not in glued for i in range(len(rows))],
        pos=[row[1] for row in rows],
        heads=[i if h == 0 else h - 1 for i, h in enumerate(heads)],
        deps=[row[dep] for row in rows],
    )


def train_tiny(scheme: str) -> Language:
    """A pipeline that knows the sentences of the table by heart."""
    nlp = spacy.blank("en")
    spacy.util.fix_random_seed(1)
    width = 32
    embed = {"@architectures": "spacy.HashEmbedCNN.v2", "width": width, "depth": 2, "embed_size": 500}
    embed |= {"window_size": 1, "maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": width}
    transitions = {"@architectures": "spacy.TransitionBasedParser.v2", "tok2vec": listener, "hidden_width": 32}
    transitions |= {"extra_state_tokens": False, "maxout_pieces": 2, "use_upper": True}
    nlp.add_pipe("tok2vec", config={"model": embed})
    nlp.add_pipe(
        "morphologizer",
        config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}},  # terms: literal
    )
    nlp.add_pipe("parser", config={"model": transitions | {"state_type": "parser"}, "min_action_freq": 1})
    nlp.add_pipe("ner", config={"model": transitions | {"state_type": "ner"}})
    nlp.add_pipe("senter")
    examples = []
    for table, _ in PARSED.values():
        gold = parsed(table, scheme)
        entities = [
            (at, at + len(name), label) for name, label in ENTITIES.items() if (at := gold.text.find(name)) >= 0
        ]
        annotation = {"words": gold.words, "spaces": gold.spaces, "pos": gold.pos, "entities": entities}
        annotation |= {"heads": gold.heads, "deps": gold.deps}
        examples.append(Example.from_dict(nlp.make_doc(gold.text), annotation))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.006
    for _ in range(60):
        nlp.update(examples, sgd=optimizer, exclude=["senter"])
    return nlp
