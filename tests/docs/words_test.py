"""tools/words refuses what docs/glossary.md replaces, in words, identifiers, names of files and phrases, and
nothing else; tools/wrap breaks prose, not tables or code. That the tree itself passes both is the test
`lint`."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def module_of(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


words, wrap = module_of("words"), module_of("wrap")

REFUSED = [
    "// The caller is told which kernel failed.",
    "int told_sizes = 0;",
    "struct ToldRollout {};",
    "constexpr int kTold = 3;",
    "TEST(Verdict, TellsWhatIsWrong)",
    "--beyond-rules",
    "a path BESIDE it",
    "class Retelling:",
    "rows_at_once = 4",
    "the eleventh model",
    "made ready before",
    'summary["otherwise"] = {"otherwise": 1}',
    "what is left of it",
    "MemoryTurns turns;",
]
ACCEPTED = [
    "// Distances between untold's neighbours: no border of a word is there.",
    "besides",
    "a stretchy name: outstretchedness",
    "wallspace = firewalls",
    "// lends itself, tallies, tellurium",
    "if (x) y(); else otherwise();",
    "the eleventh element",
    "beginmd",
]


def check_words():
    for line in REFUSED:
        if not words.found("src/nereid/base/x.cpp", line):
            yield f"tools/words: expected a word that is refused in: {line}"
    for line in ACCEPTED:
        if found := words.found("src/nereid/base/x.cpp", line):
            yield f"tools/words: expected nothing in: {line}; got {found}"
    if not words.found("bench/beside.py", "bench/beside.py"):
        yield "tools/words: expected names of files to be looked at"
    for path in ("src/nereid/verify/flow.cpp", "src/nereid/base/values.h", "src/nereid/policy/http.cpp"):
        if not words.found(path, path):
            yield f"tools/words: expected the name of {path} to be refused"
    for path, line in (("verify", "Word word;"), ("search", "Bench bench;"), ("dataset", "Wording w;")):
        if not words.found(f"src/nereid/{path}/x.h", line) or words.found("src/nereid/base/x.h", line):
            yield f"tools/words: expected the type in `{line}` to be refused in {path} alone"
    # An exception holds for its path and its line, not for others.
    if words.found("src/nereid/sandbox/zygote/zygote_process.cpp", '"USER=nobody",'):
        yield "tools/words: expected the name of UNIX's user to pass"
    for path in ("src/nereid/sandbox/zygote/zygote_process.cpp", "src/nereid/base/x.cpp"):
        if not words.found(path, "// nobody reads it"):
            yield f"tools/words: expected `nobody` to be refused in {path}"


def check_glossary():
    """Every exception is in use: one that covers no line any more goes."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    if listed.returncode != 0:  # an exported tree
        return
    paths = listed.stdout.splitlines()
    for of, allowed, why in words.EXCEPTIONS:
        covered = [path for path in paths if re.fullmatch(of, path) and (ROOT / path).is_file()]
        if not any(used(path, allowed) for path in covered):
            yield f"tools/words: no line needs the exception {of} ({why}): remove it"


def used(path, allowed):
    try:
        lines = [path, *(ROOT / path).read_text(encoding="utf-8").split("\n")]
    except UnicodeDecodeError:
        return False
    return any(
        re.search(allowed, line, re.I)
        and (words.ANY.search(words.parts(line)) or words.ANY_PHRASE.search(line))
        for line in lines
    )


PAGE = """# A heading that is long, {long}

A paragraph with a word after a word, {long} and `code that has blanks inside of it and must stay` whole.

| a table | {long} |

    an indented command --with {long}

* an item, {long}
  that goes on

      code in the item {long}

```
fenced {long}
```
"""


def check_wrap():
    page = PAGE.replace("{long}", "one two three four five six seven eight nine ten " * 3)
    before = page.split("\n")
    after = wrap.wrap_markdown(before)
    if wrap.wrap_markdown(after) != after:
        yield "tools/wrap: expected a wrapped page to stay as it is"
    if " ".join(" ".join(after).split()) != " ".join(page.split()):
        yield "tools/wrap: expected the same words"
    for line in before:
        kept = line.startswith(("#", "|", "    ", "fenced", "```"))
        if kept and line not in after:
            yield f"tools/wrap: expected to keep: {line}"
    for line in after:
        if len(line) > 110 and line not in before:
            yield f"tools/wrap: expected at most 110 columns: {line}"
    if "`code that has blanks inside of it and must stay`" not in "\n".join(after):
        yield "tools/wrap: expected no line break inside of code"
    comment = "  // " + "one two three four five six seven eight nine ten " * 4
    wrapped = wrap.wrap_comments(["int x;", comment.rstrip(), "int y;"], "//")
    if len(wrapped) < 4 or any(len(line) > 110 for line in wrapped) or wrapped[-1] != "int y;":
        yield f"tools/wrap: expected a wrapped comment, got {wrapped}"


def check_commands():
    """Both name a place and end with 1; on a clean file with 0."""
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        for text, code in (("Nothing here.\n", 0), ("Whoever reads it.\n" + "long " * 30 + "\n", 1)):
            file.seek(0), file.truncate(), file.write(text), file.flush()
            for tool, more in (("words", []), ("wrap", ["--check"])):
                done = subprocess.run(
                    [sys.executable, ROOT / "tools" / tool, *more, file.name], capture_output=True, text=True
                )
                if done.returncode != code or (code and pathlib.Path(file.name).name not in done.stdout):
                    yield (
                        f"tools/{tool}: expected exit code {code} and the place, got {done.returncode}:"
                        f" {done.stdout}"
                    )


def main():
    failures = [
        *check_words(), *check_glossary(), *check_wrap(), *check_commands()
    ]  # fmt: skip
    for failure in failures:
        print(failure)
    print(
        f"{len(REFUSED) + len(ACCEPTED)} lines, {len(words.EXCEPTIONS)} exceptions: {len(failures)} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
