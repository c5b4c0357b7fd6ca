"""Generates parts of the documentation site from code and measurements, as hooks of mkdocs.

- ``reference/cli.md`` is written from the commands themselves.
- ``{{ code PATH }}`` in a page is replaced by a Python file.
- ``{{ include PATH }}`` in a page is replaced by a Markdown file outside ``docs/``, its links rewritten.
- ``{{ quality METRICS }}`` is replaced by the metrics' ROC-AUC, from the pages of quality.
- ``{{ facts METRICS }}`` is replaced by table rows from the metrics' records.
- ``{{ figure CELLS }}`` is replaced by the last cell of the row of a page of quality that begins with these cells.
- ``{{ domains }}`` and ``{{ range RATE }}`` are replaced by figures of the default verdict (quality_default.md).
- Links to ``DOWNLOADS`` lead to copies of these files.
- ``{{ cost ROLES }}`` and the other names in ``TABLES`` are replaced by figures from bench/results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"
DOWNLOADS = (
    "requirements.lock",
    "deploy/helm/groundwire/alerts.yaml",
    "deploy/nginx/groundwire.conf",
    "deploy/systemd/groundwire.service",
)
"""Files of the repository that the site has too, for installations from wheels."""
REPOSITORY_FILES = re.compile(r"\]\((?:\.\./)+((?!docs/)[^)\s#]+)(#[^)]*)?\)")
sys.path.insert(0, str(ROOT))


# The command line


def write_cli_page() -> str:
    """Return the reference of the ``groundwire`` command as Markdown."""
    import typer

    from groundwire.cli import app

    command = typer.main.get_command(app)
    return "# Command line\n\n" + "\n".join(_describe(command, "groundwire", 2))


def _describe(command: Any, path: str, level: int) -> Iterator[str]:
    if level > 2:
        yield f"{'#' * (level - 1)} `{path}`\n"
    if command.help:
        yield command.help.replace("\b", "").strip() + "\n"
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = [path, *(_metavar(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])]
    if getattr(command, "commands", None):
        yield f"```text\n{path} COMMAND [ARGUMENTS] [OPTIONS]\n```\n"
        for name, child in command.commands.items():
            yield from _describe(child, f"{path} {name}", level + 1)
        return
    yield f"```text\n{' '.join(usage)}\n```\n"
    rows = [parameter for parameter in (*arguments, *options) if not getattr(parameter, "hidden", False)]
    if rows:
        yield "| argument or option | type | default | meaning |"
        yield "|---|---|---|---|"
        for parameter in rows:
            names = (
                [_metavar(parameter).replace("|", "\\|")]
                if parameter in arguments
                else [*parameter.opts, *parameter.secondary_opts]
            )
            yield (
                f"| {', '.join(f'`{name}`' for name in names)} | {_type(parameter)} | {_default(parameter)} "
                f"| {_cell(getattr(parameter, 'help', None) or '')} |"
            )
        yield ""


def _metavar(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip("[].")
    return name if argument.required else f"[{name}]"


def _type(parameter: Any) -> str:
    """Return the type of a parameter; newer versions of typer describe it, older ones keep click's type."""
    if getattr(parameter, "is_flag", False):
        return "flag"
    described = getattr(parameter, "type_descriptor", None)
    if described is None:
        return str(parameter.type.name)
    annotation = described.annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        choices = tuple(choice.value for choice in annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    names = {bool: "flag", float: "number", int: "integer", str: "text", Path: "path"}
    return names.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _default(parameter: Any) -> str:
    default = parameter.default() if callable(parameter.default) else parameter.default
    if default is None or default in ("", (), []):
        return "required" if parameter.required else "–"
    if default is True or default is False:
        return "on" if default else "off"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# Figures from the pages of quality and bench/results


COMPACT = (("compact", "`q2`"), ("compact_all", "all metrics"))
"""Results of ``bench.compact``, and what they are of."""


def load_results(name: str) -> dict[str, Any]:
    """Return a benchmark's results."""
    document: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return document


QUALITY_PAGES = ("quality_default.md", "quality.md")
"""Where figures are looked up, in this order: the default verdict's page, and the page of all metrics."""


def read_quality(metric: str) -> dict[str, str]:
    """Return a metric's ROC-AUC of every labelled set, from the first page whose table has it; empty without one."""
    for page in QUALITY_PAGES:
        lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
        header = next(i for i, line in enumerate(lines) if line.startswith("| metric |"))
        for line in lines[header + 2 :]:
            if not line.startswith("|"):
                break
            cells = _cells(line)
            if cells[0] == f"`{metric}`":
                return dict(zip(_cells(lines[header])[1:], (cell.strip("*") for cell in cells[1:]), strict=True))
    return {}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def write_quality_table(metrics: str) -> str:
    """Return a table of ROC-AUC: a row for each labelled set, a column for each metric, the verdict's last."""
    names = [*metrics.split(), "verdict"]
    figures = {name: read_quality(name) for name in names}
    missing = [name for name, by_set in figures.items() if not by_set]
    if missing:
        raise ValueError(f"No page of quality has a row for {', '.join(missing)}.")
    titles = ["the verdict" if name == "verdict" else f"`{name}`" for name in names]
    sets = [name for name in figures["verdict"] if all(name in by_set for by_set in figures.values())]
    rows = [[labelled_set, *(figures[name][labelled_set] for name in names)] for labelled_set in sets]
    return _table(["ROC-AUC", *titles], rows)


def read_figure(cells: str) -> str:
    """Return the last cell of the first row of a page of quality that begins with ``cells``, parted by semicolons."""
    begin = [cell.strip() for cell in cells.split(";")]
    for page in QUALITY_PAGES:
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            row = _cells(line)
            if line.startswith("|") and row[: len(begin)] == begin:
                return row[-1]
    raise ValueError(f"No page of quality has a row that begins with {' | '.join(begin)}.")


DOMAINS = {
    "answers about articles of Wikipedia": ("q2_wow", "begin_wow_test"),
    "chat about films": ("begin_cmu_dev",),
    "chat about news and trivia": ("begin_tc_dev",),
    "answers with knowledge that a search found": ("factual_crowd_knn", "factual_crowd_dpr"),
    "answers with the right knowledge, by crowd workers": ("factual_crowd_gt",),
    "claims and one sentence of evidence": ("fever_symmetric_test",),
    "inference between turns of a dialogue": ("clasp_dnli_test",),
    "summaries of news, a sentence each": ("falke2019_pairs",),
    "true sentences, one name, number or word edited": ("edits",),
}
"""Kinds of text, and the labelled sets of them."""


def read_decisions() -> dict[str, dict[str, str]]:
    """Return the row of every labelled set in the table of the default verdict's decisions, by column."""
    lines = (DOCS / QUALITY_PAGES[0]).read_text(encoding="utf-8").splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("| set | examples |"))
    titles, rows = _cells(lines[header]), {}
    for line in lines[header + 2 :]:
        if not line.startswith("|"):
            break
        cells = _cells(line)
        rows[cells[0]] = dict(zip(titles, cells, strict=True))
    return rows


