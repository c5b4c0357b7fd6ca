"""Score one response: the verdict, the words that are not supported, and how Q² found them."""

from __future__ import annotations

from groundwire import engine


def main() -> None:
    """Score a response with two wrong numbers."""
    score = engine.score(
        "Each player begins with twelve pieces on a board of 100 squares.",
        "Chess is played on a board of 64 squares. Each player begins with sixteen pieces, among them eight pawns.",
        history=["Can you explain chess to me?"],
        metrics="all",
    )
    print(f"{score.verdict.label}, probability of consistent {score.verdict.probability:.2f}")
    for span in score.unsupported:
        print(f"  {span.text!r}: {span.reason}; the knowledge says {span.knowledge_says!r}")
    for question in score.metrics["q2"].explanation.questions:
        if question.kept:
            print(f"  {question.question} {question.response_answer!r} / {question.knowledge_answer!r}")
    print(score.signature)


if __name__ == "__main__":
    main()
