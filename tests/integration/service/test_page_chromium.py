"""The page /ui in a browser, with the embedded bundle: it is used with the keyboard, on a desktop and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from groundwire.runtime.bundles.bundle import embedded
from tests.support.server import Server, start_server

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = [
    pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle"),
    pytest.mark.skipif(not BROWSER, reason="no browser is installed"),
]
KNOWLEDGE = "🎈 Honey keeps for years.\n\nThe Joy of Painting ran for 31 seasons."
MILLISECONDS = 60_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server("--metrics", "fast") as running:
        running.wait_until_ready()
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(params=[(1280, 900, "light"), (390, 844, "dark")], ids=["desktop", "phone"])
def page(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(MILLISECONDS)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda sent: None if sent.url.startswith((server.url, "data:")) else problems.append(sent.url))
    page.goto(f"{server.url}/ui")
    yield page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert [problem for problem in problems if "413" not in problem] == []


def test_texts_are_checked_by_the_keyboard_alone(page: Page) -> None:
    page.get_by_label("Knowledge").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(KNOWLEDGE)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("🎈🎈 Honey keeps for years. The Joy of Painting ran for <b>45 seasons</b>.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#state")).to_have_text("Done.", timeout=MILLISECONDS)
    result = page.get_by_role("region", name="Result")
    expect(result.locator("#verdict")).to_have_text("inconsistent")
    assert "45" in " ".join(result.locator("mark").all_inner_texts())
    assert result.locator("b").count() == 1  # the threshold's: no text becomes markup
    chips = result.locator("#sentences li .chip").all_inner_texts()
    assert [chip.split()[-2] for chip in chips] == ["consistent", "inconsistent"]
    # Offsets count characters, also beyond the basic plane: the first sentence is cited at its end.
    assert "years. [1] The" in result.locator("#response-text").inner_text().replace("[1]", " [1] ").replace("  ", " ")
    result.locator("a.cite").first.click()  # opens the knowledge, which is folded on a phone
    assert page.url.endswith("#evidence-1")
    assert result.locator(".evidence").first.inner_text() == "🎈 Honey keeps for years."
    assert page.get_by_text("Raw JSON").is_visible()


@pytest.mark.parametrize(
    ("label", "sure", "state", "shade"),
    [
        ("consistent", True, "consistent", "consistent"),
        ("consistent", False, "not sure, rather consistent", "unsure"),
        ("inconsistent", False, "not sure, rather inconsistent", "unsure"),
        ("inconsistent", True, "inconsistent", "inconsistent"),
        ("unverifiable", False, "unverifiable", "unverifiable"),
    ],
)
def test_a_verdict_has_one_of_three_states(page: Page, label: str, sure: bool, state: str, shade: str) -> None:
    def answer(route: Route) -> None:
        score = route.fetch().json()
        score["verdict"] |= {"label": label, "sure": sure}
        route.fulfill(json=score)

    page.route("**/score", answer)
    page.get_by_label("Knowledge").fill(KNOWLEDGE)
    page.get_by_label("Response").fill("Honey keeps for years. The Joy of Painting ran for 31 seasons.")
    page.get_by_role("button", name="Check", exact=True).click()
    verdict = page.locator("#verdict")
    expect(verdict).to_have_text(state, timeout=MILLISECONDS)
    expect(verdict).to_have_class(f"verdict {shade}")
    expect(page.locator("#weakest")).to_contain_text("Weakest sentence")  # under "consistent" too


def test_an_example_is_checked_when_it_is_chosen_and_errors_are_said(page: Page) -> None:
    page.get_by_label("Example").select_option(index=4)
    expect(page.locator("#verdict")).to_have_text("unverifiable", timeout=MILLISECONDS)
    page.get_by_label("Response").fill("a " * 15_000)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#state.error")).to_contain_text("20000", timeout=MILLISECONDS)
    expect(page.get_by_role("button", name="Check", exact=True)).to_be_enabled()
    page.get_by_label("Response").fill("")
    page.get_by_role("button", name="Check", exact=True).click()
    assert page.evaluate("document.activeElement.id") == "response"


def test_an_inconsistent_response_is_corrected_and_checked_again(page: Page) -> None:
    page.get_by_label("Knowledge").fill(KNOWLEDGE)
    page.get_by_label("Response").fill("🎈🎈 The Joy of Painting ran for 45 seasons.")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#verdict")).to_have_text("inconsistent", timeout=MILLISECONDS)
    page.get_by_role("button", name="Correct", exact=True).press("Enter")
    corrected = page.locator("#corrected-text")
    expect(corrected).to_be_visible(timeout=MILLISECONDS)
    assert corrected.locator("del").all_inner_texts() == ["45"]
    assert corrected.locator("ins").all_inner_texts() == ["31"]
    assert corrected.inner_text().startswith("🎈🎈 The Joy")
    page.get_by_role("button", name="Check the correction").click()
    expect(page.locator("#verdict")).to_have_text("consistent", timeout=MILLISECONDS)
    assert page.get_by_label("Response").input_value() == "🎈🎈 The Joy of Painting ran for 31 seasons."
    assert page.get_by_role("button", name="Correct", exact=True).count() == 0


def test_the_first_visit_has_an_example_and_what_the_knowledge_says_is_marked_in_it(page: Page) -> None:
    assert page.get_by_label("Response").input_value().endswith("It is 430 metres tall.")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#verdict")).to_have_text("inconsistent", timeout=MILLISECONDS)
    is_phone = page.evaluate("innerWidth < 640")
    assert page.locator("#sources").evaluate("folded => folded.open") is not is_phone
    page.locator("#sources").evaluate("folded => { folded.open = true; }")
    assert page.locator("#sources mark.says").all_inner_texts() == ["330 metres"]


def test_markdown_is_shown_without_markup_of_the_texts(page: Page) -> None:
    page.get_by_label("Knowledge").fill("# Hours\n\n- The **bar** closes at `10 pm`.")
    page.get_by_label("Response").fill(
        "- The **bar** closes at `11 pm`, 2*3*4 <b>x</b> [a](javascript:b)\n```sh\nls **\n```"
    )
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#state")).to_have_text("Done.", timeout=MILLISECONDS)
    shown = page.locator("#response-text")
    assert shown.locator("strong").all_inner_texts() == ["bar"]
    assert "".join(shown.locator("code").all_inner_texts()) == "11 pmsh\nls **\n"
    assert shown.locator("b, a[href^=java]").count() == 0
    text = "".join(
        shown.evaluate(
            "box => [...box.childNodes].filter((node) => node.nodeName !== 'SUP').map((node) => node.textContent)"
        )
    )
    assert text.startswith("• The bar closes at 11 pm")
    assert "2*3*4 <b>x</b> [a](javascript:b)" in text
    # What was scored is shown: the words after a fence, which characters beyond the basic plane do not shift.
    for written, code in (
        ("🎈 **x**\n```Delivery is free\nls\n```", "Delivery is free\nls\n"),
        ("🎈 **x**\n``` \nls\n```\n", "ls\n"),
        ("🎈 **x**\n```a`b\n", "a"),
    ):
        shown = page.evaluate(
            """text => {
                const pieces = split(Array.from(text), readMarkdown(text));
                const join = (kind) => pieces.filter((piece) => piece.covering.some((range) => range.kind === kind))
                    .map((piece) => piece.text).join("");
                return [join("strong"), join("code")];
            }""",
            written,
        )
        assert shown == ["x", code]
