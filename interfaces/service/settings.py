"""Settings of the service, and of the proxy: from the command line, the environment, and a TOML file, in this order."""

from __future__ import annotations

import stat
import sys
import tomllib
import types
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from groundwire.engine import InvalidRequest
from groundwire.engine.schema.base import Count, Milliseconds
from groundwire.runtime.arguments import OptionRecord, name_values, suggest
from groundwire.runtime.bundles.calibration import ProfileName

PREFIX = "GROUNDWIRE_"
GATEWAY = "*"
"""The tenant whose requests name their own."""
Delay: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=3_600_000)]


class Settings(OptionRecord, frozen=True, kw_only=True):
    """How the service runs: variables and keys of a file; some are options of ``groundwire serve``."""

    bundle: str = "compact"
    """Name of an embedded bundle, or a directory written by `groundwire export`. `reader` loads beside compact."""
    extra: tuple[str, ...] = ()
    """Further bundles, whose roles are added, such as nph for /refine."""
    device: str = "auto"
    """auto, cpu, cuda, tensorrt or tensorrt-rtx; cuda:1 is the second GPU."""
    threads: Count | None = None
    """CPU threads of all worker processes together. Default: all usable processors."""
    calibration: str | None = None
    """File of `groundwire calibrate` to use in place of the bundle's calibration."""
    metrics: tuple[str, ...] = ()
    """Metrics of requests that name none. Default: the metrics that the bundle's verdict is drawn from."""

    host: str = "127.0.0.1"
    """Address to listen at; 0.0.0.0 for all networks."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8000
    """Port to listen at; 0 chooses a free one."""
    workers: Annotated[int, msgspec.Meta(ge=0, le=256)] = 1
    """Processes that compute, each with models of its own, beside the server's process. 0 computes in that one."""
    drain_delay_ms: Delay = 0.0
    """After SIGTERM: milliseconds in which the server is not ready but takes requests, so that a load balancer can
    turn to others."""
    drain_timeout_ms: Delay = 30_000.0
    """After that: milliseconds for the requests that are not finished."""

    tokens: tuple[str, ...] = ()
    """Bearer tokens, one of which every request but those for health must have; without any, all may ask."""
    token_file: str | None = None
    """File with further bearer tokens, one in a line. It is read at the start."""
    tenant_tokens: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Bearer tokens by tenant, one or several: a request with one is of that tenant. The tenant `*` is a gateway, whose
    requests name their tenant in `options.tenant`; of all other requests that option is ignored. In the environment
    `a=TOKEN,b=TOKEN`, and for a second token of a tenant `a=TOKEN,a=OTHER`."""
    classify_label: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] = "HALLUCINATED"
    """Label of the spans of /classify, as the program that asks has it in its mapping."""
    ui: bool = True
    """Serve the page /ui, on which people try the service, and the description /docs. They have no texts of others and
    need no token; the requests of /ui do."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe lines of the log. Each request is one line of JSON at level info."""
    log_texts: bool = False
    """Log the bodies of requests too. They may be personal data."""

    default_deadline_ms: Milliseconds = 10_000.0
    """Milliseconds for a request that names no deadline."""
    max_deadline_ms: Milliseconds = 60_000.0
    """Milliseconds for any request; a later deadline is brought forward to this."""
    max_idle_ms: Milliseconds = 60_000.0
    """Milliseconds without a byte of a body that comes part by part (/score_many, /stream), and milliseconds in which
    a client takes nothing of its answer; then its connection is closed."""
    max_headers_ms: Milliseconds = 10_000.0
    """Milliseconds for the headers of a request, from the start of the connection or the answer before."""
    max_connections: Count = 1_000
    """Connections, and at most 128 below its limit of file descriptors. A further connection
    displaces the connection that has waited longest without a request; where none waits it gets 503."""
    max_waiting_tokens: Count = 100_000
    """Estimated tokens of the requests that are accepted and not finished; more is 429."""
    max_streams: Count = 64
    """Responses that are checked while they are written, at the same time; more is 429."""
    max_stream_ms: Milliseconds = 600_000.0
    """Milliseconds for one of these responses, from its first byte to its last."""
    max_held_words: Count = 2_000
    """Words and punctuation marks of a sentence that is not complete, which a policy may hold back; a higher bound of
    a policy is brought down to this."""
    tenant_weights: dict[str, Annotated[float, msgspec.Meta(gt=0)]] = msgspec.field(default_factory=dict)
    """Shares of the engine's time that tenants (``options.tenant``) get while requests wait; others have weight 1. In
    the environment ``a=3,b=0.5``."""
    max_priority: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 0
    """Highest priority that a request may ask for."""
    max_body_bytes: Count = 2_000_000
    """Bytes of a body, or of a line of /score_many."""
    max_answer_bytes: Count = 8_000_000
    """Bytes of an answer with a score, or of a line of one; `"explanations": "all"` and /evidence may ask for more."""
    max_response_chars: Count = 20_000
    """Characters of a response."""
    max_knowledge_chars: Count = 50_000
    """Characters of knowledge, over all passages."""
    max_passages: Count = 256
    """Passages of knowledge."""
    max_history_chars: Count = 50_000
    """Characters of history, over all turns."""
    max_turns: Count = 256
    """Turns of history."""
    max_triples: Count = 2_000
    """Triples of a knowledge graph."""
    max_candidates: Count = 64
    """Candidates of /rank."""


