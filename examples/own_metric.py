"""Add a metric and test it without models: the smallest probability of entailment of any sentence."""

from __future__ import annotations

from groundwire.metrics import (
    METRICS,
    Classified,
    Classify,
    Engine,
    FakeRuntime,
    Metric,
    MetricResult,
    Options,
    Read,
    ReadRequest,
    RoleInfos,
    Steps,
    register,
)


def score_worst_sentence(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """Yield one call per sentence, then return the smallest probability of entailment, 0–1."""
    answers = yield [Classify("nli", request.knowledge, sentence.text) for sentence in request.sentences]
    return MetricResult("worst_sentence", "scored", min(answer.probabilities["entailment"] for answer in answers))


def classify(call: Classify) -> Classified:
    """Answer a call as a model would: a sentence is entailed if the knowledge contains it."""
    entailed = float(call.hypothesis in " ".join(call.premises))
    shares = {"entailment": entailed, "neutral": 1 - entailed, "contradiction": 0.0}
    return Classified(max(shares, key=lambda label: shares[label]), shares, 0, Read(windows=1, characters=1, total=1))


def main() -> None:
    """Register the metric and score two responses on a fake runtime."""
    register(
        Metric(
            name="worst_sentence",
            title="Worst sentence",
            description="the smallest probability that the knowledge entails a sentence of the response",
            compute=score_worst_sentence,
            roles=frozenset({"nli"}),
            groups=frozenset({"fast"}),
        )
    )
    with Engine(FakeRuntime({"nli": classify})) as engine:
        for response in ("Bees fly.", "Bees fly. Bees sing."):
            score = engine.score(response, "Bees fly. Bees make honey.", metrics="worst_sentence")
            print(f"{score.metrics['worst_sentence'].value:.1f}  {response}")
    del METRICS["worst_sentence"]


if __name__ == "__main__":
    main()
