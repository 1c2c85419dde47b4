"""tools/sizes finds the functions and classes of a C++ file, where they begin and end, and refuses what is
too long."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("sizes", str(ROOT / "tools/sizes"))
sizes = importlib.util.module_from_spec(importlib.util.spec_from_loader("sizes", loader))
loader.exec_module(sizes)

SOURCE = """#include <string>
#define BLOCK {
namespace a::b {
namespace {
constexpr int kTable[] = {1, 2};
struct Point {
  int x = 0, y = 0;
  bool operator==(const Point& other) const { return x == other.x; }
};
template <class T>
T twice(T value) {
  const auto add = [&](T more) {
    return value + more;
  };
  return add(value);
}
}  // namespace
Thing::Thing(int a, int b)
    : a_{a}, b_(b), c_{1, 2} {
  text_ = R"(} not the end {)" "{";  // nor }
}
Result<std::map<int, int>> Thing::find(
    const std::string& name) const noexcept {
  if (name.empty()) {
    return {};
  }
  return std::map<int, int>{{1, '}'}};
}
bool operator<(const Thing& a, const Thing& b) { return true; }
}  // namespace a::b
"""
EXPECTED = [
    ("operator==", 8, 8),
    ("twice", 11, 16),
    ("Thing::Thing", 18, 21),
    ("Thing::find", 22, 28),
    ("operator<", 29, 29),
]
found = sizes.cpp_functions(SOURCE)
assert found == EXPECTED, found

with tempfile.TemporaryDirectory(dir=ROOT / "build" if (ROOT / "build").exists() else None) as folder:
    sizes.ROOT = pathlib.Path(folder)
    for lines, code in ((sizes.FUNCTION_LINES, 0), (sizes.FUNCTION_LINES + 1, 1)):
        path = pathlib.Path(folder, "long.cpp")
        path.write_text("int f() {\n" + "  g();\n" * (lines - 2) + "}\n")
        assert sizes.main([str(path)]) == code, lines
    path.write_text("// text\n" * (sizes.FILE_LINES + 1))
    assert sizes.main([str(path)]) == 1
    crowd = [pathlib.Path(folder, f"{i}.h") for i in range(sizes.FOLDER_FILES)]
    assert not list(sizes.crowded(crowd)) and len(list(sizes.crowded([*crowd, path]))) == 1
    # A class has the lines of its body and of the members that are defined elsewhere.
    body = "struct Other { int x; };\nclass Wide final : public Other {\n" + "  int a;\n" * 299 + "};\n"
    member = "void Wide::member() {\n" + "  g();\n" * 48 + "}\n"
    for name, members, code in (("wide.cpp", 1, 0), ("wide.cpp", 2, 1), ("other.cpp", 2, 1)):
        paths = [pathlib.Path(folder, file) for file in ("wide.h", name)]
        paths[0].write_text(body)
        paths[1].write_text(member * members)
        assert sizes.main([str(path) for path in paths]) == code, (name, members)
print("functions are found, and refused where they are too long")
sys.exit(0)
