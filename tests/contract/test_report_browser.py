"""report.html in a real Chromium: on a telephone and a desk, by day and by night, and on paper."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import factories
import pytest
import report_sample
from playwright.sync_api import Browser, Page, sync_playwright

from harness import shell
from harness.report import html

pytestmark = pytest.mark.browser

RESULTS = {
    "valid": report_sample.run(),
    "invalid": report_sample.invalid(),
    "small": factories.result(),
    "failed": factories.result(failure="no engine", jobs=(), progress=(), faults=(), fences=(), oracles=()),
}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWPORTS = {"telephone": {"width": 360, "height": 740}, "desk": {"width": 1280, "height": 800}}

OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll('body *')].filter(element =>
    !element.closest('.scroll table') && element.getClientRects().length
    && element.getBoundingClientRect().right > width + 1);
  return [document.documentElement.scrollWidth - width, out.map(element => element.outerHTML.slice(0, 200))];
}"""

# WCAG 2 contrast of each visible text with the nearest background that is not transparent.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const known = new Map();
  const colour = text => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      known.set(text, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(text);
  };
  const luminance = rgb => rgb.slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const ratio = (one, other) => {
    const [low, high] = [luminance(colour(one)), luminance(colour(other))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const background = getComputedStyle(at).backgroundColor;
      if (colour(background)[3] > 0) return background;
    }
    return 'white';
  };
  const style = getComputedStyle(document.documentElement);
  const bands = ['--down', '--recovering'].map(name => style.getPropertyValue(name));
  const found = [];
  for (const element of document.querySelectorAll('body *:not(title, desc)')) {
    const texts = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data);
    const text = texts.join('').trim();
    if (!text || !element.getClientRects().length) continue;
    const inside = element instanceof SVGElement;
    const letters = inside ? getComputedStyle(element).fill : getComputedStyle(element).color;
    const grounds = inside ? [behind(element), ...bands] : [behind(element)];
    found.push([Math.min(...grounds.map(ground => ratio(letters, ground))), text.slice(0, 60)]);
  }
  return found;
}"""

LETTER_SIZES = """() => [...document.querySelectorAll('figure > svg')].flatMap(svg => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const texts = svg.getClientRects().length ? [...svg.querySelectorAll('text')] : [];
  return texts.map(text => parseFloat(getComputedStyle(text).fontSize) * scale);
})"""

# Of each plot, where the lines of fences stand, from left to right in px.
FENCES = """() => [...document.querySelectorAll('figure > svg')].filter(svg => svg.getClientRects().length)
  .map(svg => [...new Set([...svg.querySelectorAll('[stroke="var(--fence)"][stroke-dasharray]')]
    .map(line => line.getBoundingClientRect().left))].sort((a, b) => a - b))"""

SHOWN = "elements => elements.map(element => element.checkVisibility({contentVisibilityProperty: true}))"


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A page that was opened, what it asked for, and what it complained of."""

    page: Page
    requests: list[str]
    complaints: list[str]


