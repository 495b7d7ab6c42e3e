"""Make .github/before-after.svg from real terminal screens of the newest pinned client.

The client runs under tmux against a scripted API, once without hooks and once with both of them installed by
`recover_malformed_toolcall.py install` in a throwaway home. Its screens are cropped to the turn itself; colours and
line breaks stay as they are, and only the < and > of the leaked call become look-alikes, so that no tag stands in the
file. The client draws some words at random and shows the time, so two makings differ a little. Linux only; needs npm
and tmux.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parent / "e2e"))

from harness import NEWEST, Home, Reply, Request, ScriptedApi, Terminal, text, tool_use, wait_until
from recover_malformed_toolcall import read_prompts
from support import ROOT, leak

PICTURE = ROOT / ".github" / "before-after.svg"
PROMPT_LINES = 3  # of an idle prompt: it stands between two rules
COLUMNS = 50  # of the terminal: two beside each other are still legible at the width that GitHub shows
THINKING_SEC = 1.2  # before each reply, else the client says that the turn took 0 s


# --- The scenes: what the model does, what the picture says of it ----------------------------------------------------

Model = Callable[[Request], Reply]


def say(words: str) -> Reply:
    """A reply of text alone."""
    return Reply([text(words)], delay=THINKING_SEC)


def read(path: Path, words: str = "") -> Reply:
    """A Read call, some words before it."""
    said = [text(words)] if words else []
    return Reply([*said, tool_use("Read", {"file_path": str(path)})], delay=THINKING_SEC)


def leaking(project: Path) -> Model:
    """A model whose call comes out as text, and that makes it properly once it is told."""
    code = project / "cart.py"
    code.write_text("def total(items):\n    return sum(item.price for item in items)\n", encoding="utf-8")

    def reply(request: Request) -> Reply:
        if request.tool_results():
            return say("Found it: total() adds up the prices, but forgets how many of each item there are.")
        if "(recovery attempt " in request.told():
            return read(code)
        return say("I'll look at the code first.\n\n" + leak("Read", file_path="cart.py"))

    return reply


def stubborn(project: Path) -> Model:
    """A model that makes one failing call three times, unless it is told why that cannot work."""
    settings = project / "config" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("port = 8080\n", encoding="utf-8")
    words = ["I'll read settings.toml.", "Let me try that again.", "Once more."]

    def reply(request: Request) -> Reply:
        results = request.tool_results()
        if results and not results[-1].is_error:
            return say("The server listens on port 8080.")
        if results and "failed a moment ago" in results[-1].text:
            return read(settings, "It isn't there. The config folder may have it.")
        if len(results) < len(words):
            return read(project / "settings.toml", words[len(results)])
        return say("I'm sorry, I can't read the settings.")

    return reply


class Side(NamedTuple):
    """One screen of a scene: its caption and last words, where what matters begins, whether to show the idle prompt."""

    caption: str
    last_words: str
    mark: str
    idle: bool = False


@dataclass(frozen=True)
class Scene:
    """One task, without and with the hooks."""

    name: str
    title: str
    script: str
    prompt: str
    model: Callable[[Path], Model]
    without: Side
    with_hooks: Side


SCENES = (
    Scene(
        "leak",
        "A tool call comes out as text",
        "recover_malformed_toolcall.py",
        "why is the cart total wrong?",
        leaking,
        Side("Nothing runs, the turn ends, and it idles until you type.", "cart.py</", "<", idle=True),
        Side("The model is sent back, makes the call, and goes on.", "Found it", "Ran 1 stop hook"),
    ),
    Scene(
        "repeat",
        "A failed tool call is made again",
        "tool_coach.py",
        "which port does the server use?",
        stubborn,
        Side("The same call, the same failure, again and again.", "I'm sorry", "1 failed"),
        Side("The repeat is stopped, and the model is told why.", "port 8080", "Not run"),
    ),
)
TITLE = "Claude Code without and with toolcall-hooks"
DESCRIPTION = (
    "Four terminal screens of Claude Code. A tool call comes out as text: without the hooks its tags stay on the "
    "screen and the session idles; with the hooks the model is told that nothing ran, makes the call, and answers. A "
    "failed Read is made again: without the hooks it fails three times; with the hooks the first repeat is denied with "
    "the reason, and the model reads another file and answers."
)


# --- The screen: cells with colours ----------------------------------------------------------------------------------


class Style(NamedTuple):
    """How a cell looks; colours as #rrggbb, "" for the terminal's own."""

    colour: str = ""
    background: str = ""
    bold: bool = False
    dim: bool = False
    reverse: bool = False