class ProxySettings(Settings, frozen=True, kw_only=True):
    """How the proxy runs: variables and keys of a file; some are options of ``groundwire proxy``."""

    upstream: str = ""
    """Address of the server that answers, as its clients have it: http://localhost:8001/v1. It speaks OpenAI's or
    Anthropic's protocol."""
    upstream_key: str | None = None
    """Key for the upstream. Without one, a proxy without tokens passes on the keys of its clients."""
    policy: Literal["block", "annotate", "redact", "correct"] = "block"
    """What happens to a sentence without support: block ends the answer before it; annotate lets it leave, and the
    verdict says so; redact puts a mark in the place of its words; correct puts words of the knowledge there, and ends
    the answer where it cannot. A sentence that cannot be checked ends the answer."""
    calls: Literal["pass", "annotate", "block"] = "pass"
    """What happens to tool calls with an argument from nowhere: annotate lets them leave, and `turn` of the verdict
    says so; block lets no call of the answer leave. pass lets calls leave unchecked."""
    claims: Literal["pass", "annotate", "block"] = "pass"
    """What happens to a text that claims an action which no call has done, or has another record's value: as for
    `calls`; block holds the text back until the answer is complete, and lets nothing of it leave."""
    stopped_text: str | None = None
    """Text that leaves in the place of an answer of which `calls` or `claims` lets nothing leave; none by default."""
    profile: ProfileName = "balanced"
    """Operating point of the verdicts: lenient stops the fewest right answers, strict misses the fewest wrong ones."""
    unsure: Literal["label", "block", "annotate", "redact", "correct"] = "label"
    """What happens to a sentence whose label is not sure: label does what the label says, and the others as for
    `policy`."""
    knowledge_from: tuple[Literal["system", "tool"], ...] = ("system", "tool")
    """Messages with the knowledge of a request that has none in `groundwire.knowledge`: system (and developer), tool
    (and function)."""
    without_knowledge: Literal["check", "refuse"] = "check"
    """A request without knowledge: check lets an answer leave that states nothing, or has tool calls alone; refuse
    answers 422 before the model is asked."""


