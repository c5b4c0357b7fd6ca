"""What an embedded bundle fails of its gates on this processor.

python -m tests.support.gates NAME              # prints JSON: the failures of each role
"""

from __future__ import annotations

import json
import sys

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ReferenceRole
from groundwire.runtime.models.graphs import load_graph
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import ReferenceTexts


def measure_gates(name: str) -> dict[str, list[str]]:
    """What the roles of a bundle fail of their gates, by role."""
    bundle, profile, failures = Bundle.open(name), DeviceProfile.of(Device("cpu"), 1), {}
    for role, record in bundle.manifest.roles.items():
        if isinstance(record, ReferenceRole) and isinstance(record.reference, str):
            texts = ReferenceTexts.open(bundle, record, load_graph(bundle, record, profile), profile)
            parity = texts.compare(texts.run(texts.reference.windows))
            print(f"{name}: {role} agrees in {parity.decision_agreement:.4f}", file=sys.stderr)
            failures[role] = list(texts.list_failures(parity))
    return failures


if __name__ == "__main__":
    print(json.dumps(measure_gates(sys.argv[1])))
