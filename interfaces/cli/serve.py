"""``groundwire serve``; a few fields of ``Settings`` are its options."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groundwire.service.settings import PREFIX, Settings

from .groups import expand_groups
from .serving import (
    CheckOption,
    ConfigOption,
    list_forms,
    list_others,
    make_options,
    needs,
    read_settings,
    report_check,
)

OPTIONS = ("bundle", "extra", "device", "metrics", "host", "port", "workers")

HELP = f"""Serve the engine over HTTP.

The service answers when its models are warm: `/readyz` says so. Every request has a deadline and limits; a request
that is stopped is an error and never a score. `/openapi.json` describes all paths, `/metrics` is for Prometheus, and
each request is one line of JSON on standard error, without texts. After SIGTERM the service finishes its requests.

    groundwire serve
    curl localhost:8000/score --json '{{"response": "Honey is blue.", "knowledge": "Honey is golden."}}'

    groundwire serve --open                                            # opens a page on which to try the engine
    groundwire serve --extra nph --metrics fast --port 9000            # also repairs: /refine
    GROUNDWIRE_TOKENS=secret groundwire serve --host 0.0.0.0           # needs Authorization: Bearer secret
    {PREFIX}DRAIN_DELAY_MS=5000 groundwire serve --config groundwire.toml

Every setting is a variable ({PREFIX}PORT=9000; several values are separated by commas) and a key of the file of
--config (port = 9000, extra = ["nph"]). The command line wins over the environment, and this over the file. Tokens and
tables are written so:

    {list_forms(Settings)}

The settings that are not options: {list_others(Settings, OPTIONS)}.
"""


if TYPE_CHECKING:
    SettingOptions = Any
else:
    SettingOptions = make_options(Settings, OPTIONS)


@expand_groups
def serve(
    config: ConfigOption = None,
    check: CheckOption = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page /ui in the browser when the service listens.")
    ] = False,
    *,
    setting_options: SettingOptions,
) -> None:
    """Serve the engine over HTTP; the user reads ``HELP``."""
    settings = read_settings(Settings, config, setting_options)
    if open_page and not settings.ui:
        raise typer.BadParameter("the settings leave the page /ui out.", param_hint="--open")
    with needs("serve"):
        from groundwire.service.server import check_service, run
    if check:
        report_check(check_service(settings), settings)
        return
    sys.exit(run(settings, _open_page) if open_page else run(settings))


def _open_page(url: str) -> None:
    typer.echo(f"{url}/ui")
    webbrowser.open(f"{url}/ui")


serve.__doc__ = HELP
