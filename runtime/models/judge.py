"""Language models that are given a prompt and answer by one of two words: a classifier that reads a prompt.

The graph gives the logits of the two words alone, of an encoder-decoder's first step or of the token after the prompt,
so everything after the prompt's tokens is the classifier's.
"""

from __future__ import annotations

from ..bundles.manifest import JudgeRole
from ..calls import Classify
from ..ort.session import DeviceProfile, Graph
from ..texts.tokenization import TextEncoder, Window
from ..texts.unread import NOTHING_UNREAD, read_pair
from .classifier import Classifier
from .graphs import SplitCall


class Judge(Classifier):
    """A graph that answers a prompt, with its tokenizer."""

    def __init__(self, role: JudgeRole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        super().__init__(role, session, encoder, profile)
        self._pieces = encoder.split_prompt(role.template.first)

    def split(self, call: Classify, max_windows: int) -> SplitCall:
        """One prompt or more for each premise; TooLong when they are more than ``max_windows``."""
        windows: list[Window] = []
        response = knowledge = NOTHING_UNREAD
        for premise in call.premises:
            fields = {"premise": premise, "hypothesis": call.hypothesis}
            encoded = self._encoder.encode_prompt(
                self._pieces, fields, "premise", self._role.stride, max_windows, len(windows)
            )
            windows += encoded
            response, knowledge = encoded[0].unread[1], knowledge.join(encoded[0].unread[0])
        total = sum(map(len, call.premises))
        return SplitCall(windows, read_pair(response, len(call.hypothesis), knowledge, total, len(windows)))
