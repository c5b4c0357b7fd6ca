"""``groundwire proxy``; a few fields of ``ProxySettings`` are its options."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from groundwire.service.settings import PREFIX, ProxySettings

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

OPTIONS = ("upstream", "policy", "bundle", "device", "metrics", "host", "port", "workers")

HELP = f"""Check the answers of a server of OpenAI's or Anthropic's protocol, as a proxy before it.

Clients send their chats to `/v1/chat/completions`, `/v1/responses` or `/v1/messages` of the proxy. It passes them on,
checks the answer sentence by sentence, streamed or not, and lets only what the policy allows leave; `groundwire` has
the verdict, the words without support and citations. The field `groundwire.knowledge` of a request has the knowledge;
without it the system messages and tool results have it.

    groundwire proxy --upstream http://localhost:8001/v1
    curl localhost:8000/v1/chat/completions --json '{{"groundwire": {{"knowledge": "Honey is golden."}},
        "model": "m", "messages": [{{"role": "user", "content": "What colour is honey?"}}]}}'

    {PREFIX}KNOWLEDGE_FROM=tool groundwire proxy --upstream http://localhost:8001/v1 --policy correct
    {PREFIX}TOKENS=secret {PREFIX}UPSTREAM_KEY=key groundwire proxy --upstream https://api.openai.com/v1

Limits, tokens, health, logs and stops are as with `groundwire serve`, and so are the variables and the file of
--config. Keys, tokens and tables are written so:

    {list_forms(ProxySettings)}

The settings that are not options: {list_others(ProxySettings, OPTIONS)}.
"""

if TYPE_CHECKING:
    SettingOptions = Any
else:
    SettingOptions = make_options(ProxySettings, OPTIONS)


@expand_groups
def proxy(config: ConfigOption = None, check: CheckOption = False, *, setting_options: SettingOptions) -> None:
    """Check the answers of another server; the user reads ``HELP``."""
    settings = read_settings(ProxySettings, config, setting_options)
    with needs("proxy"):
        from groundwire.service.proxy import make_proxy
        from groundwire.service.server import check_service, run
        from groundwire.service.upstream import Upstream
    Upstream(settings)
    if check:
        report_check(check_service(settings), settings)
        return
    sys.exit(run(settings, make=make_proxy))


proxy.__doc__ = HELP
