"""tools/unused names functions and constants that nothing mentions, and no others."""

import importlib.machinery
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("unused", str(ROOT / "tools/unused"))
unused = importlib.util.module_from_spec(importlib.util.spec_from_loader("unused", loader))
loader.exec_module(unused)

CODE = {
    "macros": "#define CHECK checked()",
    "src/nereid/a.h": "int declared();\nint used();\n",
    "src/nereid/a.cpp": (
        "constexpr int kRead = 1, kLost = 2;\nint declared() {\n  return kRead;\n}\n"
        "int used() {\n  return 1;\n}\nvoid checked() {\n}\n"
    ),
    "src/nereid/a_test.cpp": "void lonely() {\n  used();\n}\n",
    "python/nereid/a.py": (
        "import atexit\n\n\n@atexit.register\ndef at_the_end():\n    pass\n\n\ndef forgotten():\n    pass\n"
    ),
}
found = {error.split(": ")[1] for error in unused.unused(CODE)}
assert found == {"declared", "kLost", "forgotten"}, found
print("what nothing mentions is named")