FORMS = {
    "tokens": 'tokens = ["TOKEN", "OTHER"] in the file, or GROUNDWIRE_TOKENS=TOKEN,OTHER',
    "tenant_tokens": 'tenant_tokens = {shop = "TOKEN", "*" = "OTHER"} in the file, or '
    "GROUNDWIRE_TENANT_TOKENS=shop=TOKEN,*=OTHER",
    "tenant_weights": "tenant_weights = {shop = 3.0} in the file, or GROUNDWIRE_TENANT_WEIGHTS=shop=3",
    "upstream_key": 'upstream_key = "KEY" in the file, or GROUNDWIRE_UPSTREAM_KEY=KEY',
}
"""How to write tokens and tables, in the file and in the environment."""
ACCESS = ("tokens", "token_file", "tenant_tokens")
"""Fields that close the server: a variable of one that is empty is a secret that is missing, and no open server."""
SECRET = ("tokens", "tenant_tokens", "upstream_key")
"""Fields whose values no message shows."""
S = TypeVar("S", bound=Settings)


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    record: type[S] = Settings,  # type: ignore[assignment]
) -> S:
    """Join the settings of a file, the environment and the command line; the later replaces the earlier.

    Args:
        file: A TOML file; None for none.
        environment: Variables of the environment, ``GROUNDWIRE_…``.
        options: Settings of the command line by name; None is an option that was not given.
        record: The kind of settings: of the service, or of the proxy.

    Returns:
        The settings, checked.

    Raises:
        InvalidRequest: A value is not usable. The message names the source, the field, what was given and what is
            allowed.
    """
    hints = list_hints(record)
    chosen = {name: value for name, value in (options or {}).items() if value is not None}
    values: dict[str, Any] = {}
    if file is not None:
        values |= _convert(_read_file(file), hints, str(file), strict=True)
    values |= _convert(_read_environment(environment or {}, hints), hints, "the environment", strict=False)
    values |= _convert(chosen, hints, "the options")
    settings = record(**values)
    if settings.default_deadline_ms > settings.max_deadline_ms:
        raise InvalidRequest(
            f"default_deadline_ms is {settings.default_deadline_ms:g}; allowed is up to max_deadline_ms, "
            f"{settings.max_deadline_ms:g}."
        )
    return settings


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(f"{file} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{file} is not TOML: {error}.") from error


