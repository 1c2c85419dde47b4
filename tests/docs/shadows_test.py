"""tools/shadows finds names of a file that hide a header's, or mean something else in another file of its
target."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("shadows", str(ROOT / "tools/shadows"))
shadows = importlib.util.module_from_spec(importlib.util.spec_from_loader("shadows", loader))
loader.exec_module(shadows)

HEADER = """#pragma once
namespace a {
constexpr int kSize = 2, kCount[] = {3, 4};
struct Box { int volume() const { return kHidden; } static constexpr int kHidden = 1; };
int area(int side);
inline int half(int side) { return side / 2; }
}  // namespace a
"""
# (text of one file, text of another, what is found in them)
CASES = [
    ("namespace a { constexpr int kOther = 1; }", "namespace a { constexpr int kOther = 1; }", []),
    ("namespace a { constexpr int kOther = 1; }", "namespace a { constexpr int kOther = 2; }", ["kOther"]),
    (
        "namespace a { namespace { const int kOther{1}; } }",
        "namespace a::b { const int kOther{2}; }",
        ["kOther"],
    ),
    ("namespace b { constexpr int kOther = 1; }", "namespace c { constexpr int kOther = 2; }", []),
    ("namespace a { namespace { constexpr int kSize = 2; } }", "", ["kSize"]),
    ("namespace a::b { constexpr int kNew = 1, kCount = 5; }", "", ["kCount"]),
    ("namespace a { constexpr int kHidden = 7; void volume() { int kSize = 3; } }", "", []),
    ("namespace a { namespace { int area(long side) { return 1; } } }", "", []),  # an overload
    ("namespace a::b { namespace { int area(int side) { return 1; } } }", "", ["area"]),
    ("namespace a::b { namespace { int half(int side); } }", "", ["half"]),
    ("namespace a::b { int area(int side) { return 1; } }", "", []),  # for others, by its full name
    (
        'namespace a { const char* const kText = "constexpr int kSize = 3;"; }',
        "// constexpr int kSize = 3;",
        [],
    ),
]

with tempfile.TemporaryDirectory() as name:
    for number, (*texts, expected) in enumerate(CASES):
        shadows.ROOT = pathlib.Path(name, str(number))
        folder = shadows.ROOT / "src/nereid/a"
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").touch()
        (folder / "a.h").write_text(HEADER)
        files = [folder / "one.cpp", folder / "two.cpp"]
        for path, text in zip(files, texts):
            path.write_text(f'#include "nereid/a/a.h"\n{text}\n')
        found = [error.split(": ")[1] for error in shadows.shadows(files)]
        assert found == expected, (texts, found)
print("names that hide others are found")
