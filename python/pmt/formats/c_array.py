"""The ``.pmt`` image as an aligned, constant array in C."""

import re
import zlib
from pathlib import PurePath

from pmt import _core
from pmt._util.text import counted
from pmt.net.graph import Graph, is_layer
from pmt.net.image import ALIGNMENT, build_image
from pmt.net.pixels import input_formula

_BYTES_A_LINE = 16
_HEX = tuple(f"0x{value:02x}," for value in range(256))
_ALIGNED = """\
#if defined(__cplusplus)
#define {0}_ALIGNED alignas({1})
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define {0}_ALIGNED _Alignas({1})
#elif defined(__GNUC__) || defined(__ARMCC_VERSION) || defined(__TI_ARM__)
#define {0}_ALIGNED __attribute__((aligned({1})))
#elif defined(_MSC_VER)
#define {0}_ALIGNED __declspec(align({1}))
#elif defined(__ICCARM__)
#define {0}_ALIGNED _Pragma("data_alignment={1}")
#else
#error "say here how this compiler aligns an array to {1} bytes"
#endif
"""
_HEADER = """\
{comment}
#ifndef {capitals}_H
#define {capitals}_H

#include <stdint.h>

#define {capitals}_SIZE {size}u
#define {capitals}_CRC32 0x{crc:08x}u

{aligned}
{capitals}_ALIGNED static const uint8_t {name}[{capitals}_SIZE] = {{
{rows}
}};

#endif  /* {capitals}_H */
"""


def c_header(graph: Graph, file_name: str) -> bytes:
    """Return a header with the image as a ``static const`` array: C99 and C++11.

    ``net.h`` holds the array ``net_model`` of bytes, 16-byte aligned, and the macros
    ``NET_MODEL_SIZE`` and ``NET_MODEL_CRC32`` (of all its bytes). Each file that includes it has
    its own copy.
    """
    image, name = build_image(graph), array_name(file_name)
    rows = (image[i : i + _BYTES_A_LINE] for i in range(0, len(image), _BYTES_A_LINE))
    text = _HEADER.format(
        comment=_comment(graph, image, file_name),
        name=name,
        capitals=name.upper(),
        size=len(image),
        crc=zlib.crc32(image),
        aligned=_ALIGNED.format(name.upper(), ALIGNMENT),
        rows="\n".join("  " + "".join(_HEX[value] for value in row) for row in rows),
    )
    return text.encode("ascii")


def array_name(file_name: str) -> str:
    """Return the C name of the array in a file: ``resnet8_v2_model`` for ``resnet8 v2.h``.

    It is ASCII, and never a keyword, a reserved name or a macro that a compiler defines, such as
    ``linux``.
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "_", PurePath(file_name).stem).strip("_")
    stem = f"net_{stem}" if stem[:1].isdigit() else stem
    return f"{stem}_model" if stem else "model"


def _comment(graph: Graph, image: bytes, file_name: str) -> str:
    name = array_name(file_name)
    tensor, output = graph.tensors[graph.input], graph.tensors[graph.output]
    layers = [op for op in graph.ops if is_layer(op)]
    weights = sum(op.weights.size for op in layers if op.weights is not None)
    words = {"name": "Name", "source": "Source", "licence": "License"}
    lines = [
        f"{file_name}: a .pmt image, written by pmt {_core.__version__}.",
        *(f"{words[key]}: {graph.metadata[key]}" for key in words if graph.metadata.get(key)),
        f"Image: {len(image)} bytes, CRC-32 {zlib.crc32(image):08x}, aligned to {ALIGNMENT} bytes.",
        f"Network: {counted(len(layers), 'layer')}, {weights} int8 weights, "
        f"{output.elements} outputs.",
        f"Input: {tensor.height} x {tensor.width} x {tensor.channels}, {input_formula(graph)}.",
        f"Use: {name}[{name.upper()}_SIZE], {name.upper()}_CRC32.",
    ]
    return "\n".join(["/*", *(f" * {_harmless(line)}" for line in lines), " */"])


def _harmless(text: str) -> str:
    """Return one line that cannot end a comment, begin one, or be a trigraph."""
    plain = "".join(c if " " <= c <= "~" and c != "\\" else "_" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
