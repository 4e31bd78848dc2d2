"""The ``.pmt`` image as an aligned, constant array in C."""

from __future__ import annotations

import re
import zlib
from pathlib import PurePath

from pmt import _core
from pmt._util.text import counted
from pmt.formats.layers import input_formula
from pmt.net.graph import Graph, is_layer
from pmt.net.image import ALIGNMENT, build_image

__all__ = ["array_name", "c_header", "c_source"]

_BYTES_A_LINE = 16
_HEX = tuple(f"0x{value:02x}," for value in range(256))


def c_header(graph: Graph, file_name: str) -> bytes:
    """Return a header with the image as a ``static const`` array: C99 and C++11.

    ``net.h`` holds the array ``net_model`` of bytes, 16-byte aligned, and the macros
    ``NET_MODEL_SIZE`` and ``NET_MODEL_CRC32`` (of all its bytes). Each file that includes it has
    its own copy: where there are several, :func:`c_source` is better.
    """
    image, name = build_image(graph), array_name(file_name)
    capitals = name.upper()
    return _text(
        *_comment(graph, image, file_name, f"{name}[{capitals}_SIZE], {capitals}_CRC32"),
        f"#ifndef {capitals}_H",
        f"#define {capitals}_H",
        "",
        *_array(
            image,
            capitals,
            [
                f"#define {capitals}_SIZE {len(image)}u",
                f"#define {capitals}_CRC32 0x{zlib.crc32(image):08x}u",
            ],
            [f"{capitals}_ALIGNED static const uint8_t {name}[{capitals}_SIZE] = {{"],
        ),
        "",
        f"#endif  /* {capitals}_H */",
    )


def c_source(graph: Graph, file_name: str) -> bytes:
    """Return a source file with the image as an array of external, C linkage: C99 and C++11.

    ``net.c`` holds the array ``net_model`` of bytes, 16-byte aligned, and the constants
    ``net_model_size`` and ``net_model_crc32`` (uint32). Its comment shows the declarations to copy.
    """
    image, name = build_image(graph), array_name(file_name)
    capitals = name.upper()
    return _text(
        *_comment(graph, image, file_name, "declare what stands between the braces below"),
        *_array(
            image,
            capitals,
            [
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                f"extern const uint8_t {name}[{len(image)}];",
                f"extern const uint32_t {name}_size;",
                f"extern const uint32_t {name}_crc32;",
                "#ifdef __cplusplus",
                "}",
                "#endif",
            ],
            [
                f"const uint32_t {name}_size = {len(image)}u;",
                f"const uint32_t {name}_crc32 = 0x{zlib.crc32(image):08x}u;",
                f"{capitals}_ALIGNED const uint8_t {name}[{len(image)}] = {{",
            ],
        ),
    )


def array_name(file_name: str) -> str:
    """Return the C name of the array in a file: ``resnet8_v2_model`` for ``resnet8 v2.h``.

    It is ASCII, and never a keyword, a reserved name or a macro that a compiler defines, such as
    ``linux``.
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "_", PurePath(file_name).stem).strip("_")
    stem = f"net_{stem}" if stem[:1].isdigit() else stem
    return f"{stem}_model" if stem else "model"


def _comment(graph: Graph, image: bytes, file_name: str, use: str) -> list[str]:
    tensor = graph.tensors[graph.input]
    output = graph.tensors[graph.output]
    layers = [op for op in graph.ops if is_layer(op)]
    weights = sum(op.weights.size for op in layers if op.weights is not None)
    lines = [
        f"{file_name}: a .pmt image, written by pmt {_core.__version__}.",
        *(
            f"{word}: {graph.metadata[key]}"
            for key, word in (("name", "Name"), ("source", "Source"), ("licence", "License"))
            if graph.metadata.get(key)
        ),
        f"Image: {len(image)} bytes, CRC-32 {zlib.crc32(image):08x}, aligned to {ALIGNMENT} bytes.",
        f"Network: {counted(len(layers), 'layer')}, {weights} int8 weights, "
        f"{output.elements} outputs.",
        f"Input: {tensor.height} x {tensor.width} x {tensor.channels}, {input_formula(graph)}.",
        f"Use: {use}.",
    ]
    return ["/*", *(f" * {_harmless(line)}" for line in lines), " */"]


def _harmless(text: str) -> str:
    """Return one line that cannot end a comment, begin one, or be a trigraph."""
    plain = "".join(c if " " <= c <= "~" and c != "\\" else "_" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def _alignment(capitals: str) -> list[str]:
    macro = f"{capitals}_ALIGNED"
    return [
        "#if defined(__cplusplus)",
        f"#define {macro} alignas({ALIGNMENT})",
        "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
        f"#define {macro} _Alignas({ALIGNMENT})",
        "#elif defined(__GNUC__) || defined(__ARMCC_VERSION) || defined(__TI_ARM__)",
        f"#define {macro} __attribute__((aligned({ALIGNMENT})))",
        "#elif defined(_MSC_VER)",
        f"#define {macro} __declspec(align({ALIGNMENT}))",
        "#elif defined(__ICCARM__)",
        f'#define {macro} _Pragma("data_alignment={ALIGNMENT}")',
        "#else",
        f'#error "say here how this compiler aligns an array to {ALIGNMENT} bytes"',
        "#endif",
    ]


def _array(
    image: bytes, capitals: str, declarations: list[str], definition: list[str]
) -> list[str]:
    rows = (image[i : i + _BYTES_A_LINE] for i in range(0, len(image), _BYTES_A_LINE))
    return [
        *("#include <stdint.h>", ""),
        *(*declarations, ""),
        *(*_alignment(capitals), ""),
        *definition,
        *("  " + "".join(_HEX[value] for value in row) for row in rows),
        "};",
    ]


def _text(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode("ascii")
