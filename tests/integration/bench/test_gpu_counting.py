"""What the measurement of a GPU counts beside a rate."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.gpu.counting import count_qa_tokens, read_children_seconds
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ExtractiveQARole
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.ort.session import DeviceProfile, forward
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support.host_cuda import use_host_memory


def test_tokens_of_extractive_qa_are_counted_with_their_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the shapes of a GPU, in the host's memory: on the double no question has words, and nothing is asked."""
    use_host_memory(monkeypatch)
    bundle, profile = Bundle.open("compact"), DeviceProfile.of("cpu", 1)
    role = bundle.manifest.roles["qa"]
    assert isinstance(role, ExtractiveQARole)
    graph = CapturedEncoder.load(bundle.file(role.graph), role.max_tokens, profile)
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    windows = [encoder.encode_pair("Who sang?", "Elvis sang. " * count) for count in (1, 2, 7)]
    with count_qa_tokens() as tokens:
        batches = [batch for batch, *_ in forward(graph, windows, role.pad_id, profile)]
    assert sorted(row for batch in batches for row in batch) == [0, 1, 2]
    assert tokens.real == sum(len(window.ids) for window in windows)
    assert tokens.real < tokens.padded <= 4 * tokens.real


def test_processor_time_of_children_is_read_while_they_run() -> None:
    before = read_children_seconds()
    program = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint()\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        spent = read_children_seconds() - before
        child.communicate(b"\n")
    assert 0.25 < spent < 30
