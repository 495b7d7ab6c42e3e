"""Make .github/before-after.svg from real terminal screens of the newest pinned client.

The client runs under tmux against a scripted API, once without hooks and once with both of them installed by
`recover_malformed_toolcall.py install` in a throwaway home. Its screens are cropped to the turn itself; colours and line
breaks stay as they are, and only the < and > of the leaked call become look-alikes, so that no tag stands in the file.
The client draws some words at random and shows the time, so two makings differ a little. Linux only; needs npm and tmux.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parent / "e2e"))

from harness import NEWEST, Home, Reply, Request, ScriptedApi, Terminal, text, tool_use, wait_until  # noqa: E402
from support import ROOT, leak  # noqa: E402

PICTURE = ROOT / ".github" / "before-after.svg"
COLUMNS = 48  # of the terminal: two beside each other are still legible at the width that GitHub shows
THINKING_SEC = 0.8  # before each reply, else the client says that the turn took 0 s


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
    code = project / "src" / "cart.py"
    code.parent.mkdir()
    code.write_text("def total(items):\n    return sum(item.price for item in items)\n", encoding="utf-8")

    def reply(request: Request) -> Reply:
        if request.tool_results():
            return say("Found it: total() adds up the prices, but forgets how many of each item there are.")
        if "(recovery attempt " in request.told():
            return read(code)
        return say("I'll look at the code first.\n\n" + leak("Read", file_path="src/cart.py"))

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
    """One screen of a scene: what is under it, its last words, where what matters begins, whether to show the prompt."""

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
        Side("Nothing runs, the turn ends, and it idles until you type.", "src/cart.py</", "<", idle=True),
        Side("The model is sent back, makes the call, and goes on.", "Found it", "Ran 1 stop hook"),
    ),
    Scene(
        "repeat",
        "A failed tool call is made again",
        "tool_coach.py",
        "which port does the server use?",
        stubborn,
        Side("The same call, the same failure, again and again.", "I'm sorry", "1 failed"),
        Side("The repeat is not run; the model is told why and moves on.", "port 8080", "Not run"),
    ),
)
DESCRIPTION = (
    "Four terminal screens of Claude Code. A tool call comes out as text: without the hooks its tags stay on the screen "
    "and the session idles; with the hooks the model is told that nothing ran, makes the call, and answers. A failed "
    "Read is made again: without the hooks it fails three times; with the hooks the first repeat is denied with the "
    "reason, and the model reads another file and answers."
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
        elif code in (1, 2, 7):
            style = style._replace(**{{1: "bold", 2: "dim", 7: "reverse"}[code]: True})
        elif code in (22, 27):
            style = style._replace(bold=False, dim=False) if code == 22 else style._replace(reverse=False)
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
        if style.background:
            line += [(" ", style)] * (COLUMNS - len(line))
        lines.append(line)
    return lines


def plain(line: Line) -> str:
    """Return a line's text."""
    return "".join(character for character, _ in line).rstrip()


def turn_of(lines: list[Line], prompt: str) -> list[Line]:
    """Return the lines from a prompt up to the one that says how long the turn took, one blank line where there are many."""
    texts = [plain(line) for line in lines]
    first = texts.index(f"❯ {prompt}")
    last = next(number for number in range(first, len(texts)) if texts[number].startswith("✻"))
    numbers = range(first, last + 1)
    return [lines[number] for number in numbers if texts[number] or texts[number - 1]]


def prompt_of(lines: list[Line]) -> list[Line]:
    """Return the empty prompt between its two rules."""
    rules = [number for number, line in enumerate(lines) if plain(line) and not plain(line).strip("─")]
    return lines[rules[-2] : rules[-1] + 1]