Line = list[tuple[str, Style]]  # one character each
SYMBOL = r"[\u2100-\uffff]"  # fonts differ in these, so each is placed by itself
WORD = r"[^ \u2100-\uffff]+"
BASIC = (
    *("#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"),
    *("#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc"),
)


def colour_of(number: int) -> str:
    """Return a colour of the terminal's 256."""
    if number < 16:
        return BASIC[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    number -= 16
    return "#" + "".join(f"{levels[step]:02x}" for step in (number // 36, number // 6 % 6, number % 6))


def restyled(style: Style, codes: list[int]) -> Style:
    """Return a style after the numbers of one escape sequence."""
    while codes:
        code = codes.pop(0)
        if code in (38, 48):
            kind = codes.pop(0)
            colour = colour_of(codes.pop(0)) if kind == 5 else "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))
            style = style._replace(colour=colour) if code == 38 else style._replace(background=colour)
        elif code == 0:
            style = Style()
        elif code in (1, 2):
            style = style._replace(bold=style.bold or code == 1, dim=style.dim or code == 2)
        elif code == 22:
            style = style._replace(bold=False, dim=False)
        elif code in (7, 27):
            style = style._replace(reverse=code == 7)
        elif code in (39, 49):
            style = style._replace(colour="") if code == 39 else style._replace(background="")
        elif 30 <= code % 60 <= 37 or 40 <= code % 60 <= 47:
            colour = BASIC[code % 10 + (8 if code >= 90 else 0)]
            style = style._replace(colour=colour) if code % 60 < 40 else style._replace(background=colour)
    return style


def parse(screen: str) -> list[Line]:
    """Return a screen with escape sequences as lines of styled characters; a background goes on to the line's end."""
    lines, style = [], Style()
    for row in screen.replace("\xa0", " ").split("\n"):
        line: Line = []
        for part in re.split(r"(\x1b\[[\d;]*m)", row):
            if part.startswith("\x1b"):
                style = restyled(style, [int(number or 0) for number in part[2:-1].split(";")])
            else:
                line += [(character, style) for character in part]
        if style.background and line:
            line += [(" ", style)] * (COLUMNS - len(line))
        lines.append(line)
    return lines


def plain(line: Line) -> str:
    """Return a line's text."""
    return "".join(character for character, _ in line).rstrip()


def turn_of(lines: list[Line], prompt: str) -> list[Line]:
    """Return the lines from a prompt to the one that says how long it took; of blank ones in a row only the first."""
    texts = [plain(line) for line in lines]
    first = texts.index(f"❯ {prompt}")
    last = next(number for number in range(first, len(texts)) if texts[number].startswith("✻"))
    numbers = range(first, last + 1)
    return [lines[number] for number in numbers if texts[number] or texts[number - 1]]


def prompt_of(lines: list[Line]) -> list[Line]:
    """Return the empty prompt between its two rules."""
    last = max(number for number, line in enumerate(lines) if set(plain(line)) == {"─"})
    return lines[last + 1 - PROMPT_LINES : last + 1]


def shoot(scene: Scene, hooks: bool) -> list[Line]:
    """Play a scene in the real client, and return its last screen."""
    side = scene.with_hooks if hooks else scene.without
    with Home() as home, ScriptedApi(scene.model(home.project)) as api:
        if hooks:
            home.install()
            shortest = min(read_prompts(), key=len)  # one is drawn at random, so leave no choice
            (home.config / "hooks" / "prompts.txt").write_text(shortest, encoding="utf-8")
        with Terminal(NEWEST, home, api, size=(COLUMNS, 70)) as terminal:
            terminal.wait_ready()
            terminal.submit(scene.prompt)
            terminal.wait_for(side.last_words)
            wait_until(lambda: re.search(r"✻ \w+ for \d", terminal.screen()), 30, "end of the turn", terminal.screen)
            screen = terminal.screen(escapes=True).replace(str(home.project), "~/shop")
    lines = parse(screen)
    return turn_of(lines, scene.prompt) + ([[], *prompt_of(lines)] if side.idle else [])


# --- The drawing -----------------------------------------------------------------------------------------------------

WIDTH = 830  # pixels, what GitHub gives a README's picture
EDGE, GAP, PADDING = 12, 10, 9
PANEL = (WIDTH - 2 * EDGE - GAP) / 2
CELL = round((PANEL - 2 * PADDING) / COLUMNS, 2)
LINE_HEIGHT = 16
TITLE_HEIGHT, HEAD_HEIGHT, FOOT_HEIGHT = 32, 56, 8
CARD, SCREEN, BORDER = "#161b22", "#0d1117", "#30363d"
WORDS, FAINT, RED, GREEN = "#e6edf3", "#9198a1", "#ff7b72", "#56d364"
CSS = (
    ".t{font:12.7px ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono','Liberation Mono',Consolas,monospace}"
    ".s{font:13px -apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans','DejaVu Sans',Helvetica,Arial,sans-serif}"
    ".h{font-size:16px;font-weight:600}.b{font-weight:600}"
)


def draw(shots: dict[str, list[Line]]) -> str:
    """Return the picture; the screens by the name of their panel."""
    parts: list[str] = []
    top = float(EDGE)
    for scene in SCENES:
        end = {"class": "t", "text-anchor": "end"}
        parts.append(element("text", scene.title, x=EDGE, y=top + 17, fill=WORDS, **{"class": "s h"}))
        parts.append(element("text", scene.script, x=WIDTH - EDGE, y=top + 17, fill=FAINT, **end))
        top += TITLE_HEIGHT
        rows = max(len(shots[panel_name(scene, hooks)]) for hooks in (False, True))
        for hooks in (False, True):
            name = panel_name(scene, hooks)
            inside = panel(scene, hooks, shots[name], left=EDGE + (PANEL + GAP) * hooks, top=top, rows=rows)
            parts += [f'<g id="{name}">', *inside, "</g>"]
        top += HEAD_HEIGHT + rows * LINE_HEIGHT + FOOT_HEIGHT + EDGE
    card = element("rect", x=0.5, y=0.5, width=WIDTH - 1, height=top - 1, rx=10, fill=CARD, stroke=BORDER)
    about = [element("title", TITLE, id="title"), element("desc", DESCRIPTION, id="desc"), element("style", CSS)]
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top:g}" viewBox="0 0 {WIDTH} {top:g}" '
        'role="img" aria-labelledby="title desc">'
    )
    return "\n".join([root, *about, card, *parts, "</svg>"]) + "\n"


def panel_name(scene: Scene, hooks: bool) -> str:
    """Return the id of a panel."""
    return f"{scene.name}-{'with' if hooks else 'without'}"


def panel(scene: Scene, hooks: bool, lines: list[Line], *, left: float, top: float, rows: int) -> Iterator[str]:
    """Yield the elements of one screen, its label and caption above it; what matters has a bar beside it."""
    side, hue = (scene.with_hooks, GREEN) if hooks else (scene.without, RED)
    height = HEAD_HEIGHT + rows * LINE_HEIGHT + FOOT_HEIGHT
    yield element("rect", x=left, y=top, width=PANEL, height=height, rx=8, fill=SCREEN, stroke=BORDER)
    x = left + PADDING
    label = "With the hooks" if hooks else "Without the hooks"
    yield element("circle", cx=x + 4, cy=top + 17, r=4, fill=hue)
    yield element("text", label, x=x + 14, y=top + 21.5, fill=hue, **{"class": "s b"})
    yield element("text", side.caption, x=x, y=top + 40, fill=FAINT, **{"class": "s"})
    at_bottom = len(lines) - PROMPT_LINES if side.idle else rows  # an idle prompt stands there, as in the terminal
    numbers = range(len(lines))
    for is_block, group in itertools.groupby(numbers, key=lambda number: bool(plain(lines[number]))):
        block = list(group)
        marked = is_block and any(side.mark in plain(lines[number]) for number in block)
        for number in block:
            row = number + (rows - len(lines) if number >= at_bottom else 0)
            y = top + HEAD_HEIGHT + row * LINE_HEIGHT
            if marked:
                yield element("rect", x=left + 1, y=y, width=PANEL - 2, height=LINE_HEIGHT, fill=hue, opacity=0.1)
                yield element("rect", x=left + 1, y=y, width=3, height=LINE_HEIGHT, fill=hue)
            yield from line_at(x, y, lines[number])


def line_at(left: float, top: float, line: Line) -> Iterator[str]:
    """Yield the elements of one line of a screen, each at its own column, so that no font can shift them."""
    number = 0
    for run in runs_of(line):
        x, style = left + number * CELL, run[0][1]
        colour, background = style.colour or WORDS, style.background
        if style.reverse:
            colour, background = background or SCREEN, colour
        if background:
            yield element("rect", x=x, y=top, width=len(run) * CELL, height=LINE_HEIGHT, fill=background)
        look: dict[str, object] = {"font-weight": 700} if style.bold else {}
        if style.dim:
            look["opacity"] = 0.6
        yield from glyphs_at(x, top, plain(run), colour, look)
        number += len(run)


def runs_of(line: Line) -> Iterator[Line]:
    """Yield the parts of a line that have one style."""
    for _, run in itertools.groupby(line, key=lambda cell: cell[1]):
        yield list(run)


def glyphs_at(left: float, top: float, words: str, colour: str, look: dict[str, object]) -> Iterator[str]:
    """Yield the elements of one run: words at their true width, symbols one by one, lines as lines."""
    for match in re.finditer(rf"─+|{SYMBOL}|{WORD}(?: {WORD})*", words):
        found, x = match.group(), left + match.start() * CELL
        middle = x + CELL / 2
        if found[0] == "─":
            y = top + LINE_HEIGHT / 2
            yield element("rect", x=x, y=y, width=len(found) * CELL, height=1, fill=colour, **look)
        elif found == "│":
            yield element("rect", x=middle - 0.5, y=top, width=1, height=LINE_HEIGHT, fill=colour, **look)
        elif found == "⎿":
            corner = f"M{middle - 1:.1f} {top + 1:g}V{top + 11.5:g}H{x + CELL + 1:.1f}"
            yield element("path", d=corner, fill="none", stroke=colour, **look)
        else:
            width = {"textLength": len(found) * CELL} if len(found) > 1 else {}
            shown = found.replace("<", "‹").replace(">", "›")
            yield element("text", shown, x=x, y=top + 12, fill=colour, **{"class": "t"}, **width, **look)


def element(tag: str, words: str | None = None, /, **attributes: object) -> str:
    """Return an SVG element."""
    values = {name: f"{value:.7g}" if isinstance(value, float) else str(value) for name, value in attributes.items()}
    start = " ".join([tag, *(f"{name}={quoteattr(value)}" for name, value in values.items())])
    return f"<{start}>{escape(words)}</{tag}>" if words is not None else f"<{start}/>"


def main() -> int:
    """Take the screens, write the picture, say where it is."""
    picture = draw({panel_name(scene, hooks): shoot(scene, hooks) for scene in SCENES for hooks in (False, True)})
    if tempfile.gettempdir() + "/" in picture:
        raise SystemExit("a path of the throwaway home is on a screen: nothing written")
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture.encode())} bytes, from client {NEWEST}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