def _read_environment(environment: Mapping[str, str], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Those variables that are set, and not empty; InvalidRequest for an empty one that should have tokens."""
    values: dict[str, Any] = {}
    names = {f"{PREFIX}{field.upper()}": field for field in hints}
    for name, value in environment.items():
        if value and name in names:
            values[names[name]] = _split(hints[names[name]], value)
        elif names.get(name) in ACCESS:
            raise InvalidRequest(
                f"The environment has {name}, and it is empty; write what has the tokens in it, or unset it for a "
                "server without."
            )
        elif value and name.startswith(f"{PREFIX}MAX_"):  # a limit that is misspelt must not be a limit that is absent
            raise InvalidRequest(f"The environment has {name}, which is no setting{suggest(name, names)}.")
    return values


def _split(hint: Any, value: str) -> Any:
    if get_origin(hint) is not dict:
        return value.split(",") if is_list(hint) else value
    entries = dict[str, list[str]]()
    for name, _, entry in (part.partition("=") for part in value.split(",")):
        entries.setdefault(name.strip(), []).append(entry)
    return {name: values[0] if len(values) == 1 else values for name, values in entries.items()}


def is_list(hint: Any) -> bool:
    """Whether a setting of this type has several values."""
    return get_origin(hint) is tuple


def _convert(values: dict[str, Any], hints: Mapping[str, Any], source: str, *, strict: bool = True) -> dict[str, Any]:
    converted = {}
    for name, value in values.items():
        if name not in hints:
            raise InvalidRequest(
                f"{source} has {name!r}, which is no setting{suggest(name, hints)}. Settings are {', '.join(hints)}."
            )
        try:
            converted[name] = msgspec.convert(value, hints[name], strict=strict)
        except msgspec.ValidationError as error:
            shown = "(not shown)" if name in SECRET else f"{value!r:.100}"
            message = f"{name} of {source} is {shown}: {error}{name_values(hints[name], str(error))}."
            if name == "port" and str(value).startswith("tcp://"):
                message += " Kubernetes sets it for a Service of the name groundwire; set enableServiceLinks: false."
            if name in FORMS:
                message += f" Write {FORMS[name]}."
            raise InvalidRequest(message) from error
    return converted


@cache
def list_hints(record: type[Settings]) -> Mapping[str, Any]:
    """The type of each setting, with its bounds."""
    hints = get_type_hints(record, include_extras=True)
    return {name: hints[name] for name in record.__struct_fields__}


def plain_type(hint: Any) -> type:
    """The Python type of one value of a setting: for a list the type of its entries, without None and bounds."""
    while get_origin(hint) is not None:
        if get_origin(hint) is Literal:
            return str
        arguments = get_args(hint)
        if get_origin(hint) in (Union, types.UnionType):
            arguments = tuple(argument for argument in arguments if argument is not type(None))
        hint = arguments[0]
    return hint  # type: ignore[no-any-return]


def read_tenants(settings: Settings) -> dict[str, str]:
    """The tenants of the settings by their tokens.

    Raises InvalidRequest for an empty token, a token of two tenants, and a weight of a tenant that no request can have.
    """
    tenants = dict[str, str]()
    for tenant, entry in settings.tenant_tokens.items():
        tokens = [token.strip() for token in ((entry,) if isinstance(entry, str) else entry)]
        if not tenant or not tokens or "" in tokens:  # the name may be a token, to which no tenant was written
            raise InvalidRequest(
                f"tenant_tokens has an entry without a tenant or without a token. Write {FORMS['tenant_tokens']}."
            )
        for token in tokens:
            if tenants.setdefault(token, tenant) != tenant:
                raise InvalidRequest(
                    f"tenant_tokens has the same token for {tenants[token]!r} and {tenant!r}; give each its own."
                )
    named = settings.tenant_tokens.keys()
    unknown = [] if GATEWAY in named else [name for name in settings.tenant_weights if name and name not in named]
    if unknown:
        raise InvalidRequest(
            f"tenant_weights names {unknown[0]!r}, and tenant_tokens has no token of such a tenant"
            f"{suggest(unknown[0], tuple(named))}. Write {FORMS['tenant_tokens']}."
        )
    return tenants


def read_tokens(settings: Settings) -> tuple[str, ...]:
    """The tokens of the settings, of their file and of tenants.

    Raises InvalidRequest if the file cannot be read, and for an empty token.
    """
    tokens = [*settings.tokens]
    if settings.token_file is not None:
        try:
            lines = Path(settings.token_file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeError) as error:
            raise InvalidRequest(f"token_file {settings.token_file} cannot be read: {error}.") from error
        tokens += [line for line in lines if line.strip()]
        if not any(line.strip() for line in lines):
            raise InvalidRequest(f"token_file {settings.token_file} has no token; write one per line.")
    tokens = [token.strip() for token in tokens]
    if "" in tokens:
        raise InvalidRequest("tokens has an empty token; leave it out.")
    return (*tokens, *read_tenants(settings))


def list_warnings(settings: Settings, environment: Mapping[str, str]) -> list[str]:
    """What is probably not meant: a server that anyone in the network may ask, tokens that anyone on the machine may
    read, and misspelt variables."""
    warnings = []
    if not read_tokens(settings) and not _is_loopback(settings.host):
        warnings.append(
            f"There are no tokens and the host is {settings.host}: whoever reaches this address may send requests. Set "
            "GROUNDWIRE_TOKENS or token_file, or let a proxy check who asks."
        )
    file = settings.token_file
    if file is not None and sys.platform != "win32" and Path(file).stat().st_mode & stat.S_IROTH:
        warnings.append(f"Every user of this machine can read the tokens in {file}: chmod 600 {file}.")
    names = [f"{PREFIX}{field.upper()}" for field in settings.__struct_fields__]
    warnings += [
        f"The environment has {name}, which is no setting{suggest(name, names)}; it is ignored."
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in names
    ]
    return warnings


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def read_field_docs() -> Mapping[str, Mapping[str, str]]:
    """The descriptions of fields by the name of their record; ``docs/site/write.py`` writes their file."""
    text = files(__package__).joinpath("fields.json").read_text(encoding="utf-8")
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])