def shoot(scene: Scene, hooks: bool) -> list[Line]:
    """Play a scene in the real client, and return its last screen."""
    side = scene.with_hooks if hooks else scene.without
    with Home() as home, ScriptedApi(scene.model(home.project)) as api:
        if hooks:
            home.install()
            prompts = home.config / "hooks" / "prompts.txt"  # drawn at random, so leave one, the shortest
            prompts.write_text(min(prompts_in(prompts.read_text("utf-8")), key=len) + "\n", encoding="utf-8")
        with Terminal(NEWEST, home, api, size=(COLUMNS, 70)) as terminal:
            terminal.wait_ready()
            terminal.submit(scene.prompt)
            terminal.wait_for(side.last_words)
            wait_until(lambda: re.search(r"✻ \w+ for \d", terminal.screen()), 30, "end of the turn", terminal.screen)
            screen = terminal.screen(escapes=True).replace(str(home.project), "~/shop")
    lines = parse(screen)
    return turn_of(lines, scene.prompt) + ([[], *prompt_of(lines)] if side.idle else [])


def prompts_in(words: str) -> list[str]:
    """Return the prompts of a prompts.txt."""
    return [line for line in words.splitlines() if line.strip() and not line.startswith("#")]


# --- The drawing -----------------------------------------------------------------------------------------------------

WIDTH = 830  # pixels, what GitHub gives a README's picture
EDGE, GAP, PADDING = 16, 14, 11
PANEL = (WIDTH - 2 * EDGE - GAP) / 2
CELL = (PANEL - 2 * PADDING) / COLUMNS
LINE_HEIGHT = 17
TITLE_HEIGHT, HEAD_HEIGHT, FOOT_HEIGHT = 40, 56, 10
CARD, SCREEN, BORDER = "#161b22", "#0d1117", "#30363d"
WORDS, FAINT, RED, GREEN = "#e6edf3", "#9198a1", "#ff7b72", "#56d364"
CSS = (
    ".t{font:12.9px ui-monospace,SFMono-Regular,'SF Mono',Menlo,'DejaVu Sans Mono','Liberation Mono',Consolas,monospace}"
    ".s{font:13px -apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans','DejaVu Sans',Helvetica,Arial,sans-serif}"
    ".h{font-size:16px;font-weight:600}.b{font-weight:600}"
)


def draw(shots: dict[str, list[Line]]) -> str:
    """Return the picture; the screens by the name of their panel."""
    parts: list[str] = []
    top = float(EDGE)
    for scene in SCENES:
        baseline = top + 17
        parts.append(words_at(EDGE, baseline, scene.title, WORDS, "s h"))
        end = WIDTH - EDGE
        parts.append(words_at(end, baseline, scene.script, FAINT, "t", ' text-anchor="end"'))
        top += TITLE_HEIGHT - 10
        rows = max(len(shots[panel_name(scene, hooks)]) for hooks in (False, True))
        for hooks in (False, True):
            name = panel_name(scene, hooks)
            left = EDGE + (PANEL + GAP) * hooks
            parts += [f'<g id="{name}">', *panel(scene, hooks, shots[name], left, top, rows), "</g>"]
        top += HEAD_HEIGHT + rows * LINE_HEIGHT + FOOT_HEIGHT + EDGE + 8
    height = top - 8
    frame = rectangle(0.5, 0.5, WIDTH - 1, height - 1, CARD, f' rx="10" stroke="{BORDER}"')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH} {height:g}" role="img" aria-labelledby="title desc">'
    )
    title = "Claude Code without and with toolcall-hooks"
    about = [f'<title id="title">{title}</title>', f'<desc id="desc">{escape(DESCRIPTION)}</desc>']
    return "\n".join([head, *about, f"<style>{CSS}</style>", frame, *parts, "</svg>"]) + "\n"


def panel_name(scene: Scene, hooks: bool) -> str:
    """Return the id of a panel."""
    return f"{scene.name}-{'with' if hooks else 'without'}"