def write_domains() -> str:
    """Return what the default verdict does to each kind of text: a row for each labelled set."""
    decisions = read_decisions()
    titles = ("ROC-AUC", "false positive rate", "false negative rate")
    rows = [
        [domain, f"`{name}`", *(decisions[name][title] for title in titles)]
        for domain, names in DOMAINS.items()
        for name in names
    ]
    return _table(["kind of text", "labelled set", *titles], rows)


def write_range(title: str) -> str:
    """Return the lowest and the highest of a rate over the labelled sets, as whole percents."""
    rates = [float(row[title].partition("%")[0]) for row in read_decisions().values()]
    return f"{min(rates):.0f} % and {max(rates):.0f} %"


PROFILES = ("strict", "balanced", "lenient")
ANSWERS, WRONG_ANSWERS = 1000, 50
"""What the example of the page of questions counts."""


def read_profiles() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the false positive rate and the power by metrics and profile, on answers as support bots give them."""

    def share(counts: dict[str, int]) -> float:
        return counts.get("inconsistent", 0) / sum(counts.values())

    return {
        (run["metrics"], profile["profile"]): (
            share(profile["labels"]["consistent"]),
            share(profile["labels"]["inconsistent"]),
        )
        for run in load_results("profiles")["runs"]
        for profile in run["profiles"]
    }


def write_profiles() -> str:
    """Return the error rates of each profile, and what they mean for a thousand answers."""
    rates = read_profiles()
    rows = [
        [
            f"`{metrics}`",
            f"`{profile}`",
            f"{100 * positive:.0f} %",
            f"{100 - 100 * power:.0f} %",
            *_count_stopped(positive, power),
        ]
        for metrics in dict.fromkeys(metrics for metrics, _ in rates)
        for profile in PROFILES
        for positive, power in [rates[metrics, profile]]
    ]
    header = ["metrics", "profile", "false positive rate", "false negative rate"]
    stopped = [f"of {WRONG_ANSWERS} wrong, stopped", f"of {ANSWERS - WRONG_ANSWERS} right, stopped"]
    return _table([*header, *stopped], rows)


def _count_stopped(positive: float, power: float) -> tuple[str, str]:
    return f"{WRONG_ANSWERS * power:.0f}", f"{(ANSWERS - WRONG_ANSWERS) * positive:.0f}"


def write_stopped(choice: str) -> str:
    """Return how many wrong and right answers of a thousand are stopped, for metrics and a profile."""
    metrics, profile = choice.split()
    wrong, right = _count_stopped(*read_profiles()[metrics, profile])
    return f"{wrong} of the {WRONG_ANSWERS} wrong answers and {right} of the {ANSWERS - WRONG_ANSWERS} right ones"


def write_facts(names: str) -> str:
    """Return table rows with what the metrics' records say: description, roles, range, groups, package."""
    from groundwire.engine.metrics import find

    metrics = [metric for metric in map(find, names.split()) if metric is not None]
    if len(metrics) < len(names.split()):
        raise ValueError(f"One of the metrics {names} does not exist.")
    first = metrics[0]
    bounds = "unbounded" if first.bounds is None else " to ".join(f"{bound:g}" for bound in first.bounds)
    groups = ", ".join(f"`{group}`" for group in ("all", *sorted(first.groups)))
    rows = [[f"`{metric.name}`", metric.description] for metric in metrics]
    rows.append(["roles", ", ".join(f"`{role}`" for role in sorted(first.roles)) or "none: no model"])
    rows += [["range", bounds], ["groups", groups]]
    if first.package:
        rows.append(["needs", f"the package `{first.package}`: `pip install 'groundwire[metrics]'`"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


ROLE_METRICS = {
    "detector.consistency": "`detector.consistency`",
    "detector.verifiability": "`verifiability`",
    "embedder": "`bertscore`",
    "lm": "`pmi` and `upmi`",
    "nli": "`nli`, and the comparisons of `q2`",
    "qa": "`q2`, `q2_no_nli` and `feqa`: answers",
    "qg": "`q2`, `q2_no_nli` and `feqa`: questions",
    "reader": "`reader`",
    "spans": "`q2`, `q2_no_nli` and `feqa`: spans and the personal filter",
    "token_classifier": "`token_classifier`",
}


def _share_graph(role: str) -> list[str]:
    """Return the roles of the embedded bundle that read one graph with a role, itself included.

    Their batches are named by the first.
    """
    roles = json.loads((ROOT / "bundles" / "compact" / "bundle.json").read_text(encoding="utf-8"))["roles"]
    graph = roles[role].get("graph")
    return sorted(name for name, record in roles.items() if graph and record.get("graph") == graph) or [role]


def _name_roles(role: str) -> str:
    names = ", ".join(f"`{name}`" for name in _share_graph(role))
    return f"{names}: one graph" if "," in names else names


def write_role_times() -> str:
    """Return the run time of each role for one response, when all metrics are asked for, one response at a time."""
    results = load_results("compact_all")["results"]["latency"]
    responses = results["total"]["repeats"]
    rows = [
        [
            _name_roles(role),
            "; ".join(ROLE_METRICS[name] for name in _share_graph(role)),
            f"{stage['calls'] / responses:.1f}",
            _ms(stage["run_ms"] / responses),
        ]
        for role, stage in sorted(results["stages"].items())
    ]
    return _table(["role", "used by", "calls per response", "milliseconds per response"], rows)


def write_role_cost(roles: str) -> str:
    """Return one sentence: what the graphs of the named roles cost per response in the run of every metric."""
    document = load_results("compact_all")
    latency = document["results"]["latency"]
    responses = latency["total"]["repeats"]
    graphs = dict.fromkeys(_share_graph(role)[0] for role in roles.split())
    times = {role: latency["stages"][role]["run_ms"] / responses for role in graphs}
    parts = " + ".join(f"{_ms(time)} ms ({_name_roles(role)})" for role, time in times.items())
    total = f" = {_ms(sum(times.values()))} ms" if len(times) > 1 else ""
    machine = document["machine"]
    return (
        f"{parts}{total} of model run time per response, one response at a time on {machine['cores']} cores "
        f"({machine['processor']}; [how it was measured](../benchmarks.md)). "
        "Metrics share equal calls, and batches of several roles run at the same time: all metrics of a response "
        f"together take {_ms(latency['total']['p50_ms'])} ms (p50)."
    )


def write_q2_time() -> str:
    """Return the median milliseconds of a response's Q²."""
    return _ms(load_results("compact")["results"]["latency"]["total"]["p50_ms"])


def write_values_cost() -> str:
    """Return one sentence: what ``values`` costs per response, beside word overlap."""
    document = load_results("values")
    short, long = document["results"][:2]
    machine = document["machine"]
    return (
        f"{short['values']['p50_ms']:.1f} ms of processor time per response (p50; p95 "
        f"{short['values']['p95_ms']:.1f} ms) where it has {short['characters']:.0f} characters with its knowledge, "
        f"{long['values']['p50_ms']:.1f} ms where they are {long['characters']:.0f}. Word overlap takes "
        f"{short['overlap']['p50_ms']:.1f} and {long['overlap']['p50_ms']:.1f} ms. Measured on "
        f"{machine['cores']} cores with a load of {machine['load_average']:.0f} ({machine['processor']}; "
        "[how it was measured](../benchmarks.md))."
    )


def write_nph_times() -> str:
    """Return the latency of critique and repair with the nph bundle."""
    document = load_results("nph")
    titles = {
        "critique": "critique",
        "refine": "critique and repair",
        "refine_flagged": "– of responses with a flagged name",
        "refine_cold": "– the first request of each dialogue",
    }
    rows = [[title, *(_ms(document["results"][key][p]) for p in ("p50_ms", "p95_ms"))] for key, title in titles.items()]
    cores = document["machine"]["cores"]
    return _table([f"one response at a time, {cores} cores", "p50 ms", "p95 ms"], rows)


def write_latency() -> str:
    """Return latency and throughput of the compact bundle, for full Q² and for all metrics."""
    rows = []
    for name, title in COMPACT:
        document = load_results(name)
        total = document["results"]["latency"]["total"]
        by_way = {way["way"]: way["per_second"] for way in document["results"]["throughput"]}
        rows.append(
            [
                title,
                document["machine"]["processor"],
                *(_ms(total[key]) for key in ("p50_ms", "p95_ms", "p99_ms")),
                *(f"{by_way[way]:.1f}" for way in ("one at a time", "score_many", "8 threads")),
            ]
        )
    ways = ["responses/s, one at a time", "`score_many`", "8 threads"]
    return _table(["metrics", "processor", "p50 ms", "p95 ms", "p99 ms", *ways], rows)


def write_tiers() -> str:
    """Return quality and time of every metric and of the groups' verdicts, from fast to slow."""
    document = load_results("tiers")
    rows = [
        [
            f"`{row['name']}`" if row["kind"] == "metric" else f"**verdict of `{row['name']}`**",
            _ms(row["wall"]["p50_ms"]),
            _ms(row["wall"]["p95_ms"]),
            _ms(row["processor_ms"]),
            f"{row['scored']:.0%}",
            "–" if row["roc_auc"] is None else f"{row['roc_auc']:.3f}",
            "yes" if row["frontier"] else "",
        ]
        for row in document["results"]
    ]
    machine, settings = document["machine"], document["settings"]
    note = f"{settings['responses']} responses of {settings['sets']}; {machine['cores']} cores, {machine['processor']}."
    titles = ["metric", "p50 ms", "p95 ms", "processor ms", "scored", "ROC-AUC", "nothing is faster and better"]
    return f"{_table(titles, rows)}\n\n{note}"


def write_growth() -> str:
    """Return the memory of a process over many requests."""
    points = {point["requests"]: point for point in load_results("growth")["points"]}
    rows = [
        [f"{requests:,}", f"{points[requests]['resident_mb']:.0f}", f"{points[requests]['in_use_mb']:.0f}"]
        for requests in (200, 1000, 2000, 5000, 10000)
    ]
    return _table(["requests", "resident MB", "allocated MB"], rows)


def write_scaling() -> str:
    """Return how the cost grows with each kind of size."""
    rows = [
        [
            growth["name"],
            " · ".join(map(str, growth["sizes"])),
            " · ".join(map(_ms, growth["processor_ms"])),
            f"{growth['exponent']:.2f}",
        ]
        for growth in load_results("scaling")["results"]
    ]
    return _table(["work", "sizes", "processor ms", "exponent"], rows)


def write_padding() -> str:
    """Return how much extractive QA is padded on a GPU."""
    rows = [
        [row["runs"], f"{row['ratio']:.2f}", f"{row['replays']:.1f}", f"{row['waits']:.1f}"]
        for row in load_results("padding")["results"]["rows"]
    ]
    return _table(["runs", "padded / real tokens", "replays for 20 rows", "waits"], rows)


def write_host() -> str:
    """Return the processor time of each layer beside the graphs, for each set of metrics alone and together."""
    columns = [
        (f"{layers['metrics']}, {how}", {layer: spent for layer, spent in layers[how].items() if layer != "graphs"})
        for layers in load_results("host")["results"]
        for how in ("alone", "together")
    ]
    order = max((times for _, times in columns), key=len)
    rows = [[layer, *(f"{times[layer]:.2f}" if layer in times else "" for _, times in columns)] for layer in order]
    sums = [f"{sum(times.values()):.2f}" for _, times in columns]
    without = [f"{sum(times.values()) - times.get('spans', 0.0):.2f}" for _, times in columns]
    names = ["layer", *(name for name, _ in columns)]
    return _table(names, [*rows, ["sum", *sums], ["without spaCy (spans)", *without]])


def write_processes() -> str:
    """Return the throughput of one process and of two."""
    rows = [
        [kind, str(each["processes"]), f"{each['per_second']:.1f}", f"{each['own_ms']:.2f}"]
        for kind, name in (("no models", "processes"), ("models", "processes_models"))
        for each in load_results(name)["results"]["measured"]
    ]
    return _table(["models", "processes", "responses a second", "processor ms of the engine's own process, each"], rows)


def write_start() -> str:
    """Return load time and memory of fresh processes."""
    rows = []
    for name, title in COMPACT:
        results = load_results(name)["results"]
        starts = results["start"]
        median = sorted(starts, key=lambda start: start["load_ms"])[len(starts) // 2]
        rows.append(
            [
                title,
                f"{results['bundle_mb']:.1f}",
                *(_ms(median[key]) for key in ("import_ms", "load_ms", "first_score_ms")),
                f"{median['peak_mb']:.0f}",
            ]
        )
    return _table(["metrics", "bundle MB", "import ms", "load ms", "first score ms", "peak MB"], rows)


def write_paper_sizes() -> str:
    """Return int8 graphs of the papers' model sizes beside PyTorch."""
    rows = [
        [
            piece["model"],
            piece["input"],
            f"{piece['int8_mb']:.0f}",
            *(_ms(piece[side]["p50_ms"]) for side in ("int8", "fp32", "peer")),
            f"{piece['ratio']:.1f} ×",
        ]
        for piece in load_results("paper_size")["results"]["pieces"]
    ]
    return _table(["model", "input", "int8 MB", "int8 ms", "fp32 ms", "PyTorch fp32 ms", "int8 over PyTorch"], rows)


def write_peers() -> str:
    """Return what each model takes in each runtime, and how many times slower than int8 that is."""
    document = load_results("peers")
    ours = {(row["role"], row["input"]): row["wall"]["p50_ms"] for row in document["results"] if row["side"] == "int8"}
    rows = [
        [
            row["model"],
            row["input"],
            f"**Groundwire {row['side']}**" if row["side"] in ("int8", "float32") else row["side"],
            _ms(row["wall"]["p50_ms"]),
            _ms(row["wall"]["p95_ms"]),
            f"{row['wall']['p50_ms'] / ours[row['role'], row['input']]:.2f} ×",
        ]
        for row in document["results"]
    ]
    machine, settings = document["machine"], document["settings"]
    versions = ", ".join(f"{name} {settings[name]}" for name in ("ctranslate2", "openvino", "optimum", "onnxruntime"))
    note = f"{settings['threads']} threads of {machine['processor']}; {versions}."
    return f"{_table(['model', 'input', 'runtime', 'p50 ms', 'p95 ms', 'time over int8'], rows)}\n\n{note}"


def write_serving() -> str:
    """Return what the service takes beside its engine, and what it keeps over many requests."""
    document, soak = load_results("serving"), load_results("soak_http")["results"]
    rows = [
        [
            str(level["callers"]),
            *(_ms(level[side][key]) for side in ("engine", "service") for key in ("p50_ms", "p95_ms", "p99_ms")),
            f"{level['engine_per_second']:.0f}",
            f"{level['service_per_second']:.0f}",
        ]
        for level in document["results"]["callers"]
    ]
    titles = ["callers", *(f"{side} {p} ms" for side in ("engine", "service") for p in ("p50", "p95", "p99"))]
    overload, points, fates = document["results"]["overload"], soak["points"], soak["fates"]
    middle, end = points[len(points) // 2]["resident_mb"], points[-1]["resident_mb"]
    note = (
        f"With two and a half times as many requests as it can serve, {overload['in_time_ratio']:.0%} of the capacity "
        f"were answered in time. In {soak['requests']:,} requests over HTTP, of which clients gave up "
        f"{fates['hung up'] + fates['died half way']:,}, each of the others was answered once, and the server had "
        f"{middle:.1f} MB in the middle and {end:.1f} MB at the end (`python -m bench.soak_http`). "
        f"{document['machine']['cores']} cores, {document['machine']['processor']}."
    )
    return f"{_table([*titles, 'engine/s', 'service/s'], rows)}\n\n{note}"


def write_targets() -> str:
    """Return every target of every benchmark: what was measured, and whether it was met."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        for target in load_results(path.stem).get("targets", ()):
            limit = f"{target['sense']} {target['limit']:g} {target['unit']}".strip()
            met = "yes" if target["passed"] else "**no**"
            rows.append([f"`{path.stem}`", target["name"], limit, f"{target['measured']:.3g}", met])
    return _table(["benchmark", "target", "wanted", "measured", "met"], rows)


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def include(path: str) -> str:
    """Return a Markdown file outside ``docs/`` without its title, its links to ``docs/`` rewritten for the site."""
    text = (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[1]
    text = re.sub(r"\]\((?:\.\./)+docs/([^)]+)\)", r"](\1)", text)
    text = re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE)
    return REPOSITORY_FILES.sub(r"](#)", text)


def include_code(path: str) -> str:
    """Return a Python file as a code block."""
    return f"```python\n{(ROOT / path).read_text(encoding='utf-8').strip()}\n```"


TABLES: dict[str, Callable[..., str]] = {
    "code": include_code,
    "cost": write_role_cost,
    "domains": write_domains,
    "facts": write_facts,
    "figure": read_figure,
    "include": include,
    "growth": write_growth,
    "host": write_host,
    "latency": write_latency,
    "nph": write_nph_times,
    "padding": write_padding,
    "paper_sizes": write_paper_sizes,
    "peers": write_peers,
    "profiles": write_profiles,
    "q2_time": write_q2_time,
    "quality": write_quality_table,
    "range": write_range,
    "roles": write_role_times,
    "processes": write_processes,
    "scaling": write_scaling,
    "serving": write_serving,
    "start": write_start,
    "stopped": write_stopped,
    "targets": write_targets,
    "tiers": write_tiers,
    "values_cost": write_values_cost,
}
SEARCH_BOOSTS = {
    "guides/": 4,
    "faq": 2,
    "metrics/": 2,
    "concepts": 2,
    "quickstart": 2,
    "release": 0.3,
    "architecture": 0.5,
}
"""How much a page counts in the site's search, by the begin of its path; others count 1."""
MARK = re.compile(r"\{\{ (\w+)(?: ([^}]+?))? \}\}")


def expand(text: str) -> str:
    """Replace every ``{{ name argument }}`` of a page by what ``TABLES`` makes of it."""
    return MARK.sub(lambda mark: TABLES[mark[1]](*([mark[2]] if mark[2] else [])), text)


# Hooks of mkdocs


def on_files(files: Any, config: Any) -> Any:
    """Add the page of the command line, and the files to download."""
    from mkdocs.structure.files import File

    for path in DOWNLOADS:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "reference/cli.md", content=write_cli_page()))
    return files


def on_page_markdown(markdown: str, page: Any, **context: Any) -> str:
    """Expand the marks of a page, and let the search list what users read before what contributors read."""
    boost = next((boost for prefix, boost in SEARCH_BOOSTS.items() if page.file.src_uri.startswith(prefix)), 1)
    page.meta.setdefault("search", {}).setdefault("boost", boost)
    downloads = "|".join(map(re.escape, DOWNLOADS))
    return re.sub(rf"\]\(\.\./((?:\.\./)*(?:{downloads})\))", r"](\1", expand(markdown))
