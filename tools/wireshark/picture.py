"""`python3 tools/wireshark/picture.py`, with tools/lab and tools/referee in PYTHONPATH: draws Documentation/wireshark.svg.

It shows what tshark prints of a capture: its list of frames, and the tree of some.
"""

from dataclasses import dataclass
from html import escape

import example
import link
import repository
import tshark

CAPTURE, PICTURE = repository.BUILD / "wireshark/example.pcap", repository.ROOT / "Documentation/wireshark.svg"
COMMAND = "tshark -r example.pcap -X lua_script:rpcrdma.lua"
LISTED = "rpcrdma2"
# The end of a continued Reply, and a Call that provides a Write chunk.
SHOWN = "rpcrdma2.fragment && rpcrdma2.type == 13 || rpcrdma2.xid == 5 && rpcrdma2.type == 10"
# A list's columns, and where each begins.
COLUMNS = {"frame.number": ("No.", 0), "ip.src": ("Source", 45), "ip.dst": ("Destination", 130),
           "_ws.col.protocol": ("Protocol", 215), "frame.len": ("Length", 300), "_ws.col.info": ("Info", 355)}
WIDTH, LINE, MARGIN, INDENT, CHARACTER = 900, 18, 12, 18, 6.2
ROWS, OTHER_ROWS = {"RPCoRDMA2": "#fff3cd"}, "#e3f1e3"
COMMANDS, TITLES, LAYERS, TREE = "#2d3e50", "#d4d8dd", "#dfe8f3", "#ffffff"
# What begins the part of a tree that is about RPC-over-RDMA and what it carries.
PROTOCOLS = ("RPC-over-RDMA", "Remote Procedure Call", "Network File System")


@dataclass(frozen=True)
class Row:
    """A line of the picture: its colour, and texts by where they begin."""

    colour: str
    texts: dict[int, str]


def rows() -> list[Row]:
    """What is to be drawn."""
    CAPTURE.parent.mkdir(parents=True, exist_ok=True)
    link.write(CAPTURE, "roce", example.connection())
    drawn = [Row(COMMANDS, {0: f"$ {COMMAND} -Y {LISTED}"}), Row(TITLES, {at: title for title, at in COLUMNS.values()})]
    for values in tshark.fields(CAPTURE, LISTED, *COLUMNS):
        line = dict(zip(COLUMNS, values, strict=True))
        texts = {at: line[name] for name, (_, at) in COLUMNS.items()}
        drawn.append(Row(ROWS.get(line["_ws.col.protocol"], OTHER_ROWS), texts))
    numbers = ", ".join(number for number, in tshark.fields(CAPTURE, SHOWN, "frame.number"))
    wanted = f"frame.number in {{{numbers}}}"
    drawn.append(Row(COMMANDS, {0: f"$ {COMMAND} -O rpcrdma2 -Y '{wanted}'"}))
    for text in tshark.output(CAPTURE, "-O", "rpcrdma2", "-Y", wanted).splitlines():
        if text.startswith((" ", *PROTOCOLS)):
            depth = (len(text) - len(text.lstrip())) // 4
            drawn.append(Row(LAYERS if depth == 0 else TREE, {INDENT * depth: text.strip()}))
    return drawn


def drawing(drawn: list[Row]) -> str:
    """Rows on their colours, in SVG."""
    height = len(drawn) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
             "<title>RPC-over-RDMA version 2 in tshark</title>", f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for number, row in enumerate(drawn):
        top = MARGIN + number * LINE
        parts.append(f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{LINE}" fill="{row.colour}"/>')
        font = f'font-family="sans-serif" font-size="12" fill="{"#ffffff" if row.colour == COMMANDS else "#1c1c1c"}"'
        for at, text in row.texts.items():
            room = int((WIDTH - 2 * MARGIN - at) / CHARACTER)
            short = text if len(text) <= room else text[:room - 1] + "…"
            parts.append(f'<text x="{MARGIN + 4 + at}" y="{top + 13}" {font}>{escape(short)}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawing(rows()))
