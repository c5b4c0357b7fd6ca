"""The files of ``deploy/`` name settings, paths and numbers that the service has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import uvicorn
import yaml

from groundwire.engine.processes.process import EXIT_SECONDS
from groundwire.service import server
from groundwire.service.application import OPERATIONS
from groundwire.service.monitoring import Monitoring
from groundwire.service.problems import STATUS
from groundwire.service.settings import Settings, list_hints, load_settings
from tests.support.offline import ROOT
from tests.support.traffic import EXACT, make_score

FOLDER = ROOT / "deploy"
CHART = FOLDER / "helm" / "groundwire"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
MANIFESTS = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
ALERTS = yaml.safe_load((CHART / "alerts.yaml").read_text(encoding="utf-8"))
LABEL_VALUES = {
    "status": {str(status) for status in STATUS.values()},
    "route": {operation.path for operation in OPERATIONS},
    "label": {"unknown"},
    "part": {"server", "workers"},
}
VARIABLE = re.compile(r"GROUNDWIRE_([A-Z_]+)")


def test_variables_are_settings() -> None:
    named = {name for path in FILES for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    assert {"HOST", "TOKENS", "EXTRA", "DRAIN_DELAY_MS"} <= named
    assert {name.lower() for name in named} <= list_hints(Settings).keys()


def test_probes_ask_paths_that_exist() -> None:
    deployment, *_ = MANIFESTS
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    paths = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}
    assert {*paths.values()} <= {operation.path for operation in OPERATIONS}
    assert "http://127.0.0.1:8000/readyz" in (FOLDER / "Dockerfile").read_text(encoding="utf-8")


def list_numbers() -> set[str]:
    """The names of a service that has given a verdict."""
    monitoring = Monitoring(EXACT)
    monitoring.add_score(make_score(0.9))
    monitoring.update_usage("server", 1.0, 1, 1)
    return set(re.findall(r"^# TYPE (\w+)", monitoring.render().decode(), re.M))


def test_the_dashboard_shows_numbers_that_exist() -> None:
    dashboard = json.loads((FOLDER / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    known = list_numbers()
    for query in queries:
        for name in re.findall(r"groundwire_\w+", query):
            assert {name, re.sub(r"_(bucket|sum|count)$", "", name)} & known, name
        assert query.count("(") == query.count(")")
        for label in re.findall(r"by \((\w+)", query):
            assert label in {"status", "le", "label", "role", "metric", "alertname"}


def test_the_alerts_are_about_numbers_and_labels_that_exist() -> None:
    known = list_numbers()
    (group,) = ALERTS["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names))
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        series = re.findall(r"groundwire_\w+", rule["expr"])
        assert series
        for name in series:
            assert {name, re.sub(r"_(bucket|sum|count)$", "", name)} & known, name
        for label, value in re.findall(r'(\w+)="([^"]+)"', rule["expr"]):
            assert value in LABEL_VALUES[label], rule["alert"]


def test_the_guide_says_what_to_do_about_every_alert() -> None:
    guide = (ROOT / "docs" / "guides" / "operate.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(Groundwire[A-Z]\w+)`", guide)) == {rule["alert"] for rule in ALERTS["groups"][0]["rules"]}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is a part of Prometheus")
def test_prometheus_reads_the_alerts() -> None:
    command = ["promtool", "check", "rules", str(CHART / "alerts.yaml")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


FIRING = {
    "GroundwireLoopLate": {
        f'groundwire_loop_lag_seconds_bucket{{le="{le}"}}': "0+60x30" for le in ("1.0", "2.0", "+Inf")
    }
    | {'groundwire_loop_lag_seconds_bucket{le="0.5"}': "0x30"},
    "GroundwireFoldsSlow": {
        'groundwire_fold_duration_seconds_bucket{le="2.0"}': "0x30",
        'groundwire_fold_duration_seconds_bucket{le="5.0"}': "0+60x30",
        'groundwire_fold_duration_seconds_bucket{le="+Inf"}': "0+60x30",
    },
    "GroundwireConnections": {"groundwire_open_connections": "990x30"},
    "GroundwireStreams": {"groundwire_streams": "64x30"},
    "GroundwireProcessorFull": {
        'groundwire_cpu_seconds_total{part="server"}': "0+30x30",
        'groundwire_cpu_seconds_total{part="workers"}': "0+210x30",
    },
    "GroundwireMemory": {
        'groundwire_resident_bytes{part="server"}': "4e8x30",
        'groundwire_resident_bytes{part="workers"}': "2.3e9x30",
    },
    "GroundwireDescriptors": {
        'groundwire_file_descriptors{part="server"}': "900x30",
        "groundwire_max_file_descriptors": "1024x30",
    },
}
"""Series, a value each minute, under which an alert about the server's own freeze fires."""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is a part of Prometheus")
@pytest.mark.parametrize("name", FIRING)
def test_an_alert_fires(name: str, tmp_path: Path) -> None:
    (rule,) = (rule for rule in ALERTS["groups"][0]["rules"] if rule["alert"] == name)
    series = [{"series": _add_instance(text), "values": values} for text, values in FIRING[name].items()]
    quiet = [each | {"values": "0x30"} for each in series if "max_" not in each["series"]]
    expected = {"exp_labels": rule["labels"] | {"instance": "a"}, "exp_annotations": rule["annotations"]}
    text = json.dumps(expected).replace("{{ $labels.instance }}", "a")
    tests = [
        {"interval": "1m", "input_series": given, "alert_rule_test": [{"eval_time": "25m", "alertname": name} | alerts]}
        for given, alerts in ((series, {"exp_alerts": [json.loads(text)]}), (quiet, {"exp_alerts": []}))
    ]
    file = tmp_path / "alerts.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(CHART / "alerts.yaml")], "tests": tests}), encoding="utf-8")
    checked = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _add_instance(series: str) -> str:
    name, _, labels = series.partition("{")
    return f'{name}{{instance="a",{labels}' if labels else f'{name}{{instance="a"}}'


