"""Writes the tables of the benchmarks from ``bench/results/``."""

from __future__ import annotations

from markdown_tables import format_ms, format_table
from repository_files import RESULTS, load_results

COMPACT = (("compact", "`q2`"), ("compact_all", "all metrics"))
"""Results of ``bench.compact``, and what they are of."""


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
                *(format_ms(total[key]) for key in ("p50_ms", "p95_ms", "p99_ms")),
                *(f"{by_way[way]:.1f}" for way in ("one at a time", "score_many", "8 threads")),
            ]
        )
    ways = ["responses/s, one at a time", "`score_many`", "8 threads"]
    return format_table(["metrics", "processor", "p50 ms", "p95 ms", "p99 ms", *ways], rows)


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
                *(format_ms(median[key]) for key in ("import_ms", "load_ms", "first_score_ms")),
                f"{median['peak_mb']:.0f}",
            ]
        )
    return format_table(["metrics", "bundle MB", "import ms", "load ms", "first score ms", "peak MB"], rows)


def write_tiers() -> str:
    """Return quality and time of every metric and of the groups' verdicts, from fast to slow."""
    document = load_results("tiers")
    rows = [
        [
            f"`{row['name']}`" if row["kind"] == "metric" else f"**verdict of `{row['name']}`**",
            format_ms(row["wall"]["p50_ms"]),
            format_ms(row["wall"]["p95_ms"]),
            format_ms(row["processor_ms"]),
            f"{row['scored']:.0%}",
            "–" if row["roc_auc"] is None else f"{row['roc_auc']:.3f}",
            "yes" if row["frontier"] else "",
        ]
        for row in document["results"]
    ]
    machine, settings = document["machine"], document["settings"]
    note = f"{settings['responses']} responses of {settings['sets']}; {machine['cores']} cores, {machine['processor']}."
    titles = ["metric", "p50 ms", "p95 ms", "processor ms", "scored", "ROC-AUC", "nothing is faster and better"]
    return f"{format_table(titles, rows)}\n\n{note}"


def write_scaling() -> str:
    """Return how the cost grows with each kind of size."""
    rows = [
        [
            growth["name"],
            " · ".join(map(str, growth["sizes"])),
            " · ".join(map(format_ms, growth["processor_ms"])),
            f"{growth['exponent']:.2f}",
        ]
        for growth in load_results("scaling")["results"]
    ]
    return format_table(["work", "sizes", "processor ms", "exponent"], rows)


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
    return format_table(names, [*rows, ["sum", *sums], ["without spaCy (spans)", *without]])


def write_padding() -> str:
    """Return how much extractive QA is padded on a GPU."""
    rows = [
        [row["runs"], f"{row['ratio']:.2f}", f"{row['replays']:.1f}", f"{row['waits']:.1f}"]
        for row in load_results("padding")["results"]["rows"]
    ]
    return format_table(["runs", "padded / real tokens", "replays for 20 rows", "waits"], rows)


def write_processes() -> str:
    """Return the throughput of one process and of two."""
    rows = [
        [kind, str(each["processes"]), f"{each['per_second']:.1f}", f"{each['own_ms']:.2f}"]
        for kind, name in (("no models", "processes"), ("models", "processes_models"))
        for each in load_results(name)["results"]["measured"]
    ]
    return format_table(
        ["models", "processes", "responses a second", "processor ms of the engine's own process, each"], rows
    )


def write_growth() -> str:
    """Return the memory of a process over many requests."""
    points = {point["requests"]: point for point in load_results("growth")["points"]}
    rows = [
        [f"{requests:,}", f"{points[requests]['resident_mb']:.0f}", f"{points[requests]['in_use_mb']:.0f}"]
        for requests in (200, 1000, 2000, 5000, 10000)
    ]
    return format_table(["requests", "resident MB", "allocated MB"], rows)


def write_nph_times() -> str:
    """Return the latency of critique and repair with the nph bundle."""
    document = load_results("nph")
    titles = {
        "critique": "critique",
        "refine": "critique and repair",
        "refine_flagged": "– of responses with a flagged name",
        "refine_cold": "– the first request of each dialogue",
    }
    rows = [
        [title, *(format_ms(document["results"][key][p]) for p in ("p50_ms", "p95_ms"))]
        for key, title in titles.items()
    ]
    cores = document["machine"]["cores"]
    return format_table([f"one response at a time, {cores} cores", "p50 ms", "p95 ms"], rows)


def write_paper_sizes() -> str:
    """Return int8 graphs of the papers' model sizes beside PyTorch."""
    rows = [
        [
            piece["model"],
            piece["input"],
            f"{piece['int8_mb']:.0f}",
            *(format_ms(piece[side]["p50_ms"]) for side in ("int8", "fp32", "peer")),
            f"{piece['ratio']:.1f} ×",
        ]
        for piece in load_results("paper_size")["results"]["pieces"]
    ]
    return format_table(
        ["model", "input", "int8 MB", "int8 ms", "fp32 ms", "PyTorch fp32 ms", "int8 over PyTorch"], rows
    )


def write_peers() -> str:
    """Return what each model takes in each runtime, and how many times slower than int8 that is."""
    document = load_results("peers")
    ours = {(row["role"], row["input"]): row["wall"]["p50_ms"] for row in document["results"] if row["side"] == "int8"}
    rows = [
        [
            row["model"],
            row["input"],
            f"**Groundwire {row['side']}**" if row["side"] in ("int8", "float32") else row["side"],
            format_ms(row["wall"]["p50_ms"]),
            format_ms(row["wall"]["p95_ms"]),
            f"{row['wall']['p50_ms'] / ours[row['role'], row['input']]:.2f} ×",
        ]
        for row in document["results"]
    ]
    machine, settings = document["machine"], document["settings"]
    versions = ", ".join(f"{name} {settings[name]}" for name in ("ctranslate2", "openvino", "optimum", "onnxruntime"))
    note = f"{settings['threads']} threads of {machine['processor']}; {versions}."
    return f"{format_table(['model', 'input', 'runtime', 'p50 ms', 'p95 ms', 'time over int8'], rows)}\n\n{note}"


def write_serving() -> str:
    """Return what the service takes beside its engine, and what it keeps over many requests."""
    document, soak = load_results("serving"), load_results("soak_http")["results"]
    rows = [
        [
            str(level["callers"]),
            *(format_ms(level[side][key]) for side in ("engine", "service") for key in ("p50_ms", "p95_ms", "p99_ms")),
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
    return f"{format_table([*titles, 'engine/s', 'service/s'], rows)}\n\n{note}"


def write_targets() -> str:
    """Return every target of every benchmark: what was measured, and whether it was met."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        for target in load_results(path.stem).get("targets", ()):
            limit = f"{target['sense']} {target['limit']:g} {target['unit']}".strip()
            met = "yes" if target["passed"] else "**no**"
            rows.append([f"`{path.stem}`", target["name"], limit, f"{target['measured']:.3g}", met])
    return format_table(["benchmark", "target", "wanted", "measured", "met"], rows)