def panel(scene: Scene, hooks: bool, lines: list[Line], left: float, top: float, rows: int) -> Iterator[str]:
    """Yield the elements of one screen, its label and caption above it; what matters has a bar beside it."""
    side, hue = (scene.with_hooks, GREEN) if hooks else (scene.without, RED)
    height = HEAD_HEIGHT + rows * LINE_HEIGHT + FOOT_HEIGHT
    yield rectangle(left, top, PANEL, height, SCREEN, f' rx="8" stroke="{BORDER}"')
    x = left + PADDING
    yield f'<circle cx="{x + 4:g}" cy="{top + 17:g}" r="4" fill="{hue}"/>'
    yield words_at(x + 14, top + 21.5, "With the hooks" if hooks else "Without the hooks", hue, "s b")
    yield words_at(x, top + 40, side.caption, FAINT, "s")
    top += HEAD_HEIGHT
    blank = rows - len(lines)  # an idle prompt stands at the bottom, as in the terminal
    below = len(lines) - 4 if side.idle else rows
    marked = False
    for number, line in enumerate(lines):
        y = top + LINE_HEIGHT * (number + (blank if number >= below else 0))
        marked = bool(plain(line)) and (marked or side.mark in plain(line))
        if marked:
            yield rectangle(left + 1, y, PANEL - 2, LINE_HEIGHT, hue, ' opacity=".1"')
            yield rectangle(left + 1, y, 3, LINE_HEIGHT, hue)
        yield from line_at(x, y, line)


def line_at(left: float, top: float, line: Line) -> Iterator[str]:
    """Yield the elements of one line of a screen, each at its own column, so that no font can shift them."""
    number = 0
    for run in runs_of(line):
        x, style = left + number * CELL, run[0][1]
        background = style.colour or WORDS if style.reverse else style.background
        if background:
            yield rectangle(x, top, len(run) * CELL, LINE_HEIGHT, background)
        colour = style.background or SCREEN if style.reverse else style.colour or WORDS
        yield from glyphs_at(x, top, "".join(character for character, _ in run), colour, style)
        number += len(run)


def runs_of(line: Line) -> Iterator[Line]:
    """Yield the parts of a line that have one style."""
    run: Line = []
    for cell in line:
        if run and cell[1] != run[0][1]:
            yield run
            run = []
        run.append(cell)
    if run:
        yield run


def glyphs_at(left: float, top: float, words: str, colour: str, style: Style) -> Iterator[str]:
    """Yield the elements of one run: words at their true width, symbols one by one, lines as lines."""
    look = (' font-weight="700"' if style.bold else "") + (' opacity=".6"' if style.dim else "")
    for match in re.finditer(r"─+|[│⎿]|[\u2100-\uffff]|[^ \u2100-\uffff]+(?: [^ \u2100-\uffff]+)*", words):
        found, x = match.group(), left + match.start() * CELL
        middle, half = x + CELL / 2, top + LINE_HEIGHT / 2
        if found[0] == "─":
            yield rectangle(x, half, len(found) * CELL, 1, colour, look)
        elif found == "│":
            yield rectangle(middle - 0.5, top, 1, LINE_HEIGHT, colour, look)
        elif found == "⎿":
            path = f"M{middle - 1:.1f} {top + 1:g}V{top + 12:g}H{x + CELL + 1:.1f}"
            yield f'<path d="{path}" fill="none" stroke="{colour}"{look}/>'
        else:
            shown = found.replace("<", "‹").replace(">", "›")
            width = f' textLength="{len(found) * CELL:.2f}"' if len(found) > 1 else ""
            yield words_at(x, top + 13, shown, colour, "t", width + look)


def words_at(x: float, y: float, words: str, colour: str, kind: str, more: str = "") -> str:
    """Return a text element; y is its baseline."""
    place = f'x="{round(x, 2):g}" y="{round(y, 2):g}"'
    return f"<text {place} class={quoteattr(kind)} fill={quoteattr(colour)}{more}>{escape(words)}</text>"


def rectangle(x: float, y: float, width: float, height: float, colour: str, more: str = "") -> str:
    """Return a filled rectangle."""
    place = " ".join(
        f'{name}="{round(value, 2):g}"' for name, value in zip(("x", "y", "width", "height"), (x, y, width, height))
    )
    return f'<rect {place} fill="{colour}"{more}/>'


def main() -> int:
    """Take the screens, write the picture, say where it is."""
    shots = {panel_name(scene, hooks): shoot(scene, hooks) for scene in SCENES for hooks in (False, True)}
    picture = draw(shots)
    if tempfile.gettempdir() + "/" in picture:
        raise SystemExit("a path of the throwaway home is on a screen: nothing written")
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture.encode())} bytes, from client {NEWEST}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
