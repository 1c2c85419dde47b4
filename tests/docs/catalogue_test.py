"""Lists in the documentation are complete: every rule that code names is in the catalogue of rules, every
pass and importer of the compiler in docs/compiler.md, every folder of src/nereid in docs/architecture.md,
every page in docs/README.md; and each folder of programs has a README."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/nereid"
# Where evidence gets its rule: break_rule("id", ...), remark("id", ...), .rule = "id", evidence("id", ...).
NAMED = re.compile(
    r'\b(?:break_rule|remark|evidence|error_evidence)\(\s*"([a-z][a-z0-9-]+)"'
    r'|\brule\s*=\s*"([a-z][a-z0-9-]+)"'
)


def rules():
    catalogue = set(
        re.findall(
            r'^\s*\{"([a-z0-9-]+)",\s+\w+::k', (SOURCE / "verify/rules/catalogue.cpp").read_text(), re.M
        )
    )
    named = {}
    for path in sorted((SOURCE / "verify").rglob("*.cpp")):
        if not path.stem.endswith("_test") and path.stem != "catalogue":
            for match in NAMED.findall(path.read_text()):
                named.setdefault(match[0] or match[1], path.name)
    if len(catalogue) < 40 or len(named) < 20:
        yield (
            f"the patterns of this test find {len(catalogue)} rules in the catalogue and {len(named)} in"
            " code: expected 40 and 20"
        )
    for rule, where in named.items():
        if rule not in catalogue:
            yield (
                f"rule `{rule}` ({where}) is missing from the catalogue of rules"
                " (src/nereid/verify/rules/catalogue.cpp)"
            )


def passes():
    page = (ROOT / "docs/compiler.md").read_text()
    files = [
        *(SOURCE / "compiler/transforms").rglob("*.h"),
        *(SOURCE / "compiler/import").glob("import_*.cpp"),
        *(SOURCE / "compiler/codegen").glob("emit_*.cpp"),
    ]
    if len(files) < 20:
        yield f"src/nereid/compiler has {len(files)} passes, importers and writers: expected 20 or more"
    for path in files:
        header = path.with_suffix(".h").name
        if f"`{path.name}`" not in page and f"`{header}`" not in page:
            yield f"`{path.name}` is missing from docs/compiler.md"


# Folders whose files are data of the tests above them: the README of that folder says what they are.
DATA = re.compile(
    r"tests/golden/.*|tests/(packages|held_out|honest|hostile)/references|tests/tracer/modules"
    r"|tests/harvest/packages/.*|tests/ttir/golden|bench/suite/real|examples/.*"
)


def folders():
    page = (ROOT / "docs/architecture.md").read_text()
    for path in sorted(SOURCE.iterdir()):
        if path.is_dir() and f"| `{path.name}` |" not in page:
            yield f"src/nereid/{path.name} is missing from docs/architecture.md"
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True).stdout
    files = listed.splitlines() or [
        p.relative_to(ROOT).as_posix()
        for top in ("src", "python", "tests", "tools", "bench", "runs")
        for p in (ROOT / top).rglob("*")
        if "__pycache__" not in p.parts
    ]
    # Programs: what has their endings, or none (scripts).
    programs = [name for name in files if re.search(r"\.(h|cpp|cu|py|toml)$|/[^./]+$", name)]
    found = sorted({name.rpartition("/")[0] for name in programs if "/" in name})
    found = [name for name in found if name not in (".ci", "src")]
    if len(found) < 60:
        yield f"{len(found)} folders with programs: expected 60 or more"
    for name in found:
        if DATA.fullmatch(name) or (ROOT / name).is_file():
            continue
        readme = ROOT / name / "README.md"
        if not readme.exists() or len(re.sub(r"^#.*", "", readme.read_text(), flags=re.M).strip()) < 60:
            yield f"{name}/README.md: expected a paragraph about the folder"


def pages():
    index = (ROOT / "docs/README.md").read_text()
    found = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/recipes").glob("*.md")]
    if len(found) < 30:
        yield f"docs has {len(found)} pages: expected 30 or more"
    for path in sorted(found):
        if path.name != "README.md" and f"({path.relative_to(ROOT / 'docs').as_posix()})" not in index:
            yield f"{path.relative_to(ROOT)} is missing from docs/README.md"


def main():
    failures = [*rules(), *passes(), *folders(), *pages()]
    print("\n".join(failures) or "rules, passes, folders and pages are all listed")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
