"""The embedded int8 bundles on a GPU, in float32."""

from __future__ import annotations

import pytest

from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.kinds import kind_of
from tests.support import cuda_double


@pytest.fixture(scope="module", params=["compact", "nph"])
def embedded(request: pytest.FixtureRequest) -> LocalRuntime:
    with pytest.warns(RuntimeWarning, match="run on cuda with float32 weights, .* were compared with no checkpoint"):
        return LocalRuntime.load(request.param, device="cuda")


def test_every_role_answers_on_the_device(embedded: LocalRuntime) -> None:
    for role, record in embedded.bundle.manifest.roles.items():
        with cuda_double.memory_content(0x3C if role == "embedder" else 0), cuda_double.count() as counts:
            outcomes = embedded.run(role, kind_of(record).warm_calls(role), 8)
        assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)], role
        # Heads of one graph are captured once, by the first of them.
        assert (counts.launches + counts.replays > 0) == (role != "spans"), role
        # Look-ups and their casts, and no weights of products. What is captured runs three times before.
        runs = counts.launches if not counts.replays else 3 * counts.total("capture").times
        assert counts.total("launch", "signed char").times <= max(30, 6 * runs), role


def test_the_identity_says_what_ran(embedded: LocalRuntime) -> None:
    identity = embedded.identity
    assert identity.device == "cuda"
    assert set(identity.precision.split("+")) <= {"int8-dequantized", "mixed-dequantized"}


def test_auto_leaves_int8_on_the_cpu() -> None:
    assert LocalRuntime.load("nph", device="auto", threads=1).identity.device == "cpu"
