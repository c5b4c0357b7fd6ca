"""Checks the Helm chart, and writes ``deploy/kubernetes.yaml`` from it.

    python deploy/chart.py            what `make deploy-check` runs
    python deploy/chart.py write      what `make deploy-write` runs

Helm's own library lints and renders the chart. The manifests of ``VALUES`` are compared with the schemas of the oldest
and the newest Kubernetes that the chart is for. ``deploy/kubernetes.yaml`` must be the manifests of the default values.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import yaml

FOLDER = Path(__file__).resolve().parent
CHART = FOLDER / "helm" / "groundwire"
MANIFESTS = FOLDER / "kubernetes.yaml"
HEAD = """\
# kubectl create secret generic groundwire --from-literal=tokens="$(openssl rand -hex 32)"
# kubectl apply -f deploy/kubernetes.yaml
# Written by `make deploy-write` from the chart in deploy/helm/groundwire and its default values; not by hand.
"""
KUBERNETES = ("1.25.0", "1.37.0")
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "serviceMonitor": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "token": {"secret": "prometheus", "key": "token"},
        },
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {
            "from": [{"namespaceSelector": {"matchLabels": {"name": "bots"}}}],
            "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
        },
        "image": {"repository": "registry.example/groundwire", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "settings": {"max_body_bytes": 3_000_000, "log_texts": False, "metrics": "fast"},
        "podLabels": {"team": "bots"},
        "podAnnotations": {"note": "text"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "cpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    },
    "nothing optional": {
        "autoscaling": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
}
CUSTOM = {"ServiceMonitor": {"spec": {"selector", "endpoints"}}, "PrometheusRule": {"spec": {"groups"}}}
"""Kinds that Kubernetes itself has no schema for, and the fields that they need."""


def render(values: dict[str, Any]) -> str:
    """Return the manifests of a release named ``groundwire``."""
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values, name="groundwire", namespace="default")
    manifests = [text.strip() for name, text in sorted(files.items()) if name.endswith(".yaml") and text.strip()]
    return "---\n".join(f"{text}\n" for text in manifests)


def list_problems(manifests: str) -> list[str]:
    """Return what the schemas of Kubernetes, unknown fields included, say against manifests."""
    problems = []
    for manifest in yaml.safe_load_all(manifests):
        kind = manifest["kind"]
        if kind in CUSTOM:
            needed = CUSTOM[kind]["spec"]
            problems += [f"{kind}: no spec.{field}" for field in sorted(needed - manifest["spec"].keys())]
            continue
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{kind}, Kubernetes {version}: {error.message}")
    return problems


def check() -> int:
    """Print every problem of the chart; return 1 if there is one."""
    linted = helm_python.lint(CHART, strict=True)
    problems = [*linted["errors"], *(entry["error"] for entry in linted["messages"] if entry["severity"] > 1)]
    for title, values in VALUES.items():
        manifests = render(values)
        schema_problems = list_problems(manifests)
        print(f"{title}: {len(list(yaml.safe_load_all(manifests)))} manifests, {len(schema_problems)} problems")
        problems += schema_problems
    for wrong in (
        {"replica": 1},
        {"settings": {"tokens": "secret"}},
        {"image": {"repository": "a", "digest": "sha256:1"}},
    ):
        try:
            render(wrong)
        except helm_python.HelmError:
            continue
        problems.append(f"The chart accepts {wrong}.")
    if HEAD + render({}) != MANIFESTS.read_text(encoding="utf-8"):
        problems.append("deploy/kubernetes.yaml is not what the chart renders: run `make deploy-write`.")
    print("\n".join(map(str, problems)) or f"Helm {helm_python.helm_sdk_version()} and the schemas find no problem.")
    return int(bool(problems))


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        MANIFESTS.write_text(HEAD + render({}), encoding="utf-8")
    else:
        raise SystemExit(check())