def test_the_images_are_pinned() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", service["image"]), name


def test_the_guide_lists_numbers_that_exist() -> None:
    guide = (ROOT / "docs" / "guides" / "serving.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(groundwire_\w+)", guide))
    known = list_numbers()
    assert listed <= known
    assert {name for name in known if not name.endswith("_created")} == listed
    operate = (ROOT / "docs" / "guides" / "operate.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(groundwire_\w+)", operate)) <= known


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.suffix == ".yaml" and "templates" not in path.parts],
    ids=lambda path: path.name,
)
def test_the_manifests_are_yaml(path: object) -> None:
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))  # type: ignore[attr-defined]
    assert all(isinstance(document, dict) for document in documents)


def test_the_pods_have_time_to_stop() -> None:
    deployment, *_ = MANIFESTS
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {entry["name"]: entry.get("value", "token") for entry in container["env"]}
    settings = load_settings(environment=variables)
    grace = pod["terminationGracePeriodSeconds"] * 1000
    ending = (
        server.HANDSHAKE_SECONDS
        + server.ACCEPT_SECONDS
        + server.SETTLE_SECONDS
        + server.LAST_WORDS_SECONDS
        + EXIT_SECONDS
    )
    assert 7 < ending < 8, "values.yaml and the guide say 8 seconds"
    assert settings.drain_delay_ms + settings.drain_timeout_ms + 8_000 <= grace
    probe = container["readinessProbe"]
    assert settings.drain_delay_ms >= probe["periodSeconds"] * 1000


def test_a_service_manager_waits_for_the_requests_and_leaves_the_processes_to_the_server() -> None:
    unit = (FOLDER / "systemd" / "groundwire.service").read_text(encoding="utf-8")
    values = dict(re.findall(r"^(\w+)=(.*)$", unit, re.M))
    settings = load_settings(environment=dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.M)))
    assert values["KillMode"] == "mixed"
    assert settings.drain_delay_ms + settings.drain_timeout_ms + 8_000 <= int(values["TimeoutStopSec"]) * 1000


def test_the_proxy_fits_the_limits_of_the_server() -> None:
    proxy = (FOLDER / "nginx" / "groundwire.conf").read_text(encoding="utf-8")
    values = dict(re.findall(r"^ *(\w+) +([^;]+);", proxy.partition("location")[0], re.M))
    settings = Settings()
    assert int(values["client_max_body_size"].removesuffix("m")) * 1_000_000 == settings.max_body_bytes
    assert float(values["proxy_read_timeout"].removesuffix("s")) * 1000 > settings.max_deadline_ms
    assert float(values["keepalive_timeout"].removesuffix("s")) < uvicorn.Config(None).timeout_keep_alive
    parts = re.search(r"\^/\(([\w|]+)\)\$ \{\n +client_max", proxy)
    assert parts is not None
    assert {f"/{part}" for part in parts[1].split("|")} <= {operation.path for operation in OPERATIONS}


def test_the_chart_and_the_image_have_the_version_of_groundwire() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    (container,) = MANIFESTS[0]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"groundwire:{VERSION}"
    for name in ("Dockerfile", "compose.yaml"):
        tags = re.findall(r"groundwire:(\d[\w.]*)", (FOLDER / name).read_text(encoding="utf-8"))
        assert {*tags} == {VERSION}, name


def test_the_manifests_select_the_pods() -> None:
    by_kind = {manifest["kind"]: manifest for manifest in MANIFESTS}
    kinds = {"Deployment", "Service", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget"}
    assert by_kind.keys() == kinds
    labels = by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        by_kind["Deployment"]["spec"]["selector"]["matchLabels"],
        by_kind["Service"]["spec"]["selector"],
        by_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels
    assert by_kind["NetworkPolicy"]["spec"]["egress"] == []
    scaled = by_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("Deployment", by_kind["Deployment"]["metadata"]["name"])
    assert "replicas" not in by_kind["Deployment"]["spec"]


def test_the_settings_of_the_chart_are_settings() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values["settings"].keys() <= list_hints(Settings).keys()
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert values.keys() == schema["properties"].keys() - {"global"}