def chromium() -> str:
    """The path of a Chromium; installed when there is none and this is root on a Debian-like machine."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        shell.run(["apt-get", "update", "-qq"], timeout_s=300, env=quiet)
        packages = ["chromium", "fonts-dejavu-core"]
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        shell.run(install, timeout_s=900, env=quiet)
        path = shutil.which("chromium")
    if path is None:
        pytest.fail(f"none of {', '.join(PROGRAMS)} is on the PATH: install Chromium, or run this as root")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), timeout=60_000)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of each result."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name, result in RESULTS.items():
        (folder / name).mkdir()
        found[name] = html.save(result, folder / name)
    return found


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VIEWPORTS)
def viewport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=RESULTS)
def opened(
    request: pytest.FixtureRequest, browser: Browser, files: dict[str, Path], viewport: str, scheme: str
) -> Iterator[Opened]:
    context = browser.new_context(viewport=VIEWPORTS[viewport], color_scheme=scheme)
    context.set_default_timeout(30_000)
    page = context.new_page()
    found = Opened(page=page, requests=[], complaints=[])
    page.on("request", lambda asked: found.requests.append(asked.url))
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.goto(files[request.param].as_uri())
    yield found
    context.close()


def test_a_report_holds_on_every_screen(opened: Opened, viewport: str, scheme: str, tmp_path: Path) -> None:
    page = opened.page
    page.screenshot(path=tmp_path / f"{viewport}-{scheme}.png", full_page=True)
    closed = page.evaluate(OVERFLOW)
    page.locator("details").evaluate_all("elements => elements.forEach(element => { element.open = true; })")
    word = page.locator("h1.word")
    box = word.bounding_box()
    contrasts = page.evaluate(CONTRASTS)
    sizes = page.evaluate(LETTER_SIZES)

    assert [page.url] == [url for url in opened.requests if not url.startswith("data:")]
    assert [] == opened.complaints
    assert [0, []] == closed
    assert [0, []] == page.evaluate(OVERFLOW), "with all details open"
    assert word.is_visible()
    assert box is not None
    assert box["y"] + box["height"] < 200
    assert len(contrasts) > 50
    assert [] == [found for found in contrasts if found[0] < 4.5]
    assert [] == [size for size in sizes if size < 10]
    assert page.locator("figure > svg:visible").count() == page.locator("figure").count()


@pytest.mark.parametrize("name", ["valid", "invalid"])
def test_all_plots_share_one_time_axis(
    browser: Browser, files: dict[str, Path], name: str, viewport: str
) -> None:
    context = browser.new_context(viewport=VIEWPORTS[viewport])
    page = context.new_page()
    page.goto(files[name].as_uri())
    timeline, proof, lag = page.evaluate(FENCES)
    context.close()

    assert 4 == len(timeline)
    assert proof == pytest.approx(timeline, abs=1)
    assert lag == pytest.approx(timeline, abs=1)


def test_wrong_snapshots_can_be_seen_and_are_named(
    browser: Browser, files: dict[str, Path], viewport: str, scheme: str
) -> None:
    context = browser.new_context(viewport=VIEWPORTS[viewport], color_scheme=scheme)
    page = context.new_page()
    page.goto(files["invalid"].as_uri())
    proof = page.locator('figure > svg[aria-label^="The proof"]:visible')
    crosses = proof.locator('path[stroke="var(--bad)"]')
    sizes = crosses.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    labels = [proof.get_by_text(text, exact=True).is_visible() for text in ("snapshot 60", "snapshots 69-80")]
    context.close()

    assert 15 == len(sizes)
    assert min(sizes) >= 6
    assert [True, True] == labels


def test_a_report_can_be_printed_with_all_that_is_folded(
    browser: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 718, "height": 1000}, color_scheme="dark")
    page = context.new_page()
    page.goto(files["valid"].as_uri())
    page.emulate_media(media="print", color_scheme="light")
    folded = page.locator("details:not([open]) table").evaluate_all(SHOWN)
    overflow = page.evaluate(OVERFLOW)
    contrasts = page.evaluate(CONTRASTS)
    content = page.pdf(path=tmp_path / "report.pdf", format="A4")
    context.close()

    assert len(folded) > 10
    assert all(folded)
    assert [0, []] == overflow
    assert [] == [found for found in contrasts if found[0] < 4.5]
    assert content.startswith(b"%PDF")
    assert 3 <= content.count(b"/Type /Page\n") <= 20


def test_what_looks_at_the_reports_sees_planted_defects(
    browser: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    defects = '<p style="width:900px;color:#ddd;background:#fff">pale</p><img src="http://127.0.0.1:9/x">'
    spoiled = tmp_path / "spoiled.html"
    spoiled.write_text(
        files["small"].read_text(encoding="utf-8").replace("</main>", f"{defects}</main>"), encoding="utf-8"
    )
    context = browser.new_context(viewport=VIEWPORTS["telephone"])
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(spoiled.as_uri())
    overflow, _ = page.evaluate(OVERFLOW)
    pale = [text for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5]
    context.close()

    assert overflow > 400
    assert ["pale"] == pale
    assert "Content Security Policy" in "".join(complaints)
